"""Decides which claims get a volume that is a folder, and when such a volume is deleted. Pure.

A claim of a class of this provisioner gets a volume when the scheduler has chosen its node, or at once with binding
mode Immediate. provisioner_service carries the plans out and removes folders.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path
from typing import ClassVar, Final

from volcano.api.core import PersistentVolume, PersistentVolumeClaim, StorageClass
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import resource_type
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Create, Delete, Patch, Plan, Record, ref
from volcano.machinery.world import Change, World

PROVISIONER: Final = "volcano.sh/folder"
FINALIZER: Final = "volcano.sh/folder"
STANDARD_CLASS_NAME: Final = "standard"
DEFAULT_CLASS_ANNOTATION: Final = "storageclass.kubernetes.io/is-default-class"
SELECTED_NODE_ANNOTATION: Final = "volume.kubernetes.io/selected-node"
PROVISIONED_BY: Final = "pv.kubernetes.io/provisioned-by"
VOLUMES: Final = resource_type(PersistentVolume)
ALL_CLAIMS: Final = Key("", "claims/")


def standard_class() -> JSON:
    """The default StorageClass, for claims that name none."""
    return {
        "metadata": {"name": STANDARD_CLASS_NAME, "annotations": {DEFAULT_CLASS_ANNOTATION: "true"}},
        "provisioner": PROVISIONER,
        "volumeBindingMode": "WaitForFirstConsumer",
        "reclaimPolicy": "Delete",
        "allowVolumeExpansion": True,
    }


class FolderProvisioner(Controller):
    """Makes volumes for claims. A key with a namespace is a claim, one without is a volume."""

    name: ClassVar = "folder-provisioner"

    def __init__(self, root: Path, nodes: Iterable[str]) -> None:
        self._root, self._nodes = root, tuple(sorted(nodes))

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {PersistentVolumeClaim: _itself, PersistentVolume: _itself, StorageClass: _classes}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key == ALL_CLAIMS:
            waiting = [claim for claim in world.all(PersistentVolumeClaim) if not claim.spec.volume_name]
            return tuple(step for claim in waiting for step in self._claimed(claim, world))
        if key.namespace:
            claim = world.get(PersistentVolumeClaim, key)
            return self._claimed(claim, world) if claim is not None else NOTHING
        volume = world.get(PersistentVolume, key)
        return _reclaimed(volume) if volume is not None else NOTHING

    def _claimed(self, claim: PersistentVolumeClaim, world: World) -> Plan:
        if claim.spec.volume_name or claim.is_deleting:
            return NOTHING
        if claim.spec.storage_class_name is None:
            return _given_default(claim, world)
        storage = world.get(StorageClass, Key("", claim.spec.storage_class_name))
        if storage is None or storage.provisioner != PROVISIONER:
            return NOTHING
        node = claim.annotations.get(SELECTED_NODE_ANNOTATION, "")
        if storage.volume_binding_mode == "WaitForFirstConsumer" and node not in self._nodes:
            return NOTHING  # no node chosen yet, or a node of another agent
        if world.get(PersistentVolume, Key("", f"pvc-{claim.uid}")) is not None:
            return NOTHING
        if claim.spec.volume_mode == "Block":
            return (Record(ref(claim), "ProvisioningFailed", "a folder cannot be a block device", "Warning"),)
        return (
            Create(VOLUMES, self._volume(claim, storage)),
            Record(ref(claim), "ProvisioningSucceeded", f"Successfully provisioned volume pvc-{claim.uid}"),
        )

    def _volume(self, claim: PersistentVolumeClaim, storage: StorageClass) -> JSON:
        """A volume reserved for this claim and restricted to the nodes of this machine."""
        hostnames = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(self._nodes)}
        return {
            "metadata": {
                "name": f"pvc-{claim.uid}",
                "annotations": {PROVISIONED_BY: PROVISIONER},
                "finalizers": [FINALIZER],
            },
            "spec": {
                "capacity": {"storage": (claim.spec.resources.requests or {}).get("storage", "0")},
                "accessModes": list(claim.spec.access_modes),
                "volumeMode": "Filesystem",
                "storageClassName": storage.name,
                "persistentVolumeReclaimPolicy": storage.reclaim_policy or "Delete",
                "hostPath": {"path": str(self._root / folder_name(claim)), "type": "DirectoryOrCreate"},
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": claim.namespace,
                    "name": claim.name,
                    "uid": claim.uid,
                },
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [hostnames]}]}},
            },
        }


def folder_name(claim: PersistentVolumeClaim) -> str:
    return f"{claim.namespace}_{claim.name}_{claim.uid}"


def is_ours(volume: PersistentVolume, root: Path) -> bool:
    """Whether the volume's folder may be removed: made by this provisioner and directly below the root."""
    path = Path(str((volume.spec.host_path or {}).get("path", "")))
    return (
        volume.annotations.get(PROVISIONED_BY) == PROVISIONER
        and path.parent == root
        and path.name not in ("", ".", "..")
    )


def _reclaimed(volume: PersistentVolume) -> Plan:
    if volume.annotations.get(PROVISIONED_BY) != PROVISIONER or volume.is_deleting:
        return NOTHING
    if volume.status.phase == "Released" and volume.spec.persistent_volume_reclaim_policy == "Delete":
        return (Delete(ref(volume)),)
    return NOTHING


def _given_default(claim: PersistentVolumeClaim, world: World) -> Plan:
    """Give a claim without a class the default one; the newest, where several are marked as default."""
    chosen = [each for each in world.all(StorageClass) if each.annotations.get(DEFAULT_CLASS_ANNOTATION) == "true"]
    if not chosen:
        return NOTHING
    newest = max(chosen, key=lambda each: (str(each.metadata.creation_timestamp or ""), each.name))
    return (Patch(ref(claim), {"spec": {"storageClassName": newest.name}}),)


def _itself(change: Change[Resource]) -> Iterable[Wake]:
    if change.new is not None:
        yield Wake(change.new.key)


def _classes(change: Change[StorageClass]) -> Iterable[Wake]:
    if change.new is not None:
        yield Wake(ALL_CLAIMS)
