"""The figures about a run."""

from __future__ import annotations

import pytest

from volcano.simulator.clusters import default_queues
from volcano.simulator.figures import bounded_slowdown, figures, percentile
from volcano.simulator.jobs import JobOutcome, Role, WorkloadJob
from volcano.simulator.timelines import Timelines


def outcome(name: str, submit: float, start: float | None, run_time: float, cpus: int = 1) -> JobOutcome:
    job = WorkloadJob(name, submit, run_time, (Role("task", cpus, {"cpu": "1"}),))
    return JobOutcome(job, start=start, end=None if start is None else start + run_time)


def offered(cpus: float) -> Timelines:
    return Timelines(capacity=[(0.0, {"cpu": cpus})])


def test_a_short_run_time_counts_as_ten_seconds() -> None:
    assert bounded_slowdown(outcome("a", 0.0, 19.0, 1.0)) == 2.0
    assert bounded_slowdown(outcome("b", 0.0, 0.0, 1.0)) == 1.0
    assert bounded_slowdown(outcome("c", 0.0, 100.0, 50.0)) == 3.0


@pytest.mark.parametrize(("percent", "expected"), [(0, 1.0), (50, 2.5), (100, 4.0)])
def test_percentiles_are_interpolated(percent: float, expected: float) -> None:
    assert percentile([1.0, 2.0, 3.0, 4.0], percent) == expected


def test_the_figures_of_a_run() -> None:
    ran = [outcome("a", 10.0, 10.0, 50.0, cpus=2), outcome("b", 20.0, 60.0, 50.0), outcome("c", 30.0, None, 5.0)]

    found = figures(ran, offered(2.0), default_queues(), {"d": "too large"}, 110.0)

    assert (found["jobs"], found["finished"], found["makespan"], found["evictions"]) == (4, 2, 100.0, 0)
    assert found["wait"] == {"mean": 20.0, "p50": 20.0, "p95": 38.0, "p99": 39.6, "max": 40.0}
    assert found["bounded_slowdown"]["mean"] == 1.4
    assert found["utilisation"] == {"cpu": 0.75}
    assert found["never_runnable"] == {"count": 1, "jobs": {"d": "too large"}}
    assert found["unfinished"] == {"count": 1, "jobs": ["c"]}


def test_nothing_finished() -> None:
    found = figures([], offered(2.0), default_queues(), {}, 0.0)

    assert (found["jobs"], found["wait"]["mean"], found["makespan"], found["utilisation"]) == (
        0,
        0.0,
        0.0,
        {"cpu": 0.0},
    )
