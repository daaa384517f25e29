"""rescheduling: pods are moved from busy nodes while others idle."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from volcano.scheduler.core.assemble import put_usage
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.testing.clusters import Cluster, cluster, configuration, gang, machine, running

START = datetime(2026, 1, 1, tzinfo=UTC)
THRESHOLDS = {"thresholds": {"cpu": 20, "memory": 20}, "targetThresholds": {"cpu": 60, "memory": 80}}
ARGUMENTS = {
    "interval": "5m",
    "metricsPeriod": "10m",
    "strategies": [{"name": "lowNodeUtilization", "params": THRESHOLDS}],
}


def given(**jobs: Any) -> Cluster:
    nodes = dict.fromkeys(("busy", "idle", "between"), "cpu=10, memory=10Gi")
    return cluster(nodes=nodes, jobs=jobs, now=START)


def evicted(
    of: Cluster,
    usage: dict[str, tuple[float, float]],
    *,
    after: int = 6,
    actions: str = "shuffle",
    plugins: str = "rescheduling",
    **arguments: Any,
) -> list[str]:
    """Who is evicted so many minutes after the first cycle."""
    snapshot = of.snapshot()
    measured = START.isoformat()
    put_usage(snapshot, {node: {"cpu": c, "memory": m, "measured": measured} for node, (c, m) in usage.items()})
    config = configuration(actions, plugins, arguments={"rescheduling": ARGUMENTS | arguments})
    decisions: Decisions | None = None
    for minutes in (0, after):
        snapshot.now = START + timedelta(minutes=minutes)
        decisions = cycle(snapshot, config, SeededChance(0))
    assert decisions is not None
    return [eviction.task.removeprefix("default/") for eviction in decisions.evictions]


USAGE = {"busy": (90.0, 50.0), "idle": (5.0, 5.0), "between": (40.0, 40.0)}


def test_pods_leave_a_busy_node_until_it_is_less_busy_than_it_should_be() -> None:
    of = given(a=running(["busy"] * 6, each="cpu=1, memory=1Gi"), b=running(["between"]))

    assert len(evicted(of, USAGE)) == 4


def test_the_least_important_go_first() -> None:
    pods = running(["busy"] * 4, each="cpu=2, memory=1Gi", task_priorities=[5, 1, 9, 3])

    assert evicted(given(a=pods), USAGE) == ["a-1", "a-3"]


def test_no_more_leave_than_idle_nodes_have_room_for() -> None:
    of = given(a=running(["busy"] * 6, each="cpu=3, memory=1Gi"))

    assert len(evicted(of, USAGE | {"idle": (15.0, 15.0), "busy": (400.0, 50.0)})) == 2


@pytest.mark.parametrize(
    "usage",
    [
        {"busy": (50.0, 50.0), "idle": (5.0, 5.0)},  # nobody is too busy
        {"busy": (90.0, 50.0), "idle": (30.0, 5.0)},  # nobody is idle
        {"busy": (90.0, 50.0)},  # of the others nothing is known
        {},
    ],
)
def test_without_both_a_busy_and_an_idle_node_nobody_is_moved(usage: dict[str, tuple[float, float]]) -> None:
    assert evicted(given(a=running(["busy"] * 4)), usage) == []


def test_an_idle_node_that_takes_no_pods_is_no_help() -> None:
    of = given(a=running(["busy"] * 4))
    of = replace(of, objects={**of.objects, "nodes": [_closed(node) for node in of.objects["nodes"]]})

    assert evicted(of, USAGE) == []


def _closed(node: dict[str, Any]) -> dict[str, Any]:
    return {**node, "spec": {"unschedulable": node["metadata"]["name"] == "idle"}}


def test_it_happens_once_in_an_interval_and_the_first_one_is_waited_for() -> None:
    of = given(a=running(["busy"] * 4))

    assert evicted(of, USAGE, after=5) == []
    assert evicted(of, USAGE, after=6, interval="10m") == []
    assert evicted(of, USAGE, after=6, interval="odd") != []


def test_unknown_strategies_and_odd_parameters_move_nobody() -> None:
    of = given(a=running(["busy"] * 4))

    assert evicted(of, USAGE, strategies=[{"name": "other"}]) == []
    assert evicted(of, USAGE, strategies=[{"name": "lowNodeUtilization", "params": "x"}]) == []


def test_the_quality_of_service_tells_equals_apart() -> None:
    of = cluster(
        nodes={"busy": machine("cpu=10, memory=10Gi"), "idle": machine("cpu=10, memory=10Gi")},
        jobs={"a": running(["busy"], each="cpu=3"), "b": running(["busy"], each="cpu=3, memory=1Gi")},
        now=START,
    )
    for pod in of.objects["pods"]:
        container = pod["spec"]["containers"][0]["resources"]
        container["limits"] = container["requests"] if pod["metadata"]["name"] == "a-0" else {}
        if pod["metadata"]["name"] == "a-0":
            container["requests"] = container["limits"] = {"cpu": "3", "memory": "1Gi"}

    assert evicted(of, {"busy": (80.0, 10.0), "idle": (5.0, 5.0)}) == ["b-0"]


def test_pods_placed_in_the_same_cycle_do_not_count_as_moved() -> None:
    of = given(
        old=running(["busy"], each="cpu=1, memory=1Gi", task_priorities=[10]),
        new=gang(1, "cpu=4, memory=1Gi", spec={"nodeSelector": {"kubernetes.io/hostname": "busy"}}),
    )

    assert evicted(of, USAGE, actions="allocate, shuffle", plugins="gang; rescheduling, predicates") == ["old-0"]
