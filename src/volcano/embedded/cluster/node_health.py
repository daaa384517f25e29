"""Nodes that stop reporting: their conditions become Unknown, they are tainted, and their pods are marked unready.

Evicting pods because of those taints is taint_eviction's; silence while this controller did not run is not counted.
A node's own clock may be wrong: what counts is when its report changed as seen from here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import ClassVar, Final

import msgspec

from volcano.api.core import Lease, Node, Pod, Taint
from volcano.api.indexes import PODS_BY_NODE, Indexes
from volcano.api.meta import JSON, Condition, Key, Resource
from volcano.api.times import timestamp
from volcano.embedded.cluster.watch_time import NEXT_LOOK, WATCH_KEY, WatchTime
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Later, Patch, Plan, Record, Step, Together, ref
from volcano.machinery.world import Change, World

LEASE_NAMESPACE: Final = "kube-node-lease"
DEFAULT_GRACE_PERIOD: Final = timedelta(seconds=40)
PREFIX: Final = "node.kubernetes.io/"
NOT_READY: Final = PREFIX + "not-ready"
UNREACHABLE: Final = PREFIX + "unreachable"
CONDITION_TAINTS: Final = {
    "MemoryPressure": PREFIX + "memory-pressure",
    "DiskPressure": PREFIX + "disk-pressure",
    "PIDPressure": PREFIX + "pid-pressure",
    "NetworkUnavailable": PREFIX + "network-unavailable",
}
UNSCHEDULABLE: Final = PREFIX + "unschedulable"
REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
NEVER_REPORTED: Final = ("NodeStatusNeverUpdated", "Kubelet never posted node status.")
STOPPED_REPORTING: Final = ("NodeStatusUnknown", "Kubelet stopped posting node status.")


class _Heard(msgspec.Struct, frozen=True):
    """The last reports of a node: the times they state, when they were heard, and when that was last looked at."""

    stated: tuple[datetime, ...]
    at: datetime
    looked: datetime

    def followed_by(self, stated: tuple[datetime, ...], now: datetime) -> _Heard:
        """A new report came between the last look and now; a time outside of that is from a clock that is wrong."""
        newest = max(set(stated).difference(self.stated), default=None)
        if newest is None:
            return _Heard(stated, min(self.at, now), now)
        return _Heard(stated, newest if self.looked <= newest <= now else now, now)


class NodeHealthController(Controller):
    """Reconciles the conditions and taints of nodes with their heartbeats."""

    name: ClassVar = "node-health"
    indexes: ClassVar[Indexes] = PODS_BY_NODE

    def __init__(self, *, grace: timedelta = DEFAULT_GRACE_PERIOD) -> None:
        self._grace = grace
        self._watch = WatchTime()
        self._heard: dict[str, _Heard] = {}

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {Node: _nodes, Lease: _leases}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (Pod,)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        watched_since = self._watch.look(world.now)
        if key == WATCH_KEY:
            return (NEXT_LOOK,) if world.all(Node) else NOTHING
        node = world.get(Node, key)
        if node is None or node.is_deleting:
            self._heard.pop(key.name, None)
            return NOTHING
        lease = world.get(Lease, Key(LEASE_NAMESPACE, node.name))
        overdue_at = self._overdue_at(node, lease, watched_since, world.now)
        ready = _ready(node)
        steps: list[Step] = [NEXT_LOOK]
        if overdue_at > world.now:
            steps.append(Later(overdue_at - world.now))
        else:
            ready = "Unknown"
            steps += _mark_unknown(node, world.now)
        steps += _update_taints(node, ready, world.now)
        if ready in ("False", "Unknown"):
            steps += _unready_pods(node, world)
        return tuple(steps)

    def _overdue_at(self, node: Node, lease: Lease | None, watched_since: datetime, now: datetime) -> datetime:
        """When the node counts as unreachable if it does not report again; a whole grace period is watched first."""
        reports = [c.last_heartbeat_time for c in node.status.conditions if c.last_heartbeat_time is not None]
        reports += [node.metadata.creation_timestamp] if node.metadata.creation_timestamp is not None else []
        grace = self._grace
        if lease is not None:
            reports += [lease.spec.renew_time] if lease.spec.renew_time is not None else []
            grace = max(grace, timedelta(seconds=lease.spec.lease_duration_seconds or 0))
        stated, known = tuple(reports), self._heard.get(node.name)
        heard = known.followed_by(stated, now) if known else _Heard(stated, min(now, max(stated, default=now)), now)
        self._heard[node.name] = heard
        return max(heard.at, watched_since) + grace


def _nodes(change: Change[Node]) -> Iterable[Wake]:
    new, old = change.new, change.old
    if new is None or old is None or old.spec != new.spec or _statuses(old) != _statuses(new):
        yield Wake(change.object.key)


def _statuses(node: Node) -> dict[str, str]:
    return {condition.type: condition.status for condition in node.status.conditions}


def _leases(change: Change[Lease]) -> Iterable[Wake]:
    """Only the first, the last and a late renewal requeue the node: each renewal would be too many."""
    lease, old = change.object, change.old
    if lease.namespace != LEASE_NAMESPACE:
        return
    if old is None or change.new is None or _was_late(old, change.new):
        yield Wake(Key("", lease.name))


def _was_late(old: Lease, new: Lease) -> bool:
    if old.spec.renew_time is None or new.spec.renew_time is None:
        return True
    return new.spec.renew_time - old.spec.renew_time > timedelta(seconds=old.spec.lease_duration_seconds or 0)


def _ready(node: Node) -> str:
    return next((c.status for c in node.status.conditions if c.type == "Ready"), "")


def _mark_unknown(node: Node, now: datetime) -> Iterable[Step]:
    have = {condition.type: condition for condition in node.status.conditions}
    changed = [_unknown(have.get(kind), kind, now) for kind in REPORTED if not _is_unknown(have.get(kind))]
    if not changed:
        return
    yield Patch(ref(node, fresh=True), {"status": {"conditions": changed}}, kind="strategic", subresource="status")
    yield Record(ref(node), "NodeNotReady", f"Node {node.name} status is now: NodeNotReady")


def _is_unknown(condition: Condition | None) -> bool:
    return condition is not None and condition.status == "Unknown"


def _unknown(condition: Condition | None, kind: str, now: datetime) -> JSON:
    reason, message = STOPPED_REPORTING if condition is not None else NEVER_REPORTED
    return {
        "type": kind,
        "status": "Unknown",
        "reason": reason,
        "message": message,
        "lastTransitionTime": timestamp(now),
    }


def _update_taints(node: Node, ready: str, now: datetime) -> Iterable[Step]:
    """Add and remove the taints of conditions, leave others alone; a taint that stays keeps its time."""
    wanted = _wanted_taints(node, ready)
    ours = {NOT_READY, UNREACHABLE, UNSCHEDULABLE, *CONDITION_TAINTS.values()}
    if not ready:
        ours -= {NOT_READY, UNREACHABLE}  # a node that has not reported yet keeps what it was registered with
    kept = [t for t in node.spec.taints if t.key not in ours or (t.key, t.effect) in wanted]
    have = {(taint.key, taint.effect) for taint in kept}
    moment = now.replace(microsecond=0)
    added = [
        Taint(key=key, effect=effect, time_added=moment if effect == "NoExecute" else None)
        for key, effect in wanted
        if (key, effect) not in have
    ]
    if added or len(kept) != len(node.spec.taints):
        taints = [msgspec.to_builtins(taint) for taint in (*kept, *added)]
        yield Patch(ref(node, fresh=True), {"spec": {"taints": taints or None}})


def _wanted_taints(node: Node, ready: str) -> list[tuple[str, str]]:
    wanted: list[tuple[str, str]] = []
    if ready in ("False", "Unknown"):
        key = NOT_READY if ready == "False" else UNREACHABLE
        wanted += [(key, "NoSchedule"), (key, "NoExecute")]
    true = {condition.type for condition in node.status.conditions if condition.status == "True"}
    wanted += [(key, "NoSchedule") for kind, key in CONDITION_TAINTS.items() if kind in true]
    if node.spec.unschedulable:
        wanted.append((UNSCHEDULABLE, "NoSchedule"))
    return wanted


def _unready_pods(node: Node, world: World) -> Iterable[Step]:
    """The state of these pods is unknown, so no service may send them traffic."""
    condition = {"type": "Ready", "status": "False", "reason": "NodeNotReady"}
    body = {"status": {"conditions": [condition]}}
    steps = tuple(
        Patch(ref(pod), body, kind="strategic", subresource="status")
        for pod in world.where(Pod, "node", node.name)
        if any(c.type == "Ready" and c.status == "True" for c in pod.status.conditions)
    )
    if steps:
        yield Together(steps)
