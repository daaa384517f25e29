"""The status of PodDisruptionBudgets: how many of the selected pods may be evicted now.

The API server's eviction subresource grants evictions by it.
"""

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
from volcano.embedded.cluster.matching import ALL_SELECTORS, is_ready, on_pod_change, requeue_matching
from volcano.embedded.cluster.shares import share
from volcano.machinery.controller import Controller, Waker, self_key
from volcano.machinery.plan import NOTHING, Later, Plan, patch_status
from volcano.machinery.world import World

GRANTED_EVICTION_TIMEOUT: Final = timedelta(minutes=2)
"""A pod whose eviction was granted counts as unhealthy for so long, even while its deletion is not yet seen."""

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
        return {PodDisruptionBudget: self_key, Pod: on_pod_change(_relevant)}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (ReplicaSet, StatefulSet, ReplicationController, Deployment)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key.name == ALL_SELECTORS:
            budgets = world.where(PodDisruptionBudget, "namespace", key.namespace)
            return requeue_matching(((b, selector_from(b.spec.selector)) for b in budgets), causes)
        budget = world.get(PodDisruptionBudget, key)
        if budget is None or budget.is_deleting:
            return NOTHING
        status, next_check = _counted(budget, world)
        again: Plan = (Later(next_check),) if next_check is not None else ()
        if status == budget.status:
            return again
        return (patch_status(budget, status), *again)


def _relevant(pod: Pod) -> tuple[object, ...]:
    return (pod.labels, pod.is_finished, is_ready(pod), pod.is_deleting)


def _counted(budget: PodDisruptionBudget, world: World) -> tuple[PodDisruptionBudgetStatus, timedelta | None]:
    selector = selector_from(budget.spec.selector)
    pods = [
        pod
        for pod in world.where(Pod, "namespace", budget.namespace)
        if selector.matches(pod.labels) and not pod.is_finished
    ]
    disrupted, next_check = _disrupted(budget, pods, world.now)
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
    return status, next_check


def _disrupted(
    budget: PodDisruptionBudget, pods: list[Pod], now: datetime
) -> tuple[dict[str, datetime], timedelta | None]:
    """Granted evictions of pods that still exist, and the time until the first of them expires."""
    there = {pod.name for pod in pods if not pod.is_deleting}
    granted = budget.status.disrupted_pods or {}
    left = {name: since for name, since in granted.items() if name in there and since + GRANTED_EVICTION_TIMEOUT > now}
    soonest = min((since + GRANTED_EVICTION_TIMEOUT - now for since in left.values()), default=None)
    return left, soonest


def _expectations(budget: PodDisruptionBudget, pods: list[Pod], world: World) -> tuple[int, int]:
    """The number of pods that should exist, and the number of them that must stay healthy."""
    spec = budget.spec
    if spec.max_unavailable is not None:
        expected = _scale(pods, world)
        return expected, max(0, expected - share(spec.max_unavailable, expected, up=True))
    if isinstance(spec.min_available, str):
        expected = _scale(pods, world)
        return expected, share(spec.min_available, expected, up=True)
    return len(pods), spec.min_available or 0


def _scale(pods: list[Pod], world: World) -> int:
    """The replicas that the pods' owners state; a pod whose owner states none counts as one."""
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
