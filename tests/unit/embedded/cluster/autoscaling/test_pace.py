"""How fast an autoscaler follows its metrics."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from volcano.embedded.cluster.autoscaling.pace import MAX_REMEMBERED, ScalingMemory, paced

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def asked(
    current: int, wanted: int, *, behavior: Any = None, memory: ScalingMemory | None = None, most: int = 100
) -> Any:
    spec = {"minReplicas": 1, "maxReplicas": most, **({"behavior": behavior} if behavior else {})}
    return paced(spec, current, wanted, memory or ScalingMemory(), NOW)


@pytest.mark.parametrize(("current", "wanted", "expected"), [(1, 50, 4), (10, 50, 20), (3, 5, 5), (5, 5, 5), (5, 2, 2)])
def test_without_rules_a_workload_at_most_doubles_per_round(current, wanted, expected):
    assert asked(current, wanted).replicas == expected


def test_the_largest_and_the_smallest_number_are_kept():
    assert asked(8, 30, most=10).limited == (
        True,
        "TooManyReplicas",
        "the desired replica count is more than the maximum replica count",
    )
    assert asked(8, 0).limited[1] == "TooFewReplicas"
    assert asked(8, 9).limited[0] is False


def test_a_workload_shrinks_only_to_the_largest_recommendation_of_five_minutes():
    memory = ScalingMemory([(NOW - timedelta(minutes=4), 7), (NOW - timedelta(minutes=6), 9)])
    result = asked(10, 2, memory=memory)
    assert (result.replicas, result.able[0]) == (7, "ScaleDownStabilized")


def test_a_window_for_growth_waits_for_the_smallest_recommendation():
    memory = ScalingMemory([(NOW - timedelta(seconds=20), 4)])
    rules = {
        "scaleUp": {
            "stabilizationWindowSeconds": 30,
            "policies": [{"type": "Percent", "value": 900, "periodSeconds": 15}],
        }
    }
    result = asked(3, 10, behavior=rules, memory=memory)
    assert (result.replicas, result.able[0]) == (4, "ScaleUpStabilized")


PODS_2 = {"type": "Pods", "value": 2, "periodSeconds": 60}
PERCENT_50 = {"type": "Percent", "value": 50, "periodSeconds": 60}


@pytest.mark.parametrize(("choice", "expected"), [("Max", 15), ("Min", 12), ("Disabled", 10)])
def test_policies_limit_growth_within_their_period(choice, expected):
    behavior = {"scaleUp": {"selectPolicy": choice, "policies": [PODS_2, PERCENT_50]}}
    assert asked(10, 50, behavior=behavior).replicas == expected


@pytest.mark.parametrize(("choice", "expected"), [("Max", 5), ("Min", 8), ("Disabled", 10)])
def test_policies_limit_shrinking_within_their_period(choice, expected):
    rules = {"selectPolicy": choice, "policies": [PODS_2, PERCENT_50], "stabilizationWindowSeconds": 0}
    result = asked(10, 1, behavior={"scaleDown": rules})
    assert result.replicas == expected
    assert result.limited[1] == "ScaleDownLimit"


def test_what_was_added_within_the_period_counts():
    memory = ScalingMemory(changes=[(NOW - timedelta(seconds=30), 2), (NOW - timedelta(seconds=90), 5)])
    assert asked(10, 50, behavior={"scaleUp": {"policies": [PODS_2]}}, memory=memory).replicas == 10


def test_the_memory_is_bounded():
    memory = ScalingMemory()
    for second in range(MAX_REMEMBERED + 10):
        memory.remember(NOW + timedelta(seconds=second), 1)
    assert len(memory.recommendations) == MAX_REMEMBERED
    memory.remember(NOW + timedelta(hours=3), 1)
    assert len(memory.recommendations) == 1
