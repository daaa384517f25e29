"""How many replicas one metric asks for, by Kubernetes' rules for missing metrics and pods that are not ready. Pure."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from fractions import Fraction
from typing import Final

from volcano.api.core import FINISHED_POD_PHASES
from volcano.api.meta import JSON
from volcano.api.quantity import Quantity, QuantityError, parse_quantity
from volcano.embedded.cluster.autoscaling.usage import MeasuredPod, ScaledPod

TOLERANCE: Final = Fraction(1, 10)
CPU_INITIALIZATION_PERIOD: Final = timedelta(minutes=5)
INITIAL_READINESS_DELAY: Final = timedelta(seconds=30)
_NANOS_PER_MILLI: Final = 10**6


class MetricUnavailable(Exception):
    """No number of replicas follows from a metric; `reason` is the condition's and the Event's."""

    def __init__(self, reason: str, message: str) -> None:
        super().__init__(message)
        self.reason = reason


@dataclass(frozen=True, slots=True)
class ReplicaProposal:
    """What one metric asks for, the metric in words, and its current value for the status."""

    replicas: int
    metric: str
    current: JSON


@dataclass(frozen=True, slots=True)
class _Sorted:
    """The amounts of pods that count, and the names of those that do not: not ready, or without metrics."""

    amounts: dict[str, int]
    unready: frozenset[str]
    missing: frozenset[str]


def propose(
    metric: JSON, pods: Sequence[ScaledPod], usage: Mapping[str, MeasuredPod], replicas: int, now: datetime
) -> ReplicaProposal:
    """The proposal of one entry of spec.metrics."""
    kind = str(metric.get("type"))
    if kind not in ("Resource", "ContainerResource"):
        raise MetricUnavailable(f"FailedGet{kind}Metric", f"metrics of type {kind} are not served here")
    source = metric["resource" if kind == "Resource" else "containerResource"]
    name, container, target = str(source["name"]), str(source.get("container") or ""), source.get("target") or {}
    counted = _sort(name, container, pods, usage, now)
    if not counted.amounts:
        reason, why = f"FailedGet{kind}Metric", "no metrics returned from resource metrics API"
        if usage:
            why = "did not receive metrics for targeted pods (pods might be unready)"
        raise MetricUnavailable(reason, f"failed to get {name} utilization: {why}")
    what = f"{name} {'container ' if container else ''}resource"
    if target.get("averageUtilization") is None:
        per_pod = _milli(target.get("averageValue"), name)
        assumed = dict.fromkeys((pod.name for pod in pods), per_pod)
        count = _replicas(counted, replicas, lambda sums: Fraction(sum(sums.values()), len(sums) * per_pod), assumed)
        return ReplicaProposal(count, what, _status(metric, source, _average(counted.amounts, name)))
    wanted = int(target["averageUtilization"])
    requests = {pod.name: _request(pod, name, container) for pod in pods if _matters(pod)}
    if not sum(requests[each] for each in counted.amounts):
        raise MetricUnavailable(f"FailedGet{kind}Metric", f"failed to get {name} utilization: the pods request none")
    assumed = {pod: amount * max(100, wanted) // 100 for pod, amount in requests.items()}
    count = _replicas(counted, replicas, lambda sums: Fraction(_utilization(sums, requests), wanted), assumed)
    value = {"averageUtilization": _utilization(counted.amounts, requests), **_average(counted.amounts, name)}
    return ReplicaProposal(count, f"{what} utilization (percentage of request)", _status(metric, source, value))


def _sort(
    name: str, container: str, pods: Sequence[ScaledPod], usage: Mapping[str, MeasuredPod], now: datetime
) -> _Sorted:
    amounts, unready, missing = {}, set(), set()
    for pod in pods:
        if not _matters(pod):
            continue
        used = usage.get(pod.name)
        if pod.phase == "Pending":
            unready.add(pod.name)
        elif used is None:
            missing.add(pod.name)
        elif name == "cpu" and not _is_measured_ready(pod, used, now):
            unready.add(pod.name)
        else:
            chosen = [used.containers.get(container, {})] if container else used.containers.values()
            amounts[pod.name] = sum(each.get(name, 0) for each in chosen)
    return _Sorted(amounts, frozenset(unready), frozenset(missing))


def _matters(pod: ScaledPod) -> bool:
    return not pod.is_deleting and pod.phase not in FINISHED_POD_PHASES


def _is_measured_ready(pod: ScaledPod, used: MeasuredPod, now: datetime) -> bool:
    """CPU of a starting pod says nothing about its load: it counts once it is ready and measured while it was."""
    if pod.is_ready is None or pod.started_at is None or pod.ready_since is None:
        return False
    if pod.started_at + CPU_INITIALIZATION_PERIOD > now:
        return pod.is_ready and (used.at is None or used.at >= pod.ready_since + used.window)
    return pod.is_ready or pod.started_at + INITIAL_READINESS_DELAY <= pod.ready_since


def _replicas(
    counted: _Sorted, replicas: int, ratio_of: Callable[[Mapping[str, int]], Fraction], assumed: Mapping[str, int]
) -> int:
    """Pods without metrics count so that they damp the change: with what is aimed at when scaling down, else with 0."""
    ratio = ratio_of(counted.amounts)
    counts_unready = bool(counted.unready) and ratio > 1
    if not counts_unready and not counted.missing:
        return replicas if _is_close(ratio) else math.ceil(ratio * len(counted.amounts))
    amounts = dict(counted.amounts)
    if ratio != 1:
        amounts |= {pod: assumed[pod] if ratio < 1 else 0 for pod in counted.missing}
    if counts_unready:
        amounts |= dict.fromkeys(counted.unready, 0)
    damped = ratio_of(amounts)
    if _is_close(damped) or (ratio < 1) != (damped < 1):
        return replicas
    count = math.ceil(damped * len(amounts))
    return replicas if (count > replicas) == (damped < 1) else count


def _is_close(ratio: Fraction) -> bool:
    return abs(ratio - 1) <= TOLERANCE


def _request(pod: ScaledPod, name: str, container: str) -> int:
    total = 0
    for each, amounts in pod.requests.items():
        if container and each != container:
            continue
        if name not in amounts:
            message = (
                f"failed to get {name} utilization: missing request for {name} in container {each} of Pod {pod.name}"
            )
            raise MetricUnavailable("FailedGetResourceMetric", message)
        total += amounts[name]
    return total


def _utilization(amounts: Mapping[str, int], requests: Mapping[str, int]) -> int:
    total = sum(requests.get(pod, 0) for pod in amounts)
    return sum(amounts.values()) * 100 // total if total else 0


def _milli(value: object, name: str) -> int:
    try:
        amount = parse_quantity(str(value)).milli
    except QuantityError:
        amount = 0
    if amount <= 0:
        raise MetricUnavailable("InvalidMetricSourceType", f"the target of {name} has no positive average value")
    return amount


def _average(amounts: Mapping[str, int], name: str) -> JSON:
    mean = sum(amounts.values()) // len(amounts)
    if name == "memory":
        return {"averageValue": str(mean // 1000)}
    return {"averageValue": str(Quantity(mean * _NANOS_PER_MILLI))}


def _status(metric: JSON, source: JSON, value: JSON) -> JSON:
    field = "resource" if metric["type"] == "Resource" else "containerResource"
    kept = {key: source[key] for key in ("name", "container") if source.get(key)}
    return {"type": metric["type"], field: {**kept, "current": value}}
