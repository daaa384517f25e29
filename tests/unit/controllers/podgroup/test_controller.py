"""PodGroups for plain pods and for the pods of ReplicaSets, StatefulSets and others."""

from __future__ import annotations

import pytest

from volcano.api.core import Pod, ReplicaSet
from volcano.api.scheduling import PodGroup
from volcano.controllers.podgroup import PodGroupController
from volcano.testing.pure_world import Killed, PureWorld

GROUP = "scheduling.k8s.io/group-name"


def a_pod(name: str, *, owner: dict | None = None, scheduler: str = "volcano", **metadata) -> dict:
    if owner is not None:
        metadata["ownerReferences"] = [reference_to(owner)]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {
            "schedulerName": scheduler,
            "containers": [{"name": "c", "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": 1}}}],
        },
    }


def a_workload(kind: str, name: str, *, replicas: int = 1, annotations: dict | None = None, **status) -> dict:
    return {
        "apiVersion": "batch/v1" if kind == "Job" else "apps/v1",
        "kind": kind,
        "metadata": {"name": name, "uid": f"uid-{name}", "annotations": annotations or {}},
        "spec": {"replicas": replicas, "selector": {"matchLabels": {"app": name}}},
        "status": status,
    }


def reference_to(owner: dict) -> dict:
    metadata = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": metadata["name"],
        "uid": metadata["uid"],
        "controller": True,
    }


def a_world(*objects: dict, **settings) -> PureWorld:
    return PureWorld(*objects, controllers=[PodGroupController(**settings)]).settle()


def the_group(world: PureWorld) -> dict:
    (group,) = world.all(PodGroup)
    return world.raw(PodGroup, group.name, group.namespace)


