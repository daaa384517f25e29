"""Garbage collection by owner references: deletes objects whose owners are all gone.

Background: an object is deleted once all its owners are gone. Foreground: an owner with the finalizer
`foregroundDeletion` is deleted after the dependents that block it. Orphan: an owner with the finalizer `orphan` is
removed from the references of its dependents. An owner that is not in the World is looked up on the server before
anything is deleted because of it.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final, Literal

import msgspec

from volcano.api.core import CustomResourceDefinition
from volcano.api.indexes import Indexes
from volcano.api.meta import JSON, Key, OwnerReference, Resource
from volcano.api.partial import FOREGROUND, ORPHAN, PartialObject, owner_keys
from volcano.api.scheme import ResourceType, custom_resource_type, find_resource_type
from volcano.machinery.controller import Controller, Wake, Waker
from volcano.machinery.plan import NOTHING, Delete, Found, Later, Look, Patch, Plan, Ref, Step, Together
from volcano.machinery.world import Change, World

AT_ONCE: Final = timedelta(0)
UNSEEN_OWNER_RECHECK: Final = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class ObjectDeleted:
    """The deletion of this object was observed."""

    uid: str


@dataclass(frozen=True, slots=True)
class OwnerDeleted:
    """The deletion of an owner of this object was observed."""

    uid: str


@dataclass(slots=True)
class _Owners:
    """The owners of an object, by what is known about them."""

    solid: list[OwnerReference]
    waiting: list[OwnerReference]  # being deleted in the foreground
    dangling: list[OwnerReference]  # deleted
    missing: list[Ref]  # not in the World
    is_unsure: bool = False  # some of the missing ones must be looked up
    unseen: bool = False  # the server has one that the World does not have yet


class OwnerGarbageController(Controller):
    """Deletes objects that have no owner left."""

    name: ClassVar = "owner-garbage"
    indexes: ClassVar[Indexes] = {
        PartialObject: {"uid": lambda partial: [partial.uid]},
        CustomResourceDefinition: {"kind": lambda crd: [f"{crd.spec.names.kind}.{crd.spec.group}"]},
    }

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {PartialObject: _wakes}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (CustomResourceDefinition,)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        steps = list(_requeue_dependents(world, causes))
        partial = world.get(PartialObject, key)
        if partial is None:
            return tuple(steps)
        if partial.orphans_dependents:
            return (*steps, *_orphan_dependents(partial, world))
        if partial.waits_for_dependents:
            steps += _finish_foreground(partial, world)
        if partial.metadata.owner_references and (not partial.is_deleting or partial.waits_for_dependents):
            steps += _collect_or_keep(partial, world, causes)
        return tuple(steps)


def _wakes(change: Change[PartialObject]) -> Iterable[Wake]:
    partial = change.object
    if change.new is None:
        yield Wake(partial.key, ObjectDeleted(partial.uid))
    elif partial.metadata.owner_references or partial.metadata.finalizers:
        yield Wake(partial.key)
    if change.old is not None:
        # An owner in foreground deletion may have waited for this one.
        still = change.new.metadata.owner_references if change.new is not None and not change.new.is_deleting else []
        for owner in change.old.metadata.owner_references:
            if owner not in still:
                yield from (Wake(key) for key in owner_keys(partial.namespace, owner))


def _requeue_dependents(world: World, causes: Iterable[Hashable]) -> Iterable[Step]:
    for cause in causes:
        if isinstance(cause, ObjectDeleted) and not world.where(PartialObject, "uid", cause.uid):
            for dependent in world.where(PartialObject, "owner", cause.uid):
                yield Later(AT_ONCE, OwnerDeleted(cause.uid), dependent.key)


def _collect_or_keep(partial: PartialObject, world: World, causes: tuple[Hashable, ...]) -> Plan:
    """Keep the object, remove references to deleted owners, or delete it."""
    owners = _classified(partial, world, causes)
    if owners.is_unsure:
        # All missing owners are looked up at once: the causes of one decision are not kept for the next.
        return tuple(Look(ref) for ref in owners.missing)
    if owners.solid:
        again: Plan = (Later(UNSEEN_OWNER_RECHECK),) if owners.unseen else NOTHING
        if not owners.dangling and not owners.waiting:
            return again
        return (_with_owners(partial, owners.solid), *again)
    if partial.is_deleting:
        return NOTHING
    dependents = world.where(PartialObject, "owner", partial.uid)
    if owners.waiting and dependents:
        # Two objects that block each other would never be deleted: this one stops blocking.
        freed: Plan = ()
        if any(dependent.waits_for_dependents for dependent in dependents):
            freed = (_with_owners(partial, _unblocking(partial.metadata.owner_references)),)
        return (*freed, Delete(_ref(partial), propagation="Foreground"))
    return (Delete(_ref(partial), propagation=_policy(partial)),)


def _classified(partial: PartialObject, world: World, causes: tuple[Hashable, ...]) -> _Owners:
    owners = _Owners([], [], [], [])
    gone = {cause.uid for cause in causes if isinstance(cause, OwnerDeleted)}
    looked = {cause.target.uid: cause.present for cause in causes if isinstance(cause, Found)}
    for owner in partial.metadata.owner_references:
        found = _find(owner, partial, world)
        ref = _lookup(owner, partial, world) if found is None else None
        if found is not None:
            (owners.waiting if found.waits_for_dependents else owners.solid).append(owner)
        elif ref is None:
            owners.solid.append(owner)  # an unknown kind may exist elsewhere: keep the object
        else:
            owners.missing.append(ref)
            if owner.uid in gone or looked.get(owner.uid) is False:
                owners.dangling.append(owner)
            elif looked.get(owner.uid):
                owners.solid.append(owner)
                owners.unseen = True
            else:
                owners.is_unsure = True
    return owners


def _find(owner: OwnerReference, partial: PartialObject, world: World) -> PartialObject | None:
    """An owner is in the same namespace or cluster-scoped; an object in another namespace does not count."""
    places = (partial.namespace, "")
    return next((o for o in world.where(PartialObject, "uid", owner.uid) if o.namespace in places), None)


def _lookup(owner: OwnerReference, partial: PartialObject, world: World) -> Ref | None:
    row = _row(owner, world)
    if row is None:
        return None
    return Ref(row, Key(partial.namespace if row.namespaced else "", owner.name), owner.uid)


def _row(owner: OwnerReference, world: World) -> ResourceType | None:
    group = owner.api_version.rpartition("/")[0]
    row = find_resource_type(group, owner.kind)
    if row is not None:
        return row
    crds = world.where(CustomResourceDefinition, "kind", f"{owner.kind}.{group}")
    return custom_resource_type(crds[0]) if crds else None


def _finish_foreground(partial: PartialObject, world: World) -> Plan:
    """Foreground deletion: requeue the dependents, and remove the finalizer once none of them blocks."""
    dependents = world.where(PartialObject, "owner", partial.uid)
    if not any(_blocks(dependent, partial) for dependent in dependents):
        return (_without_finalizer(partial, FOREGROUND),)
    return tuple(Later(AT_ONCE, key=dependent.key) for dependent in dependents if not dependent.is_deleting)


def _blocks(dependent: PartialObject, owner: PartialObject) -> bool:
    return any(o.uid == owner.uid and o.block_owner_deletion for o in dependent.metadata.owner_references)


def _orphan_dependents(partial: PartialObject, world: World) -> Plan:
    dependents = world.where(PartialObject, "owner", partial.uid)
    struck = tuple(
        _with_owners(dependent, [o for o in dependent.metadata.owner_references if o.uid != partial.uid])
        for dependent in dependents
    )
    free = _without_finalizer(partial, ORPHAN)
    return (Together(struck), free) if struck else (free,)


def _policy(partial: PartialObject) -> Literal["Background", "Foreground", "Orphan"]:
    if ORPHAN in partial.metadata.finalizers:
        return "Orphan"
    return "Foreground" if FOREGROUND in partial.metadata.finalizers else "Background"


def _unblocking(owners: Iterable[OwnerReference]) -> list[OwnerReference]:
    return [msgspec.structs.replace(owner, block_owner_deletion=False) for owner in owners]


def _with_owners(partial: PartialObject, owners: list[OwnerReference]) -> Patch:
    body: JSON = {"metadata": {"ownerReferences": msgspec.to_builtins(owners) or None}}
    return Patch(_ref(partial, fresh=True), body)


def _without_finalizer(partial: PartialObject, finalizer: str) -> Patch:
    left = [each for each in partial.metadata.finalizers if each != finalizer]
    return Patch(_ref(partial, fresh=True), {"metadata": {"finalizers": left or None}})


def _ref(partial: PartialObject, *, fresh: bool = False) -> Ref:
    version = partial.metadata.resource_version if fresh else ""
    return Ref(partial.resource, partial.object_key, partial.uid, version)
