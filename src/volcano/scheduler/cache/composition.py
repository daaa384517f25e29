"""What several objects form together: the tree of queues, hypernodes over nodes, shards, priorities.

It is rebuilt only when one of the objects changed.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from volcano.api import core, scheduling, topology
from volcano.api.meta import Resource
from volcano.scheduler.core.snapshot import Snapshot, put_queue
from volcano.scheduler.model import Shard
from volcano.scheduler.model.hypernodes import domains_from


class Composition:
    def __init__(self, sharding_mode: str, shard_name: str) -> None:
        self._mode, self._name = sharding_mode, shard_name
        self._kept: dict[type[Resource], dict[str, Any]] = {
            scheduling.Queue: {},
            topology.HyperNode: {},
            topology.NodeShard: {},
        }
        self._stale: set[type[Resource]] = set()

    @property
    def hypernodes(self) -> Iterable[topology.HyperNode]:
        return self._kept[topology.HyperNode].values()

    def concerns(self, kind: type[Resource]) -> bool:
        return kind in self._kept

    def keep(self, kind: type[Resource], name: str, resource: Resource | None) -> None:
        """An object that changed; None when it was deleted."""
        keep(self._kept[kind], name, resource)
        self._stale.add(kind)

    def nodes_changed(self) -> None:
        """Nodes were added, removed or relabelled: hypernodes may have other members."""
        self._stale.add(topology.HyperNode)

    def priorities_changed(self) -> None:
        self._stale.add(core.PriorityClass)

    def rebuild(self, snapshot: Snapshot) -> None:
        if scheduling.Queue in self._stale:
            self._rebuild_queues(snapshot)
        if topology.HyperNode in self._stale:
            hypernodes = self._kept[topology.HyperNode]
            labels = {node.name: node.labels for node in snapshot.table.nodes} if hypernodes else {}
            snapshot.domains = domains_from(hypernodes.values(), labels)
        if topology.NodeShard in self._stale:
            snapshot.cluster.shard = self._shard(snapshot)
        if core.PriorityClass in self._stale:
            for job in snapshot.jobs.values():
                if job.group is not None:
                    job.priority = snapshot.cluster.priority_of(job.group.spec.priority_class_name)
                    job.touch()
        self._stale.clear()

    def _rebuild_queues(self, snapshot: Snapshot) -> None:
        """All queues but those whose chain of parents is a cycle."""
        snapshot.queues = {name: queue for name, queue in snapshot.queues.items() if not queue.is_charged}
        for name, queue in self._kept[scheduling.Queue].items():
            if self._has_cycle(name):
                snapshot.set_aside[f"Queue/{name}"] = "its chain of parents is a cycle"
            else:
                snapshot.set_aside.pop(f"Queue/{name}", None)
                put_queue(snapshot, queue)

    def _has_cycle(self, name: str) -> bool:
        seen: set[str] = set()
        while name and name != "root":
            if name in seen:
                return True
            seen.add(name)
            queue = self._kept[scheduling.Queue].get(name)
            name = queue.spec.parent if queue is not None else ""
        return False

    def _shard(self, snapshot: Snapshot) -> Shard:
        shards = self._kept[topology.NodeShard]
        own = shards.get(self._name)
        if self._mode == "none" or own is None:
            return snapshot.cluster.shard
        others = (shard.status.nodes_in_use for other, shard in shards.items() if other != self._name)
        return Shard(self._mode, self._name, frozenset(own.spec.nodes_desired).difference(*others))


def keep(held: dict[Any, Any], key: Any, value: Any) -> None:
    if value is None:
        held.pop(key, None)
    else:
        held[key] = value
