"""Deletes pods that no agent deletes: those of nodes that are gone, those deleted before they had a node, and the
oldest finished ones beyond a limit.

A finished pod is kept while its owner counts it: a job whose succeeded pod is gone would run that pod again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from enum import StrEnum
from typing import ClassVar, Final, TypeAlias

from volcano.api.batch import FINISHED_PHASES, Job
from volcano.api.core import BatchJob, Node, Pod
from volcano.api.indexes import PODS_BY_NODE, Indexes
from volcano.api.meta import Key, Resource, creation_order
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Delete, Found, Later, Look, Patch, Plan, Ref, Step, Together, ref
from volcano.machinery.world import Change, World

NODE_QUARANTINE: Final = timedelta(seconds=40)
"""A node may be registered again under the same name; the pods of a missing node are kept for so long."""

SWEEP_DEBOUNCE: Final = timedelta(seconds=20)
FINISHED_PODS_KEY: Final = Key("", "finished/")
MAX_FINISHED_PODS: Final = 12_500
Owner: TypeAlias = Job | BatchJob | PodGroup
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"


class RequeueCause(StrEnum):
    """Why a key was requeued."""

    QUARANTINE_OVER = "quarantine over"
    TICK = "tick"


class PodGarbageController(Controller):
    """A key is a pod, or a node when it has no namespace."""

    name: ClassVar = "pod-garbage"
    indexes: ClassVar[Indexes] = {
        Pod: {**PODS_BY_NODE[Pod], "finished": lambda pod: ["yes"] if pod.is_finished and not pod.is_deleting else []},
    }

    def __init__(self, *, max_finished_pods: int = MAX_FINISHED_PODS, quarantine: timedelta = NODE_QUARANTINE) -> None:
        self._max_finished_pods = max_finished_pods
        self._quarantine = quarantine

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Pod: self._pods, Node: _nodes, Job: self._owners, BatchJob: self._owners, PodGroup: self._owners}

    def _owners(self, change: Change[Owner]) -> Iterable[Wake]:
        """When an owner no longer counts its pods, those beyond the limit can go."""
        counted = change.old is not None and _counts_its_pods(change.old)
        counts = change.new is not None and _counts_its_pods(change.new)
        if self._max_finished_pods > 0 and counted and not counts:
            yield Wake(FINISHED_PODS_KEY)

    def _pods(self, change: Change[Pod]) -> Iterable[Wake]:
        pod, old = change.new, change.old
        if pod is None:
            return
        if old is None or old.spec.node_name != pod.spec.node_name or old.is_deleting != pod.is_deleting:
            yield Wake(pod.key)
        if self._max_finished_pods > 0 and pod.is_finished and (old is None or not old.is_finished):
            yield Wake(FINISHED_PODS_KEY)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key == FINISHED_PODS_KEY:
            return self._sweep(world) if RequeueCause.TICK in causes else (Later(SWEEP_DEBOUNCE, RequeueCause.TICK),)
        if not key.namespace:
            return tuple(Later(timedelta(0), key=pod.key) for pod in world.where(Pod, "node", key.name))
        pod = world.get(Pod, key)
        if pod is None:
            return NOTHING
        if pod.is_deleting and not pod.spec.node_name:
            return (Delete(ref(pod), grace_seconds=0),)
        return self._of_missing_node(pod, world, causes)

    def _of_missing_node(self, pod: Pod, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if not pod.spec.node_name:
            return NOTHING
        node = world.get(Node, Key("", pod.spec.node_name))
        if node is not None:
            return tuple(_ended(pod)) if pod.is_deleting and _is_out_of_service(node) else NOTHING
        looked = next((cause for cause in causes if isinstance(cause, Found)), None)
        if looked is not None:
            return NOTHING if looked.present else tuple(_ended(pod))
        if RequeueCause.QUARANTINE_OVER in causes:
            return (Look(Ref(resource_type(Node), Key("", pod.spec.node_name))),)
        return (Later(self._quarantine, RequeueCause.QUARANTINE_OVER),)

    def _sweep(self, world: World) -> Plan:
        """Delete the oldest finished pods beyond the limit, those left out that an owner counts."""
        finished = world.where(Pod, "finished", "yes")
        excess = len(finished) - self._max_finished_pods
        if excess <= 0:
            return NOTHING
        owners: tuple[Owner, ...] = (*world.all(Job), *world.all(BatchJob), *world.all(PodGroup))
        counting = {owner.uid for owner in owners if _counts_its_pods(owner)}
        free = [pod for pod in finished if not any(each.uid in counting for each in pod.metadata.owner_references)]
        oldest = sorted(free, key=creation_order)[:excess]
        return (Together(tuple(Delete(ref(pod), grace_seconds=0) for pod in oldest)),) if oldest else NOTHING


def _counts_its_pods(owner: Owner) -> bool:
    """Whether the owner has not finished: until then it reads from its finished pods what is done."""
    match owner:
        case Job():
            return owner.status.state.phase not in FINISHED_PHASES
        case BatchJob():
            return owner.end_condition is None
        case PodGroup():
            return owner.status.phase != "Completed"


def _nodes(change: Change[Node]) -> Iterable[Wake]:
    """The pods of a node are requeued when it is gone or marked out of service."""
    if change.new is None or (_is_out_of_service(change.new) and not (change.old and _is_out_of_service(change.old))):
        yield Wake(change.object.key)


def _is_out_of_service(node: Node) -> bool:
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
    return not ready and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def _ended(pod: Pod) -> Iterable[Step]:
    """Mark the pod Failed, then delete it: whether it succeeded is unknown."""
    if not pod.is_finished:
        condition = {
            "type": "DisruptionTarget",
            "status": "True",
            "reason": "DeletionByPodGC",
            "message": "PodGC: node no longer exists",
        }
        body = {"status": {"phase": "Failed", "conditions": [condition]}}
        yield Patch(ref(pod), body, kind="strategic", subresource="status")
    yield Delete(ref(pod), grace_seconds=0)
