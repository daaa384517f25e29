"""What an autoscaler decides and says about it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from volcano.api.core import HorizontalPodAutoscaler
from volcano.embedded.cluster.autoscaling.decision import decide_scaling, without_scale
from volcano.embedded.cluster.autoscaling.pace import ScalingMemory
from volcano.embedded.cluster.autoscaling.usage import MeasuredPod, ScaledPod

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
LONG_AGO = NOW - timedelta(hours=1)
PODS = [ScaledPod("p0", "Running", {"main": {"cpu": 100}}, False, True, LONG_AGO, LONG_AGO)]


def an_autoscaler(status: Any = None, **spec: Any) -> HorizontalPodAutoscaler:
    metrics = [{"type": "Resource", "resource": {"name": "cpu", "target": {"averageUtilization": 50}}}]
    body = {
        "metadata": {"name": "h", "generation": 3},
        "spec": {"minReplicas": 1, "maxReplicas": 5, "metrics": metrics, **spec},
        "status": status,
    }
    return msgspec.convert(body, HorizontalPodAutoscaler)


def decided(autoscaler: HorizontalPodAutoscaler, current: int, milli: int | None) -> Any:
    usage = {"p0": MeasuredPod({"main": {"cpu": milli}}, NOW)} if milli is not None else {}
    return decide_scaling(autoscaler, current, PODS, usage, ScalingMemory(), NOW)


def conditions(decision: Any) -> dict[str, tuple[str, str]]:
    return {each["type"]: (each["status"], each["reason"]) for each in decision.status["conditions"]}


def test_load_above_the_target_adds_replicas():
    decision = decided(an_autoscaler(), 1, 150)

    assert decision.replicas == 3
    assert decision.status["desiredReplicas"] == 3 and decision.status["currentReplicas"] == 1
    assert decision.status["observedGeneration"] == 3 and decision.status["lastScaleTime"] == "2026-01-01T12:00:00Z"
    assert decision.status["currentMetrics"][0]["resource"]["current"]["averageUtilization"] == 150
    assert conditions(decision) == {
        "AbleToScale": ("True", "SucceededRescale"),
        "ScalingActive": ("True", "ValidMetricFound"),
        "ScalingLimited": ("False", "DesiredWithinRange"),
    }
    message = "New size: 3; reason: cpu resource utilization (percentage of request) above target"
    assert decision.events == (("Normal", "SuccessfulRescale", message),)


def test_a_number_outside_the_bounds_is_corrected_without_metrics():
    assert decided(an_autoscaler(), 9, None).replicas == 5
    assert decided(an_autoscaler(minReplicas=3), 1, None).replicas == 3


def test_zero_replicas_switch_the_autoscaler_off():
    decision = decided(an_autoscaler(), 0, None)
    assert decision.replicas is None
    assert conditions(decision)["ScalingActive"] == ("False", "ScalingDisabled")


def test_without_metrics_nothing_changes_and_the_reason_is_told():
    decision = decided(an_autoscaler(), 2, None)
    assert decision.replicas is None and decision.status["desiredReplicas"] == 2
    assert conditions(decision)["ScalingActive"] == ("False", "FailedGetResourceMetric")
    assert [reason for _, reason, _ in decision.events] == ["FailedGetResourceMetric", "FailedComputeMetricsReplicas"]


def test_a_missing_metric_keeps_a_workload_from_shrinking_but_not_from_growing():
    missing = {"type": "Resource", "resource": {"name": "memory", "target": {"averageValue": "1Gi"}}}
    known = an_autoscaler().spec["metrics"][0]
    both = an_autoscaler(metrics=[missing, {"type": "Pods", "pods": {}}, known])
    assert decided(both, 1, 150).replicas == 3
    assert decided(both, 3, 10).replicas is None


def test_the_time_of_a_condition_stays_while_its_status_does():
    first = decided(an_autoscaler(), 1, 50)
    later = decide_scaling(
        an_autoscaler(first.status), 1, PODS, {"p0": MeasuredPod({"main": {"cpu": 50}})}, ScalingMemory(),
        NOW + timedelta(minutes=1),
    )  # fmt: skip
    assert later.status == first.status


def test_a_target_without_a_scale_is_told():
    decision = without_scale(an_autoscaler(), 'deployments.apps "x" not found', NOW)
    assert conditions(decision)["AbleToScale"] == ("False", "FailedGetScale")
