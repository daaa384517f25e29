"""What else a decision may look at: quotas, budgets, volumes, namespaces, owners, shards, device claims."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from volcano.api.core import (
    CSINode,
    DeviceClass,
    Namespace,
    PersistentVolume,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    ResourceClaim,
    ResourceQuota,
    ResourceSlice,
    Service,
    StatefulSet,
    StorageClass,
)
from volcano.api.meta import JSON, Key
from volcano.api.reservation import Reservation


@dataclass(slots=True, frozen=True)
class Shard:
    """The nodes this scheduler may (hard) or should (soft) use."""

    mode: str = "none"
    name: str = "volcano"
    nodes: frozenset[str] = frozenset()


@dataclass(slots=True, eq=False)
class ClusterObjects:
    """API objects read as they are, by key."""

    namespaces: dict[str, Namespace] = field(default_factory=dict)
    priority_classes: dict[str, PriorityClass] = field(default_factory=dict)
    resource_quotas: dict[Key, ResourceQuota] = field(default_factory=dict)
    disruption_budgets: dict[Key, PodDisruptionBudget] = field(default_factory=dict)
    volumes: dict[str, PersistentVolume] = field(default_factory=dict)
    claims: dict[Key, PersistentVolumeClaim] = field(default_factory=dict)
    storage_classes: dict[str, StorageClass] = field(default_factory=dict)
    csi_nodes: dict[str, CSINode] = field(default_factory=dict)
    services: dict[Key, Service] = field(default_factory=dict)
    replica_sets: dict[Key, ReplicaSet] = field(default_factory=dict)
    stateful_sets: dict[Key, StatefulSet] = field(default_factory=dict)
    replication_controllers: dict[Key, ReplicationController] = field(default_factory=dict)
    resource_claims: dict[Key, ResourceClaim] = field(default_factory=dict)
    resource_slices: dict[str, ResourceSlice] = field(default_factory=dict)
    device_classes: dict[str, DeviceClass] = field(default_factory=dict)
    assumed_allocations: dict[Key, JSON] = field(default_factory=dict)
    """Of ResourceClaims: allocations that were sent and are not seen yet."""
    kept: dict[str, Any] = field(default_factory=dict)
    """What has been read from these objects, kept from cycle to cycle by who reads them (core.dra)."""
    reservations: dict[str, Reservation] = field(default_factory=dict)
    shard: Shard = Shard()
    ignored_provisioners: frozenset[str] = frozenset({"rancher.io/local-path", "hostpath.csi.k8s.io"})

    def priority_of(self, class_name: str) -> int:
        """The value of a class, of the global default, or zero."""
        found = self.priority_classes.get(class_name)
        if found is None:
            defaults = (c for c in self.priority_classes.values() if c.global_default)
            found = max(defaults, key=lambda c: c.name, default=None)
        return found.value if found else 0
