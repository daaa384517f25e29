"""Disruption budgets: how many of the pods that a PodDisruptionBudget selects may go just now."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Final

import msgspec

from volcano.api.core import (
    Deployment,
    Pod,
    PodDisruptionBudget,
    PodDisruptionBudgetStatus,
    ReplicaSet,
    ReplicationController,
    StatefulSet,
)
from volcano.api.meta import Condition, Key, OwnerReference, Resource
from volcano.api.selectors import selector_from
from volcano.embedded.cluster.matching import EVERYONE, is_ready, passed_on, touched_by
from volcano.machinery.controller import Controller, Waker, self_key
from volcano.machinery.plan import NOTHING, Later, Plan, patch_status
from volcano.machinery.world import World

DISRUPTED_FOR: Final = timedelta(minutes=2)
"""A pod whose eviction was granted counts as gone for so long, seen or not."""

SCALED: Final[Mapping[str, type[ReplicaSet | StatefulSet | ReplicationController | Deployment]]] = {
    "ReplicaSet": ReplicaSet,
    "StatefulSet": StatefulSet,
    "ReplicationController": ReplicationController,
    "Deployment": Deployment,
}


class DisruptionController(Controller):
    """Keeps the status of PodDisruptionBudgets."""

    name: ClassVar = "disruption"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {PodDisruptionBudget: self_key, Pod: touched_by(_concern)}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (ReplicaSet, StatefulSet, ReplicationController, Deployment)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key.name == EVERYONE:
            budgets = world.where(PodDisruptionBudget, "namespace", key.namespace)
            return passed_on(((b, selector_from(b.spec.selector)) for b in budgets), causes)
        budget = world.get(PodDisruptionBudget, key)
        if budget is None or budget.is_deleting:
            return NOTHING
        status, next_look = _counted(budget, world)
        again: Plan = (Later(next_look),) if next_look is not None else ()
        if status == budget.status:
            return again
        return (patch_status(budget, status), *again)


def _concern(pod: Pod) -> tuple[object, ...]:
    return (pod.labels, pod.is_finished, is_ready(pod), pod.is_deleting)


def _counted(budget: PodDisruptionBudget, world: World) -> tuple[PodDisruptionBudgetStatus, timedelta | None]:
    selector = selector_from(budget.spec.selector)
    pods = [
        pod
        for pod in world.where(Pod, "namespace", budget.namespace)
        if selector.matches(pod.labels) and not pod.is_finished
    ]
    disrupted, next_look = _disrupted(budget, pods, world.now)
    healthy = sum(is_ready(pod) and not pod.is_deleting and pod.name not in disrupted for pod in pods)
    expected, desired = _expectations(budget, pods, world)
    allowed = max(0, healthy - desired) if expected > 0 else 0
    status = msgspec.structs.replace(
        budget.status,
        disruptions_allowed=allowed,
        current_healthy=healthy,
        desired_healthy=desired,
        expected_pods=expected,
        observed_generation=budget.metadata.generation,
        disrupted_pods=disrupted or None,
        conditions=_conditions(budget, allowed, world.now),
    )
    return status, next_look


def _disrupted(
    budget: PodDisruptionBudget, pods: list[Pod], now: datetime
) -> tuple[dict[str, datetime], timedelta | None]:
    """Evictions granted of pods that are still there, and when the first of them is forgotten."""
    there = {pod.name for pod in pods if not pod.is_deleting}
    granted = budget.status.disrupted_pods or {}
    left = {name: since for name, since in granted.items() if name in there and since + DISRUPTED_FOR > now}
    soonest = min((since + DISRUPTED_FOR - now for since in left.values()), default=None)
    return left, soonest


def _expectations(budget: PodDisruptionBudget, pods: list[Pod], world: World) -> tuple[int, int]:
    """How many pods there should be, and how many of them must stay healthy."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = _scale(pods, world)
        return expected, max(0, expected - _share(spec.max_unavailable, expected))
    if isinstance(spec.min_available, str):
        expected = _scale(pods, world)
        return expected, _share(spec.min_available, expected)
    return len(pods), spec.min_available or 0


def _share(amount: int | str, of: int) -> int:
    """A number, or a percentage rounded up."""
    if isinstance(amount, str):
        if amount.endswith("%") and amount[:-1].isdecimal():
            return -(-of * int(amount[:-1]) // 100)
        return int(amount) if amount.isdecimal() else 0
    return amount


def _scale(pods: list[Pod], world: World) -> int:
    """The replicas of all owners that say how many they want; pods of others count one each."""
    owners: dict[str, int] = {}
    others = 0
    for pod in pods:
        owner = pod.controller
        replicas = _replicas(owner, pod.namespace, world) if owner is not None else None
        if owner is None or replicas is None:
            others += 1
        else:
            owners[owner.uid] = replicas
    return sum(owners.values()) + others


def _replicas(owner: OwnerReference, namespace: str, world: World) -> int | None:
    kind = SCALED.get(owner.kind)
    found = world.get(kind, Key(namespace, owner.name)) if kind is not None else None
    if found is None or found.uid != owner.uid:
        return None
    return 1 if found.spec.replicas is None else found.spec.replicas


def _conditions(budget: PodDisruptionBudget, allowed: int, now: datetime) -> list[Condition]:
    have = next((c for c in budget.status.conditions if c.type == "DisruptionAllowed"), None)
    status, reason = ("True", "SufficientPods") if allowed > 0 else ("False", "InsufficientPods")
    changed = have is None or have.status != status
    condition = Condition(
        type="DisruptionAllowed",
        status=status,
        reason=reason,
        observed_generation=budget.metadata.generation,
        last_transition_time=now.replace(microsecond=0) if have is None or changed else have.last_transition_time,
    )
    return [*(c for c in budget.status.conditions if c.type != "DisruptionAllowed"), condition]
