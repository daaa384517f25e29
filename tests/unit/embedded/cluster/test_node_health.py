"""Nodes that fall silent: conditions, taints, pods, evictions, and pods of nodes that are gone."""

from __future__ import annotations

from datetime import datetime, timedelta

import pytest

from volcano.api.core import Lease, Node, Pod
from volcano.embedded.cluster.node_health import NOT_READY, UNREACHABLE, NodeHealthController
from volcano.embedded.cluster.pod_garbage import PodGarbageController
from volcano.embedded.cluster.taint_eviction import TaintEvictionController
from volcano.testing.pure_world import START, PureWorld


def a_node(name: str = "n1", *, ready: str = "True", taints: list[dict] | None = None, **spec) -> dict:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "creationTimestamp": START.isoformat()},
        "spec": {"taints": taints or [], **spec},
        "status": {"conditions": conditions},
    }


def a_lease(name: str = "n1", *, renewed: datetime = START, lasts: int = 40) -> dict:
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": name, "namespace": "kube-node-lease"},
        "spec": {"renewTime": renewed.isoformat(), "leaseDurationSeconds": lasts},
    }


def a_pod(
    name: str, *, node: str = "n1", phase: str = "Running", tolerations: list[dict] | None = None, **metadata
) -> dict:
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, **metadata},
        "spec": {"nodeName": node, "tolerations": tolerations or []} if node else {},
        "status": {"phase": phase, "conditions": [{"type": "Ready", "status": "True"}]},
    }


def tolerating(seconds: int | None = None) -> list[dict]:
    extra = {"tolerationSeconds": seconds} if seconds is not None else {}
    return [{"key": key, "operator": "Exists", "effect": "NoExecute", **extra} for key in (NOT_READY, UNREACHABLE)]


def a_world(*objects: dict, default_toleration: int = 0) -> PureWorld:
    evictions = TaintEvictionController(default_toleration=timedelta(seconds=default_toleration))
    return PureWorld(*objects, controllers=[NodeHealthController(), evictions]).settle()


def taints(world: PureWorld, name: str = "n1") -> list[tuple[str, str]]:
    node = world.get(Node, name)
    assert node is not None
    return [(taint.key, taint.effect) for taint in node.spec.taints]


def ready(world: PureWorld, name: str = "n1") -> str:
    node = world.get(Node, name)
    assert node is not None
    return next((c.status for c in node.status.conditions if c.type == "Ready"), "")


def test_a_node_whose_lease_is_renewed_stays_ready():
    world = a_world(a_node(), a_lease())

    for seconds in range(10, 200, 10):
        world.change(
            Lease, "n1", {"spec": {"renewTime": (START + timedelta(seconds=seconds)).isoformat()}}, "kube-node-lease"
        )
        world.advance(timedelta(seconds=10))

    assert ready(world) == "True"
    assert world.writes == 0


def test_a_node_whose_lease_ran_out_is_unknown_and_unreachable():
    world = a_world(a_node(), a_lease())

    world.advance(timedelta(seconds=39))
    assert ready(world) == "True"

    world.advance(timedelta(seconds=1))
    assert ready(world) == "Unknown"
    assert taints(world) == [(UNREACHABLE, "NoSchedule"), (UNREACHABLE, "NoExecute")]
    node = world.get(Node, "n1")
    assert node is not None
    assert {c.type: c.status for c in node.status.conditions} == dict.fromkeys(
        ["Ready", "MemoryPressure", "DiskPressure", "PIDPressure"], "Unknown"
    )
    assert "NodeNotReady" in world.reasons()


def test_a_long_lease_is_respected():
    world = a_world(a_node(), a_lease(lasts=300))

    world.advance(timedelta(seconds=299))
    assert ready(world) == "True"

    world.advance(timedelta(seconds=1))
    assert ready(world) == "Unknown"


def test_after_a_restart_nodes_have_their_time_from_then():
    world = a_world(a_node(), a_lease())
    world.now += timedelta(hours=1)
    world.restart()
    world.settle()
    assert ready(world) == "True"

    world.advance(timedelta(seconds=39))
    assert ready(world) == "True"

    world.advance(timedelta(seconds=1))
    assert ready(world) == "Unknown"


@pytest.mark.parametrize("wrong", [timedelta(hours=-1), timedelta(hours=1)])
def test_a_node_whose_clock_is_wrong_is_judged_by_when_its_reports_came(wrong: timedelta):
    world = a_world(a_node(), a_lease(renewed=START + wrong))

    for seconds in range(10, 200, 10):
        renewed = START + wrong + timedelta(seconds=seconds)
        world.change(Lease, "n1", {"spec": {"renewTime": renewed.isoformat()}}, "kube-node-lease")
        world.advance(timedelta(seconds=10))
    assert ready(world) == "True"

    world.advance(timedelta(seconds=90))
    assert ready(world) == "Unknown"


