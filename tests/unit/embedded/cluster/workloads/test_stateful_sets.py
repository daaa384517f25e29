"""StatefulSets and DaemonSets."""

from __future__ import annotations

import pytest
from workload_objects import a_template, a_workload, images, pods, set_pod, start_all

from volcano.api.core import ControllerRevision, DaemonSet, Node, PersistentVolumeClaim, Pod, StatefulSet
from volcano.embedded.cluster.workloads import DaemonSetController, StatefulSetController
from volcano.embedded.cluster.workloads.pods import MAX_PODS_PER_PLAN
from volcano.testing.pure_world import Killed, PureWorld


def a_set(replicas: int = 3, **spec) -> dict:
    return a_workload("StatefulSet", "s", replicas=replicas, serviceName="svc", **spec)


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[StatefulSetController()]).settle()


def names(world: PureWorld) -> list[str]:
    return [pod.name for pod in pods(world)]


def up(world: PureWorld) -> PureWorld:
    for _ in range(12):
        start_all(world)
    return world


def test_pods_come_one_after_the_other():
    world = a_world(a_set())
    assert names(world) == ["s-0"]

    start_all(world)
    assert names(world) == ["s-0", "s-1"]

    start_all(world)
    assert names(world) == ["s-0", "s-1", "s-2"]


def test_parallel_pods_come_at_once():
    assert names(a_world(a_set(podManagementPolicy="Parallel"))) == ["s-0", "s-1", "s-2"]


def test_very_many_parallel_pods_are_made_by_several_plans(monkeypatch):
    monkeypatch.setattr("volcano.embedded.cluster.workloads.stateful_sets.MAX_PODS_PER_PLAN", 3)

    assert len(names(a_world(a_set(10, podManagementPolicy="Parallel")))) == 10


def test_a_plan_for_billions_of_pods_has_an_end():
    controller = StatefulSetController()
    world = PureWorld(a_set(2**31 - 1, podManagementPolicy="Parallel"), controllers=[controller])

    plan = controller.decide(world.get(StatefulSet, "s").key, world.mirror, ())

    assert MAX_PODS_PER_PLAN <= len(plan) < 2 * MAX_PODS_PER_PLAN


def test_what_a_pod_is_told():
    world = a_world(a_set(ordinals={"start": 5}))

    pod = world.raw(Pod, "s-5")

    assert (pod["spec"]["hostname"], pod["spec"]["subdomain"]) == ("s-5", "svc")
    assert pod["metadata"]["labels"]["statefulset.kubernetes.io/pod-name"] == "s-5"
    assert pod["metadata"]["labels"]["apps.kubernetes.io/pod-index"] == "5"
    assert pod["metadata"]["labels"]["controller-revision-hash"] == world.all(ControllerRevision)[0].name


