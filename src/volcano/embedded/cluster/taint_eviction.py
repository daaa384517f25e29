"""Evicts pods from nodes with NoExecute taints, at once or when the time of their toleration is over.

Which toleration matches which taint is api.pods.tolerations'.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Final

from volcano.api.core import Node, Pod, Taint
from volcano.api.indexes import PODS_BY_NODE, Indexes
from volcano.api.meta import Key, Resource
from volcano.api.pods.tolerations import tolerates
from volcano.embedded.cluster.watch_time import NEXT_LOOK, WATCH_KEY, WatchTime
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Evict, Later, Plan, Together, ref
from volcano.machinery.world import Change, World

REASON: Final = "DeletionByTaintManager"
TRANSIENT_TAINTS: Final = ("node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable")
DEFAULT_TOLERATION_TIME: Final = timedelta(seconds=300)
"""How long a pod without a toleration for a transient taint stays: what DefaultTolerationSeconds would have added."""
UNLIMITED: Final = timedelta.max


class TaintEvictionController(Controller):
    """Evicts pods by the taints of their node. A key is a node."""

    name: ClassVar = "taint-eviction"
    indexes: ClassVar[Indexes] = PODS_BY_NODE

    def __init__(self, *, default_toleration: timedelta = DEFAULT_TOLERATION_TIME) -> None:
        self._default_toleration = default_toleration
        self._watch = WatchTime()

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Node: _nodes, Pod: _pods}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        watched_since = self._watch.look(world.now)
        if key == WATCH_KEY:
            return (NEXT_LOOK,) if any(_has_transient_taint(node) for node in world.all(Node)) else NOTHING
        node = world.get(Node, key)
        taints = no_execute(node) if node is not None else []
        if not taints:
            return NOTHING
        due: list[Evict] = []
        next_check: timedelta | None = None
        for pod in world.where(Pod, "node", key.name):
            if pod.is_deleting or pod.is_finished:
                continue
            left = time_left(
                pod, taints, world.now, default_toleration=self._default_toleration, watched_since=watched_since
            )
            if left <= timedelta(0):
                message = f"Taint manager: deleting due to NoExecute taint on {key.name}"
                due.append(Evict(ref(pod, fresh=True), REASON, message))
            elif left != UNLIMITED and (next_check is None or left < next_check):
                next_check = left
        plan: Plan = (Together(tuple(due)),) if due else ()
        if next_check is not None:
            plan = (*plan, Later(next_check))
        return (*plan, NEXT_LOOK) if any(taint.key in TRANSIENT_TAINTS for taint in taints) else plan


def _nodes(change: Change[Node]) -> Iterable[Wake]:
    new = change.new
    if new is not None and no_execute(new) and (change.old is None or change.old.spec.taints != new.spec.taints):
        yield Wake(new.key)


def _pods(change: Change[Pod]) -> Iterable[Wake]:
    pod = change.new
    if pod is not None and pod.spec.node_name and (change.old is None or change.old.spec != pod.spec):
        yield Wake(Key("", pod.spec.node_name))


def no_execute(node: Node) -> list[Taint]:
    return [taint for taint in node.spec.taints if taint.effect == "NoExecute"]


def _has_transient_taint(node: Node) -> bool:
    return any(taint.key in TRANSIENT_TAINTS for taint in no_execute(node))


def time_left(
    pod: Pod,
    taints: Iterable[Taint],
    now: datetime,
    *,
    default_toleration: timedelta = timedelta(0),
    watched_since: datetime | None = None,
) -> timedelta:
    """How long a pod may stay: zero if a taint is not tolerated, UNLIMITED if all are tolerated for any time.

    An outage counts from `watched_since` at the earliest: without a watch, no node could show that it is back.
    """
    left = UNLIMITED
    for taint in taints:
        matching = [toleration for toleration in pod.spec.tolerations if tolerates(toleration, taint)]
        is_transient = taint.key in TRANSIENT_TAINTS
        if not matching and not is_transient:
            return timedelta(0)
        seconds = [t.toleration_seconds for t in matching if t.toleration_seconds is not None]
        stays = timedelta(seconds=max(0, min(seconds))) if seconds else None if matching else default_toleration
        if stays is not None:
            began = taint.time_added or now
            if is_transient and watched_since is not None:
                began = max(began, watched_since)
            left = min(left, began + stays - now)
    return left
