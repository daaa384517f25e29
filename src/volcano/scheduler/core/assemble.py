"""A whole Snapshot from lists of objects as JSON, keyed by plural name; the format of recorded scenarios."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, TypeVar

from volcano.api import core as api
from volcano.api import scheduling, topology
from volcano.api.decode import Unreadable, decode_object
from volcano.api.meta import JSON, Resource
from volcano.api.reservation import Reservation
from volcano.api.times import timestamp_or_none
from volcano.scheduler.core.snapshot import Snapshot, put_group, put_nodes, put_pod, put_queue
from volcano.scheduler.model import NodeUsage, Shard
from volcano.scheduler.model.domain import domains_from_lists
from volcano.scheduler.model.hypernodes import domains_from

R = TypeVar("R", bound=Resource)

BY_KEY: Final[Mapping[str, tuple[str, type[Resource]]]] = {
    "resourcequotas": ("resource_quotas", api.ResourceQuota),
    "poddisruptionbudgets": ("disruption_budgets", api.PodDisruptionBudget),
    "persistentvolumeclaims": ("claims", api.PersistentVolumeClaim),
    "services": ("services", api.Service),
    "replicasets": ("replica_sets", api.ReplicaSet),
    "statefulsets": ("stateful_sets", api.StatefulSet),
    "replicationcontrollers": ("replication_controllers", api.ReplicationController),
    "resourceclaims": ("resource_claims", api.ResourceClaim),
}
BY_NAME: Final[Mapping[str, tuple[str, type[Resource]]]] = {
    "namespaces": ("namespaces", api.Namespace),
    "priorityclasses": ("priority_classes", api.PriorityClass),
    "persistentvolumes": ("volumes", api.PersistentVolume),
    "storageclasses": ("storage_classes", api.StorageClass),
    "csinodes": ("csi_nodes", api.CSINode),
    "resourceslices": ("resource_slices", api.ResourceSlice),
    "deviceclasses": ("device_classes", api.DeviceClass),
    "reservations": ("reservations", Reservation),
}


def snapshot_from(
    objects: Mapping[str, list[JSON]], *, extra: Mapping[str, Any] | None = None, now: datetime | None = None
) -> Snapshot:
    """Every object that can be read; the others are set aside with the reason."""
    lists = {plural.lower(): items for plural, items in objects.items()}
    snapshot = Snapshot(now=now or newest_time(objects))
    around = snapshot.cluster
    for plural, (attribute, reader) in BY_KEY.items():
        for item in _read(snapshot, reader, lists.get(plural, ())):
            getattr(around, attribute)[item.key] = item
    for plural, (attribute, reader) in BY_NAME.items():
        for item in _read(snapshot, reader, lists.get(plural, ())):
            getattr(around, attribute)[item.name] = item
    put_nodes(snapshot, _read(snapshot, api.Node, lists.get("nodes", ())))
    for queue in _read(snapshot, scheduling.Queue, lists.get("queues", ())):
        put_queue(snapshot, queue)
    for group in _read(snapshot, scheduling.PodGroup, lists.get("podgroups", ())):
        put_group(snapshot, group)
    for pod in _read(snapshot, api.Pod, lists.get("pods", ())):
        put_pod(snapshot, pod)
    for numa in _read(snapshot, topology.Numatopology, lists.get("numatopologies", ())):
        if numa.name in snapshot.table.index:
            snapshot.table.nodes[snapshot.table.index[numa.name]].numa = numa.spec
    _place(snapshot, lists, extra or {})
    return snapshot


def _place(snapshot: Snapshot, lists: Mapping[str, list[JSON]], extra: Mapping[str, Any]) -> None:
    """Hypernodes, as listed or as derived from their objects, and the shard."""
    if "hyperNodeRealNodes" in extra:
        snapshot.domains = domains_from_lists(extra["hyperNodeRealNodes"], extra.get("hyperNodesByTier", {}))
        for hypernode in _read(snapshot, topology.HyperNode, lists.get("hypernodes", ())):
            if hypernode.name in snapshot.domains.by_name:
                snapshot.domains.by_name[hypernode.name].tier_name = hypernode.spec.tier_name
    else:
        hypernodes = _read(snapshot, topology.HyperNode, lists.get("hypernodes", ()))
        snapshot.domains = domains_from(hypernodes, {node.name: node.labels for node in snapshot.table.nodes})
    if "shardingMode" in extra:
        members = frozenset(extra.get("nodesInShard") or ())
        snapshot.cluster.shard = Shard(extra["shardingMode"], extra.get("shardName", "volcano"), members)
    if "ignoreProvisioners" in extra:
        snapshot.cluster.ignored_provisioners |= frozenset(extra["ignoreProvisioners"])


def put_usage(snapshot: Snapshot, usage: Mapping[str, Mapping[str, Any]]) -> None:
    """Measured load per node: {"cpu": percent, "memory": percent, "measured": time}."""
    for name, measured in usage.items():
        row = snapshot.table.index.get(name)
        if row is not None:
            when = measured.get("measured")
            snapshot.table.nodes[row].usage = NodeUsage(
                float(measured.get("cpu", 0.0)),
                float(measured.get("memory", 0.0)),
                datetime.fromisoformat(when) if isinstance(when, str) else None,
            )


def newest_time(value: Any) -> datetime:
    """The newest timestamp in any field whose name is that of a timestamp."""
    newest = datetime(1970, 1, 1, tzinfo=UTC)
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, list):
            waiting.extend(item)
        elif isinstance(item, dict):
            for key, inner in item.items():
                if isinstance(inner, str) and key.lower().endswith(("time", "timestamp", "at")):
                    newest = max(newest, timestamp_or_none(inner) or newest)
                elif isinstance(inner, dict | list):
                    waiting.append(inner)
    return newest


def _read(snapshot: Snapshot, reader: type[R], items: Iterable[JSON]) -> list[R]:
    read: list[R] = []
    for item in items:
        try:
            read.append(decode_object(reader, item))
        except Unreadable as error:
            meta = item.get("metadata") or {}
            snapshot.set_aside[f"{reader.__name__}/{meta.get('namespace', '')}/{meta.get('name', '')}"] = str(error)
    return read
