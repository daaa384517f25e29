"""Binds PersistentVolumeClaims to volumes: to one whose claimRef names the claim, or to the smallest that fits.

Provisioning volumes is the agent's, choosing a node for claims that wait for their first consumer is the scheduler's;
both set a volume's claimRef, and the binding is completed here.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from typing import ClassVar, Final

from volcano.api.core import (
    PersistentVolume,
    PersistentVolumeClaim,
    PersistentVolumeClaimStatus,
    StorageClass,
)
from volcano.api.indexes import Indexes
from volcano.api.meta import JSON, Key, Resource
from volcano.api.pods.amounts import amounts_of
from volcano.api.quantity import Quantity, parse_quantity
from volcano.api.scheme import resource_type
from volcano.api.selectors import selector_from
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Found, Later, Look, Patch, Plan, Record, Ref, Step, merge_difference, ref
from volcano.machinery.world import Change, World

BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
UNBOUND_CLAIMS_KEY: Final = Key("", "unbound/")  # the key that stands for all claims without a volume
NO_STORAGE: Final = parse_quantity(0)


class VolumeBinderController(Controller):
    """Binds claims to volumes. A key is a claim, or a volume when it has no namespace."""

    name: ClassVar = "volume-binder"
    indexes: ClassVar[Indexes] = {
        PersistentVolume: {
            "claim": lambda volume: (
                [f"{volume.spec.claim_ref.namespace}/{volume.spec.claim_ref.name}"]
                if volume.spec.claim_ref is not None
                else []
            ),
            "free": lambda volume: [volume.spec.storage_class_name] if volume.spec.claim_ref is None else [],
        },
        PersistentVolumeClaim: {"unbound": lambda claim: ["yes"] if not claim.spec.volume_name else []},
    }

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {PersistentVolumeClaim: _claims, PersistentVolume: _volumes, StorageClass: _classes}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key == UNBOUND_CLAIMS_KEY:
            claims = world.where(PersistentVolumeClaim, "unbound", "yes")
            return tuple(Later(timedelta(0), key=claim.key) for claim in claims)
        if not key.namespace:
            volume = world.get(PersistentVolume, key)
            return _volume_steps(volume, world, causes) if volume is not None and not volume.is_deleting else NOTHING
        claim = world.get(PersistentVolumeClaim, key)
        if claim is None or claim.is_deleting:
            return NOTHING
        return _check_bound(claim, world) if claim.spec.volume_name else _bind(claim, world)


def _claims(change: Change[PersistentVolumeClaim]) -> Iterable[Wake]:
    claim = change.object
    yield Wake(claim.key)
    if claim.spec.volume_name:
        yield Wake(Key("", claim.spec.volume_name))


def _volumes(change: Change[PersistentVolume]) -> Iterable[Wake]:
    yield Wake(change.object.key)
    claim = change.object.spec.claim_ref
    if claim is not None:
        yield Wake(Key(claim.namespace, claim.name))
    elif change.new is not None:
        yield Wake(UNBOUND_CLAIMS_KEY)


def _classes(change: Change[StorageClass]) -> Iterable[Wake]:
    if change.new is not None:
        yield Wake(UNBOUND_CLAIMS_KEY)


# -- claims ---------------------------------------------------------------------------------------------------
def _bind(claim: PersistentVolumeClaim, world: World) -> Plan:
    """A claim without a volume: bind the volume that names it, or the best free one."""
    volume = _volume_naming(claim, world)
    if volume is None and not _waits(claim, world):
        volume = _best_free_volume(claim, world)
    if volume is None:
        return tuple(_claim_status(claim, None))
    steps: list[Step] = []
    have = volume.spec.claim_ref
    if have is None or have.uid != claim.uid:
        metadata: JSON = {"annotations": {BOUND_BY_CONTROLLER: "yes"}} if have is None else {}
        body: JSON = {"spec": {"claimRef": _reference(claim)}}
        steps.append(Patch(ref(volume, fresh=True), {**body, **({"metadata": metadata} if metadata else {})}))
    annotations = {BIND_COMPLETED: "yes", BOUND_BY_CONTROLLER: "yes"}
    steps.append(Patch(ref(claim), {"metadata": {"annotations": annotations}, "spec": {"volumeName": volume.name}}))
    return tuple(steps)


def _volume_naming(claim: PersistentVolumeClaim, world: World) -> PersistentVolume | None:
    named = world.where(PersistentVolume, "claim", str(claim.key))
    return next((v for v in named if _is_for(v, claim) and not v.is_deleting), None)


def _is_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    wanted = volume.spec.claim_ref
    return wanted is not None and (wanted.namespace, wanted.name) == claim.key and wanted.uid in ("", claim.uid)


def _waits(claim: PersistentVolumeClaim, world: World) -> bool:
    """The scheduler chooses volume and node together for claims of such a class."""
    storage = world.get(StorageClass, Key("", claim.spec.storage_class_name or ""))
    return storage is not None and storage.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _best_free_volume(claim: PersistentVolumeClaim, world: World) -> PersistentVolume | None:
    free = world.where(PersistentVolume, "free", claim.spec.storage_class_name or "")
    fitting = [volume for volume in free if fits(volume, claim)]
    return min(fitting, key=lambda volume: (_capacity(volume), volume.name), default=None)


def fits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether the volume has the size, access modes, volume mode and labels that the claim requests."""
    asked = amounts_of(claim.spec.resources.requests).get("storage", NO_STORAGE)
    return (
        not volume.is_deleting
        and _capacity(volume) >= asked
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and (claim.spec.volume_mode or "Filesystem") == (volume.spec.volume_mode or "Filesystem")
        and (claim.spec.selector is None or selector_from(claim.spec.selector).matches(volume.labels))
    )


