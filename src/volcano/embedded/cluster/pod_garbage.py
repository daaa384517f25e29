"""Pods nobody will end: those of nodes that are no more, those deleted before they had a node, old finished ones."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import ClassVar, Final

from volcano.api.core import Node, Pod
from volcano.api.indexes import PODS_BY_NODE, Indexes
from volcano.api.meta import Key, Resource
from volcano.api.scheme import resource_type
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Delete, Found, Later, Look, Patch, Plan, Ref, Step, Together, ref
from volcano.machinery.world import Change, World

QUARANTINE: Final = timedelta(seconds=40)
"""A node may be registered again under the same name; its pods wait that long."""

PAUSE: Final = timedelta(seconds=20)
FINISHED: Final = Key("", "finished/")
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
BEGINNING: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Why(StrEnum):
    """Why a key is looked at again."""

    QUARANTINE_OVER = "quarantine over"
    TICK = "tick"


class PodGarbageController(Controller):
    """Deletes pods that no agent will. A key is a pod, or a node when it has no namespace."""

    name: ClassVar = "pod-garbage"
    indexes: ClassVar[Indexes] = {
        Pod: {**PODS_BY_NODE[Pod], "finished": lambda pod: ["yes"] if pod.is_finished and not pod.is_deleting else []},
    }

    def __init__(self, *, finished_pods: int = 12_500, quarantine: timedelta = QUARANTINE) -> None:
        self._finished_pods = finished_pods
        self._quarantine = quarantine

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Pod: self._pods, Node: _nodes}

    def _pods(self, change: Change[Pod]) -> Iterable[Wake]:
        pod, old = change.new, change.old
        if pod is None:
            return
        if old is None or old.spec.node_name != pod.spec.node_name or old.is_deleting != pod.is_deleting:
            yield Wake(pod.key)
        if self._finished_pods > 0 and pod.is_finished and (old is None or not old.is_finished):
            yield Wake(FINISHED)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key == FINISHED:
            return self._sweep(world) if Why.TICK in causes else (Later(PAUSE, Why.TICK),)
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
        if Why.QUARANTINE_OVER in causes:
            return (Look(Ref(resource_type(Node), Key("", pod.spec.node_name))),)
        return (Later(self._quarantine, Why.QUARANTINE_OVER),)

    def _sweep(self, world: World) -> Plan:
        """The oldest finished pods beyond the number that may stay."""
        finished = world.where(Pod, "finished", "yes")
        excess = len(finished) - self._finished_pods
        if excess <= 0:
            return NOTHING
        oldest = sorted(finished, key=lambda pod: (pod.metadata.creation_timestamp or BEGINNING, pod.key))[:excess]
        return (Together(tuple(Delete(ref(pod), grace_seconds=0) for pod in oldest)),)


def _nodes(change: Change[Node]) -> Iterable[Wake]:
    """Pods ask once their node is gone, or is said to be out of service."""
    if change.new is None or (_is_out_of_service(change.new) and not (change.old and _is_out_of_service(change.old))):
        yield Wake(change.object.key)


def _is_out_of_service(node: Node) -> bool:
    ready = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
    return not ready and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def _ended(pod: Pod) -> Iterable[Step]:
    """It did not succeed as far as anyone knows, and says so before it goes."""
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