def test_each_pod_has_its_claim_and_finds_it_again():
    claims = [{"metadata": {"name": "data"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}]
    template = a_template(volumes=[{"name": "data", "emptyDir": {}}, {"name": "tmp", "emptyDir": {}}])
    world = up(a_world(a_set(2, volumeClaimTemplates=claims, template=template)))
    assert [claim.name for claim in world.all(PersistentVolumeClaim)] == ["data-s-0", "data-s-1"]
    assert world.raw(Pod, "s-1")["spec"]["volumes"] == [
        {"name": "tmp", "emptyDir": {}},
        {"name": "data", "persistentVolumeClaim": {"claimName": "data-s-1"}},
    ]

    world.change(StatefulSet, "s", {"spec": {"replicas": 0}})
    up(world)

    assert names(world) == []
    assert len(world.all(PersistentVolumeClaim)) == 2


def test_the_highest_go_first_one_at_a_time():
    world = up(a_world(a_set()))
    for name in names(world):
        world.change(Pod, name, {"metadata": {"finalizers": ["example.com/hold"]}})

    world.change(StatefulSet, "s", {"spec": {"replicas": 1}})
    world.settle()
    assert [pod.name for pod in pods(world) if pod.is_deleting] == ["s-2"]

    world.change(Pod, "s-2", {"metadata": {"finalizers": None}})
    world.settle()
    assert [pod.name for pod in pods(world) if pod.is_deleting] == ["s-1"]


def test_a_pod_that_fails_is_made_again_under_its_name():
    world = up(a_world(a_set()))
    uid = world.raw(Pod, "s-1")["metadata"]["uid"]

    set_pod(world, "s-1", "Failed")
    world.settle()

    assert names(world) == ["s-0", "s-1", "s-2"]
    assert world.raw(Pod, "s-1")["metadata"]["uid"] != uid


def test_a_new_template_is_rolled_out_from_the_top():
    world = up(a_world(a_set()))

    world.change(StatefulSet, "s", {"spec": {"template": a_template("two")}})
    world.settle()
    assert images(world) == ["one", "one", "two"]
    assert world.raw(Pod, "s-2")["spec"]["containers"][0]["image"] == "two"

    up(world)
    assert images(world) == ["two"] * 3
    status = world.raw(StatefulSet, "s")["status"]
    assert status["currentRevision"] == status["updateRevision"]
    assert status["updatedReplicas"] == 3


def test_below_the_partition_pods_stay_as_they_were_and_come_back_so():
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    world = up(a_world(a_set(updateStrategy=strategy)))
    world.change(StatefulSet, "s", {"spec": {"template": a_template("two")}})
    up(world)
    assert [pod.spec.containers[0].image for pod in pods(world)] == ["one", "one", "two"]

    world.delete(Pod, "s-0")
    up(world)

    assert [pod.spec.containers[0].image for pod in pods(world)] == ["one", "one", "two"]
    status = world.raw(StatefulSet, "s")["status"]
    assert (status["currentReplicas"], status["updatedReplicas"]) == (2, 1)


def test_on_delete_waits_for_pods_to_be_deleted():
    world = up(a_world(a_set(2, updateStrategy={"type": "OnDelete"})))
    world.change(StatefulSet, "s", {"spec": {"template": a_template("two")}})
    up(world)
    assert images(world) == ["one", "one"]

    world.delete(Pod, "s-0")
    up(world)

    assert images(world) == ["one", "two"]


def test_the_status_tells_all():
    world = up(a_world(a_set(2)))

    status = world.raw(StatefulSet, "s")["status"]

    assert {k: v for k, v in status.items() if not k.endswith("Revision")} == {
        "replicas": 2, "readyReplicas": 2, "availableReplicas": 2, "currentReplicas": 2, "updatedReplicas": 2,
        "observedGeneration": 1,
    }  # fmt: skip


def test_a_kill_anywhere_ends_the_same():
    whole = up(a_world(a_set(2)))

    for writes in range(whole.writes):
        world = PureWorld(a_set(2), controllers=[StatefulSetController()])
        world.stop_after = writes
        with pytest.raises(Killed):
            up(world)
        world.stop_after = None
        world.restart()
        up(world)
        assert names(world) == names(whole)
        assert world.raw(StatefulSet, "s")["status"] == whole.raw(StatefulSet, "s")["status"]


# -- DaemonSets -----------------------------------------------------------------------------------------------
def a_node(name: str, *, taints: list[dict] | None = None, **labels: str) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "spec": {"taints": taints or []},
    }


def a_daemon_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[DaemonSetController()]).settle()


def run_daemons(world: PureWorld) -> None:
    """Each pod is bound to the node it names, and runs."""
    from volcano.embedded.cluster.workloads.daemon_sets import node_of

    for pod in pods(world):
        if not pod.status.phase:
            set_pod(world, pod.name)
            world.change(Pod, pod.name, {"spec": {"nodeName": node_of(pod)}})
    world.settle()


def test_a_daemon_runs_on_every_node_that_fits():
    tainted = a_node("t", taints=[{"key": "k", "effect": "NoSchedule"}])
    cordoned = a_node("c", taints=[{"key": "node.kubernetes.io/unschedulable", "effect": "NoSchedule"}], disk="ssd")
    template = a_template(nodeSelector={"disk": "ssd"})

    world = a_daemon_world(
        a_node("a", disk="ssd"), a_node("b"), tainted, cordoned, a_workload("DaemonSet", "ds", template=template)
    )
    run_daemons(world)

    assert sorted(pod.spec.node_name for pod in pods(world)) == ["a", "c"]
    status = world.raw(DaemonSet, "ds")["status"]
    assert (status["desiredNumberScheduled"], status["numberReady"]) == (2, 2)


def test_daemons_follow_nodes():
    world = a_daemon_world(a_node("a"), a_workload("DaemonSet", "ds"))
    run_daemons(world)

    world.put(a_node("b"))
    world.settle()
    run_daemons(world)
    assert len(pods(world)) == 2

    world.delete(Node, "a")
    world.settle()
    assert [pod.spec.node_name for pod in pods(world)] == ["b"]


def test_a_running_daemon_stays_where_new_ones_may_not_come():
    world = a_daemon_world(a_node("a"), a_node("b"), a_workload("DaemonSet", "ds"))
    run_daemons(world)

    world.change(Node, "a", {"spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}})
    world.change(Node, "b", {"spec": {"taints": [{"key": "k", "effect": "NoExecute"}]}})
    world.settle()

    assert [pod.spec.node_name for pod in pods(world)] == ["a"]


def test_daemons_are_updated_one_at_a_time():
    world = a_daemon_world(a_node("a"), a_node("b"), a_workload("DaemonSet", "ds"))
    run_daemons(world)

    world.change(DaemonSet, "ds", {"spec": {"template": a_template("two")}})
    world.settle()
    assert images(world) == ["one", "two"]

    run_daemons(world)
    run_daemons(world)
    assert images(world) == ["two", "two"]
