"""Shares of queues against what they deserve."""

from __future__ import annotations

import pytest

from volcano.simulator.clusters import queues_named
from volcano.simulator.fairness import jain, satisfaction, share_samples
from volcano.simulator.timelines import QueuePoint, Timelines


@pytest.mark.parametrize(
    ("values", "expected"), [([], 1.0), ([1.0, 1.0], 1.0), ([1.0, 0.0], 0.5), ([1.0, 0.0, 0.0, 0.0], 0.25)]
)
def test_jains_index(values: list[float], expected: float) -> None:
    assert jain(values) == expected


def test_a_queue_that_holds_all_leaves_the_other_unsatisfied() -> None:
    timelines = Timelines(
        queues={
            "greedy": [QueuePoint(0.0, {"cpu": 10.0}, {"cpu": 30.0})],
            "poor": [QueuePoint(50.0, {}, {"cpu": 30.0})],
        },
        capacity=[(0.0, {"cpu": 10.0})],
    )

    samples = share_samples(timelines, queues_named(["greedy", "poor"]), 0.0, 100.0, samples=10)

    assert [sample.deserved for sample in samples["greedy"]] == [1.0] * 5 + [0.5] * 5
    assert [sample.held for sample in samples["greedy"]] == [1.0] * 10
    assert satisfaction(samples["greedy"]) == 1.0
    assert satisfaction(samples["poor"]) == 0.0


def test_what_a_queue_does_not_want_goes_to_the_other() -> None:
    timelines = Timelines(
        queues={
            "a": [QueuePoint(0.0, {"cpu": 2.0}, {"cpu": 2.0})],
            "b": [QueuePoint(0.0, {"cpu": 8.0}, {"cpu": 9.0})],
        },
        capacity=[(0.0, {"cpu": 10.0})],
    )

    samples = share_samples(timelines, queues_named(["a", "b"]), 0.0, 1.0, samples=1)

    assert (samples["a"][0].deserved, samples["b"][0].deserved) == (0.2, 0.8)
