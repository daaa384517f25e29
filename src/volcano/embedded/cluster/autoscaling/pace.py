"""How fast an autoscaler may follow its metrics: stabilization windows, policies, minReplicas and maxReplicas. Pure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from volcano.api.meta import JSON

DEFAULT_SCALE_DOWN_WINDOW: Final = timedelta(minutes=5)
SCALE_UP_LIMIT_FACTOR: Final = 2
SCALE_UP_LIMIT_MINIMUM: Final = 4
MAX_REMEMBERED: Final = 1000
"""Recommendations and changes that are remembered of one autoscaler: more than an hour of each."""
MAX_MEMORY: Final = timedelta(hours=1)


@dataclass(slots=True)
class ScalingMemory:
    """What an autoscaler recommended and changed lately, with the times; lost in a restart, as in Kubernetes."""

    recommendations: list[tuple[datetime, int]] = field(default_factory=list)
    changes: list[tuple[datetime, int]] = field(default_factory=list)

    def remember(self, now: datetime, recommendation: int) -> None:
        self.recommendations = _recent([*self.recommendations, (now, recommendation)], now)
        self.changes = _recent(self.changes, now)

    def remember_change(self, now: datetime, difference: int) -> None:
        self.changes.append((now, difference))


@dataclass(frozen=True, slots=True)
class PacedReplicas:
    """The number of replicas that may be set now, and the conditions AbleToScale and ScalingLimited about it."""

    replicas: int
    able: tuple[str, str]  # reason, message
    limited: tuple[bool, str, str]  # whether, reason, message


def paced(spec: JSON, current: int, wanted: int, memory: ScalingMemory, now: datetime) -> PacedReplicas:
    """What becomes of the wanted number. The memory holds this recommendation already."""
    behavior = spec.get("behavior") or {}
    up, down = behavior.get("scaleUp") or {}, behavior.get("scaleDown") or {}
    stable = _stabilized(up, down, current, wanted, memory, now)
    able = ("ReadyForNewScale", "recommended size matches current size")
    if stable < wanted:
        able = (
            "ScaleUpStabilized",
            "recent recommendations were lower than current one, applying the lowest recent one",
        )
    elif stable > wanted:
        able = (
            "ScaleDownStabilized",
            "recent recommendations were higher than current one, applying the highest recent recommendation",
        )
    least, most = int(spec.get("minReplicas") or 1), int(spec["maxReplicas"])
    if stable > current:
        limit = _up_limit(up, current, memory, now) if behavior else _plain_up_limit(current)
        if stable > min(most, limit):
            reason = ("TooManyReplicas", "more than the maximum replica count") if most <= limit else (
                "ScaleUpLimit", "increasing faster than the maximum scale rate")  # fmt: skip
            return PacedReplicas(min(most, limit), able, (True, reason[0], f"the desired replica count is {reason[1]}"))
    elif stable < current or stable < least:
        limit = _down_limit(down, current, memory, now) if behavior else 0
        if stable < max(least, limit):
            reason = ("TooFewReplicas", "less than the minimum replica count") if least >= limit else (
                "ScaleDownLimit", "decreasing faster than the maximum scale rate")  # fmt: skip
            return PacedReplicas(
                max(least, limit), able, (True, reason[0], f"the desired replica count is {reason[1]}")
            )
    return PacedReplicas(
        stable, able, (False, "DesiredWithinRange", "the desired count is within the acceptable range")
    )


def _stabilized(up: JSON, down: JSON, current: int, wanted: int, memory: ScalingMemory, now: datetime) -> int:
    """At most the highest recent recommendation for scaling down, at least the lowest for scaling up."""
    up_from = now - timedelta(seconds=int(up.get("stabilizationWindowSeconds") or 0))
    down_window = down.get("stabilizationWindowSeconds")
    down_from = now - (DEFAULT_SCALE_DOWN_WINDOW if down_window is None else timedelta(seconds=int(down_window)))
    lowest = min([wanted, *(count for at, count in memory.recommendations if at > up_from)])
    highest = max([wanted, *(count for at, count in memory.recommendations if at > down_from)])
    return min(max(current, lowest), highest)


def _plain_up_limit(current: int) -> int:
    return max(SCALE_UP_LIMIT_FACTOR * current, SCALE_UP_LIMIT_MINIMUM)


def _up_limit(rules: JSON, current: int, memory: ScalingMemory, now: datetime) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return current
    limits = []
    for policy in rules.get("policies") or []:
        start = _at_start(policy, current, memory, now)
        value = int(policy["value"])
        limits.append(start + value if policy["type"] == "Pods" else math.ceil(start * (100 + value) / 100))
    if not limits:
        return _plain_up_limit(current)
    return max(current, min(limits) if rules.get("selectPolicy") == "Min" else max(limits))


def _down_limit(rules: JSON, current: int, memory: ScalingMemory, now: datetime) -> int:
    if rules.get("selectPolicy") == "Disabled":
        return current
    limits = []
    for policy in rules.get("policies") or []:
        start = _at_start(policy, current, memory, now)
        value = int(policy["value"])
        limits.append(start - value if policy["type"] == "Pods" else start * (100 - value) // 100)
    if not limits:
        return 0
    return min(current, max(limits) if rules.get("selectPolicy") == "Min" else min(limits))


def _at_start(policy: JSON, current: int, memory: ScalingMemory, now: datetime) -> int:
    """The number of replicas at the start of the policy's period."""
    since = now - timedelta(seconds=int(policy["periodSeconds"]))
    return current - sum(difference for at, difference in memory.changes if at > since)


def _recent(entries: Sequence[tuple[datetime, int]], now: datetime) -> list[tuple[datetime, int]]:
    return [(at, count) for at, count in entries if at > now - MAX_MEMORY][-MAX_REMEMBERED:]