def test_a_node_that_never_reported_is_unknown_in_the_end():
    world = a_world(a_node(ready=""))

    world.advance(timedelta(seconds=41))

    assert ready(world) == "Unknown"


def test_a_node_that_comes_back_loses_its_taints():
    world = a_world(a_node(taints=[{"key": "mine", "effect": "NoSchedule"}]), a_lease())
    world.advance(timedelta(seconds=60))
    assert len(taints(world)) == 3

    world.change(Lease, "n1", {"spec": {"renewTime": world.now.isoformat()}}, "kube-node-lease")
    world.change(Node, "n1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    world.settle()

    assert taints(world) == [("mine", "NoSchedule")]


def test_a_node_that_says_it_is_not_ready_is_tainted_so():
    world = a_world(a_node(ready="False"), a_lease())

    assert taints(world) == [(NOT_READY, "NoSchedule"), (NOT_READY, "NoExecute")]


@pytest.mark.parametrize(
    ("condition", "taint"),
    [("MemoryPressure", "memory-pressure"), ("DiskPressure", "disk-pressure"), ("PIDPressure", "pid-pressure")],
)
def test_pressure_is_a_taint(condition: str, taint: str):
    node = a_node()
    node["status"]["conditions"].append({"type": condition, "status": "True"})

    world = a_world(node, a_lease())

    assert taints(world) == [(f"node.kubernetes.io/{taint}", "NoSchedule")]


def test_a_cordoned_node_is_tainted_and_an_uncordoned_one_is_not():
    world = a_world(a_node(unschedulable=True), a_lease())
    assert taints(world) == [("node.kubernetes.io/unschedulable", "NoSchedule")]

    world.change(Node, "n1", {"spec": {"unschedulable": None}})
    world.settle()

    assert taints(world) == []


def test_pods_of_a_silent_node_are_not_ready():
    world = a_world(a_node(), a_lease(), a_pod("p", tolerations=tolerating()))

    world.advance(timedelta(seconds=60))

    conditions = {c["type"]: c["status"] for c in world.raw(Pod, "p")["status"]["conditions"]}
    assert conditions["Ready"] == "False"


# -- stalls of the observer -----------------------------------------------------------------------------------
@pytest.mark.parametrize("watched", [0, 1, 5, 9, 10, 29, 39], ids=lambda seconds: f"after {seconds} s")
@pytest.mark.parametrize("stalled", [timedelta(seconds=41), timedelta(hours=1)], ids=str)
def test_after_a_stall_of_the_controller_nodes_have_a_whole_grace_period(watched: int, stalled: timedelta):
    world = a_world(a_node(), a_lease(), a_pod("p"))
    world.advance(timedelta(seconds=watched))

    world.now += stalled  # nothing runs meanwhile: neither nodes nor controllers
    world.advance(timedelta(seconds=39))
    assert ready(world) == "True"
    assert len(world.all(Pod)) == 1

    world.advance(timedelta(seconds=1))
    assert ready(world) == "Unknown"


def test_an_outage_that_began_before_a_stall_is_counted_anew_for_evictions():
    world = a_world(a_node(), a_lease(), a_pod("p", tolerations=tolerating(300)))
    world.advance(timedelta(seconds=60))
    assert taints(world)

    world.now += timedelta(hours=1)
    world.advance(timedelta(seconds=299))
    assert len(world.all(Pod)) == 1

    world.advance(timedelta(seconds=1))
    assert world.all(Pod) == []


def test_a_taint_that_is_not_about_an_outage_is_counted_through_a_stall():
    toleration = {"key": "k", "operator": "Exists", "tolerationSeconds": 60}
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": START.isoformat()}
    world = a_world(a_node(taints=[taint]), a_lease(lasts=9000), a_pod("p", tolerations=[toleration]))

    world.now += timedelta(hours=1)
    world.settle()

    assert world.all(Pod) == []


# -- evictions ------------------------------------------------------------------------------------------------
def test_pods_are_evicted_when_their_patience_with_the_taint_is_over():
    world = a_world(
        a_node(), a_lease(),
        a_pod("now"), a_pod("later", tolerations=tolerating(300)), a_pod("never", tolerations=tolerating()),
    )  # fmt: skip

    world.advance(timedelta(seconds=40))
    assert [pod.name for pod in world.all(Pod)] == ["later", "never"]

    world.advance(timedelta(seconds=299))
    assert [pod.name for pod in world.all(Pod)] == ["later", "never"]

    world.advance(timedelta(seconds=1))
    assert [pod.name for pod in world.all(Pod)] == ["never"]


def test_a_pod_that_says_nothing_of_a_silent_node_has_five_minutes():
    world = PureWorld(a_node(), a_lease(), a_pod("p"), controllers=[NodeHealthController(), TaintEvictionController()])

    world.advance(timedelta(seconds=339))
    assert len(world.all(Pod)) == 1

    world.advance(timedelta(seconds=1))
    assert world.all(Pod) == []


def test_patience_counts_from_when_the_taint_was_added_whoever_watches():
    taint = {"key": "k", "effect": "NoExecute", "timeAdded": (START - timedelta(seconds=50)).isoformat()}
    toleration = {"key": "k", "operator": "Exists", "tolerationSeconds": 60}
    world = a_world(a_node(taints=[taint]), a_lease(lasts=600), a_pod("p", tolerations=[toleration]))

    world.advance(timedelta(seconds=9))
    assert len(world.all(Pod)) == 1

    world.restart()
    world.advance(timedelta(seconds=1))
    assert world.all(Pod) == []


def test_a_pod_stays_if_the_taint_goes_in_time():
    world = a_world(a_node(), a_lease(), a_pod("p", tolerations=tolerating(300)))
    world.advance(timedelta(seconds=100))

    world.change(
        Lease, "n1", {"spec": {"renewTime": world.now.isoformat(), "leaseDurationSeconds": 3600}}, "kube-node-lease"
    )
    world.change(Node, "n1", {"status": {"conditions": [{"type": "Ready", "status": "True"}]}})
    world.advance(timedelta(seconds=1000))

    assert len(world.all(Pod)) == 1


def test_a_pod_bound_to_a_tainted_node_later_is_evicted_too():
    world = a_world(a_node(taints=[{"key": "k", "effect": "NoExecute"}]), a_lease(lasts=600))

    world.put(a_pod("p"))
    world.settle()

    assert world.all(Pod) == []


@pytest.mark.parametrize(
    ("toleration", "stays"),
    [
        ({"key": "k", "operator": "Equal", "value": "v"}, True),
        ({"key": "k", "value": "v"}, True),
        ({"key": "k", "value": "w"}, False),
        ({"operator": "Exists"}, True),
        ({"key": "k", "operator": "Exists", "effect": "NoSchedule"}, False),
        ({"key": "other", "operator": "Exists"}, False),
    ],
)
def test_which_tolerations_count(toleration: dict, stays: bool):
    taint = {"key": "k", "value": "v", "effect": "NoExecute"}

    world = a_world(a_node(taints=[taint]), a_lease(lasts=600), a_pod("p", tolerations=[toleration]))

    assert bool(world.all(Pod)) is stays


# -- pods nobody will end -------------------------------------------------------------------------------------
def a_garbage_world(*objects: dict, **settings) -> PureWorld:
    return PureWorld(*objects, controllers=[PodGarbageController(**settings)]).settle()


def test_pods_of_a_node_that_is_gone_fail_and_go_after_a_while():
    world = a_garbage_world(a_node(), a_pod("p", finalizers=["example.com/hold"]))

    world.delete(Node, "n1")
    world.advance(timedelta(seconds=39))
    assert world.raw(Pod, "p")["status"]["phase"] == "Running"

    world.advance(timedelta(seconds=1))
    pod = world.raw(Pod, "p")
    assert pod["status"]["phase"] == "Failed"
    assert pod["metadata"]["deletionTimestamp"]


def test_pods_stay_if_their_node_is_registered_again_in_time():
    world = a_garbage_world(a_node(), a_pod("p"))
    world.delete(Node, "n1")
    world.advance(timedelta(seconds=20))

    world.put(a_node())
    world.advance(timedelta(minutes=5))

    assert world.raw(Pod, "p")["status"]["phase"] == "Running"


def test_a_pod_deleted_before_it_had_a_node_goes():
    world = a_garbage_world(a_pod("p", node="", finalizers=["example.com/hold"]))
    world.delete(Pod, "p")
    world.change(Pod, "p", {"metadata": {"finalizers": None, "labels": {"x": "y"}}})

    world.settle()

    assert world.all(Pod) == []


def test_the_oldest_finished_pods_go_when_there_are_too_many():
    pods = [
        a_pod(f"p{i}", phase="Succeeded", creationTimestamp=(START + timedelta(seconds=9 - i)).isoformat())
        for i in range(5)
    ]
    world = a_garbage_world(a_node(), *pods, a_pod("running"), max_finished_pods=3)

    world.advance(timedelta(seconds=20))

    assert [pod.name for pod in world.all(Pod)] == ["p0", "p1", "p2", "running"]


def test_terminating_pods_of_a_node_out_of_service_go():
    node = a_node(ready="Unknown", taints=[{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}])
    world = a_garbage_world(node, a_pod("p", finalizers=["example.com/hold"]))

    world.delete(Pod, "p")
    world.settle()

    assert world.raw(Pod, "p")["status"]["phase"] == "Failed"
