"""ReplicaSets and ReplicationControllers: a number of pods of one template.

Names are derived from the owner and a number, and the pods to delete are chosen in a fixed order, so that deciding
twice on the same or on an older World creates and deletes the same pods and no others.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime
from itertools import islice
from typing import Any, ClassVar

from volcano.api.core import Pod, ReplicaSet, ReplicationController
from volcano.api.indexes import Indexes
from volcano.api.meta import JSON, Key, Resource
from volcano.api.selectors import Selector, labels_selector, selector_from
from volcano.embedded.cluster.workloads.pods import (
    MAX_PODS_PER_PLAN,
    adopted,
    first_to_go,
    free_names,
    is_active,
    is_available,
    made_pod,
    orphans,
    ready_since,
    released,
    until_available,
)
from volcano.machinery.controller import Controller, Wake, Waker, self_key
from volcano.machinery.plan import NOTHING, Delete, Later, Patch, Plan, Record, Step, Together, merge_difference, ref
from volcano.machinery.world import Change, World

Replicated = ReplicaSet | ReplicationController


class _ReplicaController(Controller):
    """The part that both kinds share."""

    kind: ClassVar[type[ReplicaSet] | type[ReplicationController]]
    indexes: ClassVar[Indexes] = {Pod: {"orphan": orphans}}

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {self.kind: self_key, Pod: self._pods}

    def _pods(self, change: Change[Pod]) -> Iterable[Wake]:
        for state in (change.old, change.new):
            owner = state.controller if state is not None else None
            if owner is not None and owner.kind == self.kind.__name__:
                yield Wake(Key(change.object.namespace, owner.name))

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        owner: Replicated | None = world.get(self.kind, key)
        if owner is None or owner.is_deleting:
            return NOTHING
        selector = self._selector(owner)
        claims = tuple(_claims(owner, selector, world))
        if claims:
            return (Together(claims),)
        pods = [pod for pod in world.where(Pod, "owner", owner.uid) if _controls(owner, pod)]
        return (*_scaled(owner, pods, world), *_status_steps(owner, pods, world.now))

    def _selector(self, owner: Replicated) -> Selector:
        raise NotImplementedError


class ReplicaSetController(_ReplicaController):
    """Reconciles ReplicaSets."""

    name: ClassVar = "replicaset"
    kind: ClassVar = ReplicaSet

    def _selector(self, owner: Replicated) -> Selector:
        return selector_from(owner.spec.selector)


class ReplicationControllerController(_ReplicaController):
    """Reconciles ReplicationControllers, whose selector is a plain map of labels."""

    name: ClassVar = "replication-controller"
    kind: ClassVar = ReplicationController

    def _selector(self, owner: Replicated) -> Selector:
        labels = owner.spec.selector or ((owner.spec.template or {}).get("metadata") or {}).get("labels") or {}
        return labels_selector(labels) if labels else selector_from(None)


def _controls(owner: Resource, pod: Pod) -> bool:
    controller = pod.controller
    return controller is not None and controller.uid == owner.uid


def _claims(owner: Replicated, selector: Selector, world: World) -> Iterable[Step]:
    """Adopt matching pods without a controller; release pods that do not match any more."""
    for pod in world.where(Pod, "orphan", owner.namespace):
        if selector and selector.matches(pod.labels) and is_active(pod):
            yield adopted(owner, pod)
    for pod in world.where(Pod, "owner", owner.uid):
        if _controls(owner, pod) and not selector.matches(pod.labels) and not pod.is_deleting:
            yield released(owner, pod)


def _scaled(owner: Replicated, pods: list[Pod], world: World) -> Plan:
    active = [pod for pod in pods if is_active(pod)]
    wanted = 1 if owner.spec.replicas is None else max(0, owner.spec.replicas)
    if len(active) < wanted:
        missing = min(wanted - len(active), MAX_PODS_PER_PLAN)
        names = list(dict.fromkeys(islice(free_names(owner, world), missing)))
        made = tuple(made_pod(owner, owner.spec.template, name) for name in names)
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        return (Together(made), Record(ref(owner), "SuccessfulCreate", f"Created pod: {names[0]}{more}"))
    if len(active) > wanted:
        doomed = sorted(active, key=first_to_go)[: min(len(active) - wanted, MAX_PODS_PER_PLAN)]
        more = f" and {len(doomed) - 1} more" if len(doomed) > 1 else ""
        note = Record(ref(owner), "SuccessfulDelete", f"Deleted pod: {doomed[0].name}{more}")
        return (Together(tuple(Delete(ref(pod)) for pod in doomed)), note)
    return NOTHING


def _status_steps(owner: Replicated, pods: list[Pod], now: datetime) -> Iterable[Step]:
    status = replica_status(owner, pods, now)
    have = {name: value for name, value in (owner.status or {}).items() if name in STATUS_FIELDS}
    if status != have:
        yield Patch(ref(owner), {"status": merge_difference(have, status)}, subresource="status")
    again = until_available([pod for pod in pods if is_active(pod)], owner.spec.min_ready_seconds, now)
    if again is not None:
        yield Later(again)


STATUS_FIELDS = ("replicas", "fullyLabeledReplicas", "readyReplicas", "availableReplicas", "observedGeneration")


def replica_status(owner: Replicated, pods: list[Pod], now: datetime) -> JSON:
    """Counts of zero are left out, except `replicas`."""
    active = [pod for pod in pods if is_active(pod)]
    labels = ((owner.spec.template or {}).get("metadata") or {}).get("labels") or {}
    counts: dict[str, Any] = {
        "fullyLabeledReplicas": sum(labels_selector(labels).matches(pod.labels) for pod in active),
        "readyReplicas": sum(ready_since(pod) is not None for pod in active),
        "availableReplicas": sum(is_available(pod, owner.spec.min_ready_seconds, now) for pod in active),
    }
    counts = {name: count for name, count in counts.items() if count}
    return {"replicas": len(active), **counts, "observedGeneration": owner.metadata.generation}
