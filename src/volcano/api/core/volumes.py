"""Persistent volumes, claims, storage classes and CSI nodes."""

from __future__ import annotations

from volcano.api.core.pods import NodeSelector
from volcano.api.meta import (
    JSON,
    LabelSelector,
    Model,
    ObjectReference,
    Quantities,
    Resource,
)


class ClaimResources(Model, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class PersistentVolumeClaimSpec(Model, frozen=True):
    access_modes: list[str] = []
    resources: ClaimResources = ClaimResources()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(Model, frozen=True):
    phase: str = ""
    capacity: Quantities | None = None


class PersistentVolumeClaim(Resource, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Model, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Model, frozen=True):
    capacity: Quantities | None = None
    access_modes: list[str] = []
    storage_class_name: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    volume_mode: str | None = None
    local: JSON | None = None
    host_path: JSON | None = None
    csi: JSON | None = None


class PersistentVolumeStatus(Model, frozen=True):
    phase: str = ""


class PersistentVolume(Resource, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class StorageClass(Resource, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    reclaim_policy: str | None = None
    parameters: dict[str, str] | None = None
    allowed_topologies: list[JSON] = []


class CSINodeDriver(Model, frozen=True):
    name: str = ""
    allocatable: JSON | None = None


class CSINodeSpec(Model, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(Resource, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()
