"""A pod's volumes: which claims it has, what each is bound to, which volumes could take an unbound one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from volcano.api.core import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from volcano.api.meta import Key
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.selectors import selector_from
from volcano.scheduler.framework.answers import Refusal
from volcano.scheduler.model import ClusterObjects

BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
CLASS_ANNOTATION: Final = "volume.beta.kubernetes.io/storage-class"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"


@dataclass(slots=True)
class Claims:
    """A pod's claims: bound ones with their volume's name, and those that wait for a node to be chosen."""

    bound: list[tuple[Key, str]] = field(default_factory=list)
    waiting: list[tuple[Key, PersistentVolumeClaim]] = field(default_factory=list)
    refusal: Refusal | None = None  # reported before any node is looked at

    def __bool__(self) -> bool:
        return bool(self.bound or self.waiting)


def claim_keys(pod: Pod) -> Iterator[tuple[Key, bool]]:
    """Each claim, and whether it is made for this pod alone."""
    namespace = pod.namespace or "default"
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            yield Key(namespace, volume.persistent_volume_claim.claim_name), False
        elif volume.ephemeral is not None:
            yield Key(namespace, f"{pod.name}-{volume.name}"), True


def claims_of(pod: Pod, around: ClusterObjects) -> Claims:
    found = Claims()
    immediate = False
    for key, ephemeral in claim_keys(pod):
        claim = around.claims.get(key)
        objection = _objection(key, claim, ephemeral=ephemeral)
        if claim is None or objection:
            found.refusal = found.refusal or _refusal(objection)
            continue
        name = claim.spec.volume_name
        if name and BIND_COMPLETED in claim.annotations:
            found.bound.append((key, name))
        elif not name and waits_for_consumer(claim, around):
            found.waiting.append((key, claim))
        else:
            immediate = True
    if immediate and found.refusal is None:
        found.refusal = _refusal("pod has unbound immediate PersistentVolumeClaims")
    found.waiting.sort(key=lambda item: (requested_storage(item[1]), item[0]))
    return found


def _objection(key: Key, claim: PersistentVolumeClaim | None, *, ephemeral: bool) -> str:
    if claim is None:
        if ephemeral:
            return f'waiting for ephemeral volume controller to create the persistentvolumeclaim "{key.name}"'
        return f'persistentvolumeclaim "{key.name}" not found'
    if claim.status.phase == "Lost":
        return f'persistentvolumeclaim "{key.name}" bound to non-existent persistentvolume "{claim.spec.volume_name}"'
    if claim.is_deleting:
        return f'persistentvolumeclaim "{key.name}" is being deleted'
    return ""


def _refusal(message: str) -> Refusal:
    return Refusal("VolumeBinding", f"plugin VolumeBinding pre-predicates failed {message}")


def class_of(claim: PersistentVolumeClaim) -> str:
    return claim.annotations.get(CLASS_ANNOTATION) or claim.spec.storage_class_name or ""


def waits_for_consumer(claim: PersistentVolumeClaim, around: ClusterObjects) -> bool:
    storage_class = around.storage_classes.get(class_of(claim))
    return storage_class is not None and storage_class.volume_binding_mode == "WaitForFirstConsumer"


def can_provision(storage_class: StorageClass | None) -> bool:
    return storage_class is not None and storage_class.provisioner not in ("", NO_PROVISIONER)


def requested_storage(claim: PersistentVolumeClaim) -> int:
    return _storage((claim.spec.resources.requests or {}).get("storage", 0))


def capacity_of(volume: PersistentVolume) -> int:
    return _storage((volume.spec.capacity or {}).get("storage", 0))


def _storage(stated: str | int | float) -> int:
    try:
        return parse_quantity(stated).value
    except QuantityError:
        return 0


def is_kept_for(volume: PersistentVolume, key: Key, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume is already reserved for this claim."""
    reference = volume.spec.claim_ref
    if reference is None or (reference.namespace, reference.name) != tuple(key):
        return False
    return not reference.uid or reference.uid == claim.uid


def could_take(volume: PersistentVolume, key: Key, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume, wherever it is, suits the claim and is free."""
    if volume.is_deleting or capacity_of(volume) < requested_storage(claim):
        return False
    if (volume.spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
        return False
    if is_kept_for(volume, key, claim):
        return True
    if volume.spec.claim_ref is not None or volume.status.phase != "Available":
        return False
    if volume.spec.storage_class_name != class_of(claim):
        return False
    if claim.spec.selector is not None and not selector_from(claim.spec.selector).matches(volume.labels):
        return False
    return set(claim.spec.access_modes) <= set(volume.spec.access_modes)
