"""The table of points is what a cycle really uses: with another rule for a point, the cycle that asks it changes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.points import POINTS, EveryPoint
from volcano.testing.clusters import CycleOutcome, cluster, gang, running, share

TWO_NODES = {"n1": "cpu=4", "n2": "cpu=4"}
RACKS = {"hyperNodeRealNodes": {"r1": ["n1"], "r2": ["n2"]}, "hyperNodesByTier": {"1": ["r1", "r2"]}}


class AlwaysFirst(Plugin):
    """Chooses the first candidate; without it no cycle needs `best_node`."""

    name = "first"

    def best_node(self, task: Any, nodes: Any, scores: Any) -> Any:
        return nodes[0]


def plain() -> CycleOutcome:
    """Two queues with jobs of two tasks, one of which does not fit."""
    given = cluster(
        nodes=TWO_NODES,
        jobs={
            "a": gang(2, min_resources="cpu=1"),
            "b": gang(2, queue="other"),
            "c": gang(2, queue="other"),
            "large": gang(12, min=12),
        },
        queues={"other": share()},
    )
    return given.schedule(
        "enqueue, allocate", "priority, gang; predicates, nodeorder, proportion, binpack, first", knowing=[AlwaysFirst]
    )


def sub_groups() -> CycleOutcome:
    """A job of two sub-groups, of which one fits."""
    policy = {"name": "w", "matchLabelKeys": ["volcano.sh/task-spec"]}
    given = cluster(nodes={"n1": "cpu=1"}, jobs={"a": gang(2, policies=[policy])})
    for pod, role in zip(given.objects["pods"], ("x", "y"), strict=True):
        pod["metadata"]["labels"]["volcano.sh/task-spec"] = role
    return given.schedule("enqueue, allocate", "priority, gang; predicates")


def topology() -> CycleOutcome:
    given = cluster(
        nodes=TWO_NODES,
        jobs={"a": gang(2, topology={"mode": "hard", "highestTierAllowed": 1})},
        extra=RACKS,
    )
    return given.schedule("enqueue, allocate", "gang; predicates, network-topology-aware")


def preempting(**configured: bool) -> CycleOutcome:
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"low": running(["n1", "n1"], priority=1), "high": gang(1, priority=9)})
    return given.schedule(
        "enqueue, allocate, preempt",
        "priority, gang, conformance; predicates, proportion",
        configurations={"preempt": configured},
    )


def reclaiming() -> CycleOutcome:
    given = cluster(
        nodes={"n1": "cpu=4"},
        jobs={
            "one": running(["n1", "n1"], queue="one", min=0),
            "two": running(["n1", "n1"], queue="two", min=0),
            "mine": gang(1),
        },
        queues={"one": share(), "two": share()},
    )
    return given.schedule("enqueue, allocate, reclaim", "priority, gang, conformance; predicates, proportion")


def gang_preempting() -> CycleOutcome:
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"low": running(["n1", "n1"], priority=1), "high": gang(1, priority=9)})
    return given.schedule("enqueue, allocate, gangpreempt", "priority, gang, conformance; predicates")


def shuffling() -> CycleOutcome:
    return cluster(nodes={"n1": "cpu=2"}, jobs={"low": running(["n1"])}).schedule("shuffle", "tdm")


CYCLES: dict[str, Callable[[], CycleOutcome]] = {
    **dict.fromkeys(POINTS, plain),
    **dict.fromkeys(["sub_job_order", "sub_job_ready", "sub_job_pipelined"], sub_groups),
    **dict.fromkeys(["domain_gradient_for_job", "domain_gradient_for_sub_job", "domain_score"], topology),
    **dict.fromkeys(["job_starving", "preemptable"], preempting),
    **dict.fromkeys(
        ["simulate_filter", "simulate_allocatable"], lambda: preempting(enableTopologyAwarePreemption=True)
    ),
    **dict.fromkeys(["reclaimable", "preemptive", "victim_queue_order"], reclaiming),
    "evictable": gang_preempting,
    "victim_tasks": shuffling,
}


class Used(Exception):
    pass


def raising(tiers: Any) -> Any:
    def ask(*about: Any) -> Any:
        raise Used

    return ask


@pytest.mark.parametrize("name", POINTS)
def test_a_cycle_that_asks_a_point_goes_through_its_rule(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    CYCLES[name]()
    monkeypatch.setitem(POINTS, name, replace(POINTS[name], combine=raising))

    with pytest.raises(Used):
        CYCLES[name]()


@pytest.mark.parametrize("point", POINTS.values(), ids=lambda point: point.name)
def test_every_point_has_a_protocol_that_type_checkers_apply_to_plugins(point: Any) -> None:
    methods = [name for name in vars(point.protocol) if not name.startswith("_")]

    assert methods == [point.name]
    assert point.protocol in EveryPoint.__mro__
    assert point.protocol.__doc__
    assert point.combine.__doc__


def test_a_plugin_has_no_method_of_a_point_that_it_does_not_define() -> None:
    assert [name for name in POINTS if hasattr(Plugin, name)] == []
