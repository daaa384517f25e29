"""The network model: where pods are decides how long a step takes."""

from __future__ import annotations

import pytest

from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.network import NetworkModel, TrafficPattern

PATTERN = TrafficPattern(10, 1.0, {("ps", "worker"): 100.0})
MODEL = NetworkModel(
    same_node=1000.0, same_rack=100.0, across=50.0, racks={"a": "1", "b": "1", "c": "2"}, traffic={"job": PATTERN}
)
JOB = WorkloadJob("job", 0.0, 7.0, (Role("ps", 1, {"cpu": "1"}), Role("worker", 2, {"cpu": "1"})))


@pytest.mark.parametrize(
    ("nodes", "seconds"),
    [
        (("a", "a", "a"), 10 * (1.0 + 0.2)),
        (("a", "b", "b"), 10 * (1.0 + 2.0)),
        (("a", "b", "a"), 10 * (1.0 + 1.0)),
        (("a", "c", "c"), 10 * (1.0 + 4.0)),
        (("a", "b", "c"), 10 * (1.0 + 2.0)),
    ],
)
def test_a_step_lasts_as_long_as_its_slowest_pair_of_nodes(nodes: tuple[str, str, str], seconds: float) -> None:
    placed = list(zip(("ps", "worker", "worker"), nodes, strict=True))

    assert MODEL.run_time(JOB, placed) == pytest.approx(seconds)


def test_traffic_within_a_role_counts_each_pair_once() -> None:
    pattern = TrafficPattern(1, 0.0, {("worker", "worker"): 100.0})

    assert MODEL.step_cost(pattern, [("worker", "a"), ("worker", "b"), ("worker", "b")]) == 2.0


def test_a_job_without_traffic_runs_for_its_run_time() -> None:
    quiet = WorkloadJob("quiet", 0.0, 7.0, JOB.roles)

    assert MODEL.run_time(quiet, [("ps", "a")]) == 7.0
