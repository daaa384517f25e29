"""What one autoscaler does now: the replicas to set, its status and its Event. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from volcano.api.core import HorizontalPodAutoscaler
from volcano.api.meta import JSON
from volcano.api.times import timestamp
from volcano.embedded.cluster.autoscaling.pace import ScalingMemory, paced
from volcano.embedded.cluster.autoscaling.proposals import MetricUnavailable, ReplicaProposal, propose
from volcano.embedded.cluster.autoscaling.usage import MeasuredPod, ScaledPod


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """`replicas` is None where the workload stays as it is; `events` are type, reason and message."""

    status: JSON
    replicas: int | None = None
    events: tuple[tuple[str, str, str], ...] = ()


def without_scale(autoscaler: HorizontalPodAutoscaler, message: str, now: datetime) -> ScalingDecision:
    """The target has no scale that can be read."""
    told = f"the HPA controller was unable to get the target's current scale: {message}"
    status = dict(autoscaler.status or {})
    _set_condition(status, "AbleToScale", False, "FailedGetScale", told, now)
    return ScalingDecision(status, None, (("Warning", "FailedGetScale", message),))


def decide_scaling(
    autoscaler: HorizontalPodAutoscaler,
    current: int,
    pods: Sequence[ScaledPod],
    usage: Mapping[str, MeasuredPod],
    memory: ScalingMemory,
    now: datetime,
) -> ScalingDecision:
    """One round for a target with `current` wanted replicas."""
    spec, status = autoscaler.spec, dict(autoscaler.status or {})
    status |= {"currentReplicas": current, "observedGeneration": autoscaler.metadata.generation}
    _set_condition(status, "AbleToScale", True, "SucceededGetScale",
                   "the HPA controller was able to get the target's current scale", now)  # fmt: skip
    least, most = int(spec.get("minReplicas") or 1), int(spec["maxReplicas"])
    if current == 0 and least != 0:
        _set_condition(status, "ScalingActive", False, "ScalingDisabled",
                       "scaling is disabled since the replica count of the target is zero", now)  # fmt: skip
        return ScalingDecision(status | {"desiredReplicas": 0})
    if current > most:
        return _changed(status, current, most, "Current number of replicas above Spec.MaxReplicas", memory, now)
    if current < least:
        return _changed(status, current, least, "Current number of replicas below Spec.MinReplicas", memory, now)
    try:
        best, proposals = _best(spec.get("metrics") or [], pods, usage, current, now)
    except MetricUnavailable as error:
        told = f"the HPA was unable to compute the replica count: {error}"
        _set_condition(status, "ScalingActive", False, error.reason, told, now)
        status["desiredReplicas"] = current
        failed = ("Warning", "FailedComputeMetricsReplicas", f"invalid metrics: {error}")
        return ScalingDecision(status, None, (("Warning", error.reason, str(error)), failed))
    status["currentMetrics"] = [each.current for each in proposals]
    _set_condition(status, "ScalingActive", True, "ValidMetricFound",
                   f"the HPA was able to successfully calculate a replica count from {best.metric}", now)  # fmt: skip
    memory.remember(now, best.replicas)
    result = paced(spec, current, best.replicas, memory, now)
    _set_condition(status, "AbleToScale", True, *result.able, now)
    _set_condition(status, "ScalingLimited", *result.limited, now)
    if result.replicas == current:
        return ScalingDecision(status | {"desiredReplicas": current})
    why = f"{best.metric} above target" if result.replicas > current else "All metrics below target"
    return _changed(status, current, result.replicas, why, memory, now)


def _best(
    metrics: Sequence[JSON], pods: Sequence[ScaledPod], usage: Mapping[str, MeasuredPod], current: int, now: datetime
) -> tuple[ReplicaProposal, list[ReplicaProposal]]:
    """The largest proposal. While a metric is missing the workload is not made smaller."""
    found: list[ReplicaProposal] = []
    problem: MetricUnavailable | None = None
    for metric in metrics:
        try:
            found.append(propose(metric, pods, usage, current, now))
        except MetricUnavailable as error:
            problem = problem or error
    best = max(found, key=lambda each: each.replicas, default=None)
    if best is None or (problem is not None and best.replicas < current):
        raise problem or MetricUnavailable("InvalidMetricSourceType", "the autoscaler has no metrics")
    return best, found


def _changed(
    status: JSON, current: int, replicas: int, why: str, memory: ScalingMemory, now: datetime
) -> ScalingDecision:
    memory.remember_change(now, replicas - current)
    _set_condition(status, "AbleToScale", True, "SucceededRescale",
                   f"the HPA controller was able to update the target scale to {replicas}", now)  # fmt: skip
    status |= {"desiredReplicas": replicas, "lastScaleTime": timestamp(now)}
    return ScalingDecision(status, replicas, (("Normal", "SuccessfulRescale", f"New size: {replicas}; reason: {why}"),))


def _set_condition(status: JSON, kind: str, holds: bool, reason: str, message: str, now: datetime) -> None:
    """Set a condition; the time of its last transition stays unless its status changes."""
    conditions: list[Any] = [dict(each) for each in status.get("conditions") or []]
    value = "True" if holds else "False"
    known = next((each for each in conditions if each.get("type") == kind), None)
    if known is None:
        known = {"type": kind}
        conditions.append(known)
    if known.get("status") != value:
        known["lastTransitionTime"] = timestamp(now)
    known |= {"status": value, "reason": reason, "message": message}
    status["conditions"] = conditions