def _capacity(volume: PersistentVolume) -> Quantity:
    return amounts_of(volume.spec.capacity).get("storage", NO_STORAGE)


def _check_bound(claim: PersistentVolumeClaim, world: World) -> Plan:
    """A claim with a volume: both must name each other, else it is Pending, or Lost if it was bound before."""
    volume = world.get(PersistentVolume, Key("", claim.spec.volume_name))
    if volume is None:
        lost = BIND_COMPLETED in claim.annotations
        steps = tuple(_claim_status(claim, None, phase="Lost" if lost else "Pending"))
        note = Record(ref(claim), "ClaimLost", "Bound claim has lost its PersistentVolume.", "Warning")
        return (*steps, note) if steps and lost else steps
    if volume.spec.claim_ref is None:
        if not fits(volume, claim):
            return tuple(_claim_status(claim, None))
        patch = {"spec": {"claimRef": _reference(claim)}, "metadata": {"annotations": {BOUND_BY_CONTROLLER: "yes"}}}
        return (Patch(ref(volume, fresh=True), patch), *_completed(claim), *_claim_status(claim, volume))
    if not _is_for(volume, claim):
        return tuple(_claim_status(claim, None))
    steps = ()
    if volume.spec.claim_ref.uid != claim.uid:
        steps = (Patch(ref(volume, fresh=True), {"spec": {"claimRef": _reference(claim)}}),)
    return (*steps, *_completed(claim), *_claim_status(claim, volume))


def _completed(claim: PersistentVolumeClaim) -> Iterable[Step]:
    """The mark by which schedulers know that a claim's volume is its own, also when the claim itself named it."""
    if BIND_COMPLETED not in claim.annotations:
        yield Patch(ref(claim), {"metadata": {"annotations": {BIND_COMPLETED: "yes"}}})


def _claim_status(claim: PersistentVolumeClaim, volume: PersistentVolume | None, *, phase: str = "") -> Iterable[Step]:
    """A bound claim has the capacity of its volume."""
    if volume is None:
        if claim.status.phase != (phase or "Pending"):
            yield Patch(ref(claim), {"status": {"phase": phase or "Pending"}}, subresource="status")
        return
    wanted = PersistentVolumeClaimStatus(phase="Bound", capacity=volume.spec.capacity)
    if claim.status.phase != "Bound" or claim.status.capacity != wanted.capacity:
        capacity = merge_difference(claim.status.capacity or {}, volume.spec.capacity or {})
        body: JSON = {"phase": "Bound", "accessModes": volume.spec.access_modes, "capacity": capacity}
        yield Patch(ref(claim), {"status": body}, subresource="status")


def _reference(claim: PersistentVolumeClaim) -> JSON:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "namespace": claim.namespace,
        "name": claim.name,
        "uid": claim.uid,
        "resourceVersion": claim.metadata.resource_version,
    }


# -- volumes --------------------------------------------------------------------------------------------------
def _volume_steps(volume: PersistentVolume, world: World, causes: tuple[Hashable, ...]) -> Plan:
    """Available without a claim, Bound while its claim exists, Released when the claim is gone."""
    wanted = volume.spec.claim_ref
    if wanted is None or not wanted.uid:
        return _in_phase(volume, "Available")
    key = Key(wanted.namespace, wanted.name)
    claim = world.get(PersistentVolumeClaim, key)
    if claim is not None and claim.uid == wanted.uid:
        return _in_phase(
            volume, "Bound" if claim.spec.volume_name == volume.name else volume.status.phase or "Available"
        )
    if volume.status.phase in ("Released", "Failed"):
        return NOTHING
    # A released volume may be deleted with its data, so the server is asked whether the claim is really gone.
    target = Ref(resource_type(PersistentVolumeClaim), key, wanted.uid)
    looked = next((c for c in causes if isinstance(c, Found) and c.target == target), None)
    if looked is None:
        return (Look(target),)
    return NOTHING if looked.present else _in_phase(volume, "Released")


def _in_phase(volume: PersistentVolume, phase: str) -> Plan:
    if phase == volume.status.phase:
        return NOTHING
    return (Patch(ref(volume), {"status": {"phase": phase}}, subresource="status"),)