def test_a_bare_pod_gets_a_group_of_its_own():
    world = a_world(a_pod("p", uid="u1"))

    group = the_group(world)

    assert group["metadata"]["name"] == "podgroup-u1"
    assert group["metadata"]["ownerReferences"] == [
        {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u1", "controller": True, "blockOwnerDeletion": True}
    ]
    assert group["status"] == {"phase": "Pending"}
    assert group["spec"] == {
        "minMember": 1,
        "minResources": {
            "count/pods": "1",
            "cpu": "500m",
            "nvidia.com/gpu": "1",
            "pods": "1",
            "requests.cpu": "500m",
            "requests.nvidia.com/gpu": "1",
        },
    }
    assert world.raw(Pod, "p")["metadata"]["annotations"] == {GROUP: "podgroup-u1"}


@pytest.mark.parametrize("kind", ["ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController", "Anything"])
def test_all_pods_of_an_owner_share_one_group(kind: str):
    owner = a_workload(kind, "w")
    pods = [a_pod(f"w-{i}", owner=owner, labels={"app": "w"}) for i in range(3)]

    world = a_world(*pods)

    assert [group.name for group in world.all(PodGroup)] == ["podgroup-uid-w"]
    assert {pod.annotations[GROUP] for pod in world.all(Pod)} == {"podgroup-uid-w"}
    assert the_group(world)["metadata"]["ownerReferences"] == [reference_to(owner)]


def test_pods_of_other_schedulers_are_left_alone():
    world = a_world(a_pod("p", scheduler="default-scheduler"))

    assert world.all(PodGroup) == []


def test_a_further_scheduler_name_can_be_configured():
    world = a_world(a_pod("p", scheduler="mine"), scheduler_names=["volcano", "mine"])

    assert len(world.all(PodGroup)) == 1


def test_a_pod_that_has_a_group_is_left_alone():
    world = a_world(a_pod("p", annotations={GROUP: "mine"}))

    assert world.all(PodGroup) == []
    assert world.writes == 0


def test_the_owner_says_how_many_members_a_group_needs():
    owner = a_workload("Job", "w", annotations={"scheduling.volcano.sh/group-min-member": "3"})

    world = a_world(owner, a_pod("w-0", owner=owner))

    spec = the_group(world)["spec"]
    assert spec["minMember"] == 3
    assert spec["minResources"]["cpu"] == "1500m"
    assert spec["minResources"]["pods"] == "3"


@pytest.mark.parametrize(("said", "members"), [("0", 0), ("-1", 1), ("many", 1), ("2", 2), (str(2**40), 1)])
def test_nonsense_about_members_counts_as_one(said: str, members: int):
    owner = a_workload("DaemonSet", "w", annotations={"scheduling.volcano.sh/group-min-member": said})

    world = a_world(owner, a_pod("w-0", owner=owner))

    assert the_group(world)["spec"]["minMember"] == members


def test_annotations_are_inherited_and_the_pods_own_win():
    owner = a_workload(
        "ReplicaSet", "w",
        annotations={"volcano.sh/preemptable": "true", "volcano.sh/sla-waiting-time": "1h", "other/thing": "x"},
    )  # fmt: skip
    pod = a_pod(
        "w-0", owner=owner,
        annotations={
            "volcano.sh/preemptable": "false",
            "volcano.sh/jdb-min-available": "2",
            "volcano.sh/jdb-max-unavailable": "1",
        },
        labels={"app": "w", "volcano.sh/cooldown-time": "60s"},
    )  # fmt: skip

    world = a_world(owner, pod)

    metadata = the_group(world)["metadata"]
    assert metadata["annotations"] == {
        "volcano.sh/preemptable": "false",
        "volcano.sh/sla-waiting-time": "1h",
        "volcano.sh/jdb-min-available": "2",
    }
    assert metadata["labels"] == {"volcano.sh/cooldown-time": "60s"}


def test_nothing_is_inherited_when_that_is_switched_off():
    owner = a_workload("ReplicaSet", "w", annotations={"volcano.sh/preemptable": "true"})

    world = a_world(owner, a_pod("w-0", owner=owner), inherit_owner_annotations=False)

    assert the_group(world)["metadata"]["annotations"] == {}


def test_nothing_is_inherited_from_another_owner_of_the_same_name():
    older = a_workload("ReplicaSet", "w", annotations={"volcano.sh/preemptable": "true"})
    newer = {**older, "metadata": {**older["metadata"], "uid": "another"}}

    world = a_world(newer, a_pod("w-0", owner=older))

    assert the_group(world)["metadata"]["annotations"] == {}


@pytest.mark.parametrize(
    ("annotations", "topology"),
    [
        ({}, None),
        ({"volcano.sh/network-topology-mode": "SOFT"}, {"mode": "soft"}),
        ({"volcano.sh/network-topology-mode": "odd"}, {"mode": "hard"}),
        ({"volcano.sh/network-topology-highest-tier": "2"}, {"mode": "hard", "highestTierAllowed": 2}),
        ({"volcano.sh/network-topology-highest-tier": "two"}, {"mode": "hard"}),
    ],
)
def test_topology_comes_from_the_pods_annotations(annotations: dict, topology: dict | None):
    world = a_world(a_pod("p", annotations=annotations))

    assert the_group(world)["spec"].get("networkTopology") == topology


def test_the_queue_and_the_priority_come_from_the_pod():
    pod = a_pod("p", annotations={"scheduling.volcano.sh/queue-name": "gold"})
    pod["spec"]["priorityClassName"] = "high"

    world = a_world(pod)

    assert the_group(world)["spec"]["queue"] == "gold"
    assert the_group(world)["spec"]["priorityClassName"] == "high"


def test_a_replicaset_scaled_to_nothing_loses_its_group():
    owner = a_workload("ReplicaSet", "w")
    world = a_world(owner, a_pod("w-0", owner=owner, labels={"app": "w"}))

    world.change(ReplicaSet, "w", {"spec": {"replicas": 0}})
    world.settle()

    assert world.all(PodGroup) == []


def test_a_new_template_ends_with_exactly_one_group():
    old, new = a_workload("ReplicaSet", "old"), a_workload("ReplicaSet", "new")
    world = a_world(old, a_pod("old-0", owner=old, labels={"app": "old"}))

    world.put(new)
    world.put(a_pod("new-0", owner=new, labels={"app": "new"}))
    world.settle()
    world.change(ReplicaSet, "old", {"spec": {"replicas": 0}})
    world.delete(Pod, "old-0")
    world.settle()

    assert [group.name for group in world.all(PodGroup)] == ["podgroup-uid-new"]


def test_a_statefulsets_group_follows_the_pods_of_the_newest_revision():
    owner = a_workload("StatefulSet", "w", annotations={"volcano.sh/preemptable": "true"}, updateRevision="r2")
    group = {
        "apiVersion": "scheduling.volcano.sh/v1beta1",
        "kind": "PodGroup",
        "metadata": {"name": "podgroup-uid-w"},
        "spec": {"minMember": 1, "queue": "gold", "minResources": {"cpu": "4"}},
        "status": {"phase": "Running"},
    }
    pod = a_pod("w-0", owner=owner, labels={"app": "w", "controller-revision-hash": "r2"})
    old = a_pod("w-1", owner=owner, labels={"app": "w", "controller-revision-hash": "r1"}, annotations={GROUP: "x"})

    world = PureWorld(group, owner, old, controllers=[PodGroupController()]).settle()
    world.put(pod)
    world.change(type_of_stateful_set(), "w", {"metadata": {"labels": {"touched": "yes"}}})
    world.settle()

    changed = the_group(world)
    assert changed["spec"]["queue"] == "gold"
    assert changed["status"] == {"phase": "Running"}
    assert world.raw(Pod, "w-0")["metadata"]["annotations"][GROUP] == "podgroup-uid-w"


def type_of_stateful_set():
    from volcano.api.core import StatefulSet

    return StatefulSet


def test_a_workloads_group_is_brought_up_to_date_by_its_next_pod():
    owner = a_workload("ReplicaSet", "w")
    world = a_world(owner, a_pod("w-0", owner=owner, labels={"app": "w"}))

    bigger = a_pod("w-1", owner=owner, labels={"app": "w"})
    bigger["spec"]["containers"][0]["resources"]["requests"]["cpu"] = "2"
    controller = PodGroupController()
    fresh = PureWorld(owner, bigger, the_group(world))
    plan = controller.decide(_key("replicaset/w"), fresh.mirror, ())
    fresh.apply(plan)

    assert the_group(fresh)["spec"]["minResources"]["cpu"] == "2"


def _key(name: str):
    from volcano.api.meta import Key

    return Key("default", name)


def test_a_kill_between_the_two_writes_leaves_no_pod_without_its_group():
    world = PureWorld(a_pod("p", uid="u1"), controllers=[PodGroupController()])
    world.stop_after = 1
    with pytest.raises(Killed):
        world.settle()

    world.stop_after = None
    world.restart()
    world.settle()

    assert len(world.all(PodGroup)) == 1
    assert world.raw(Pod, "p")["metadata"]["annotations"] == {GROUP: "podgroup-u1"}
