"""How objects are created and updated: the way to the store that create, update, patch and the subresources share.

Order as in Kubernetes: prune and default, mutating admission, default again, validate, validating admission, commit.
What differs between kinds is their strategy (kinds).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

from volcano.api.copies import decoded_again
from volcano.api.errors import Conflict, FieldError, Invalid
from volcano.api.meta import JSON
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.kinds.service_addresses import AddressClaim
from volcano.embedded.apiserver.kinds.strategy import AllocationContext
from volcano.embedded.apiserver.store.contract import ObjectKey, Stale, Stored
from volcano.embedded.apiserver.verbs.commit import commit, remove
from volcano.embedded.apiserver.verbs.conversion import in_asked_version
from volcano.embedded.apiserver.verbs.field_ownership import track
from volcano.embedded.apiserver.verbs.identity import (
    MODIFIED_MESSAGE,
    check_identity,
    check_kind,
    check_no_new_finalizers,
    keep_system_fields,
    object_metadata_errors,
    set_new_metadata,
)
from volcano.embedded.apiserver.wire.requests import WriteOptions, default_manager
from volcano.machinery.admission import CREATE, UPDATE, Attributes

MAX_ATTEMPTS: Final = 8

Transform = Callable[[JSON], JSON]


async def create_object(
    call: Call, obj: JSON, options: WriteOptions, *, duplicates: Sequence[str] = (), is_applied: bool = False
) -> tuple[Stored, JSON]:
    """A new object, stored; Stale when one of that name exists."""
    strategy = call.strategy
    obj, warnings = strategy.shape_new(obj, mode=options.field_validation, duplicates=duplicates)
    call.warnings += warnings
    set_new_metadata(call, obj["metadata"])
    strategy.prepare_create(obj)
    strategy.default_new(obj)
    if not is_applied:
        obj = _tracked(call, None, obj, options, "")
    attributes = _attributes(call, CREATE, obj, None, options, "")
    admitted = await _mutate(call, attributes)
    if admitted is not obj or call.backend.admission.fills_in(call.served.type):
        obj = admitted
        strategy.apply_defaults(obj)
    _check(call, obj, None)
    key, addresses = call.key_of(obj["metadata"]["name"]), call.backend.addresses.claim()
    try:
        strategy.allocate(obj, None, _allocation(call, addresses))
        await _validate(call, attributes, obj)
        return await _commit(call, attributes, key, obj, expected=0)
    finally:
        addresses.release()
        call.backend.admission.quota.release(key)


async def update_object(
    call: Call,
    transform: Transform,
    options: WriteOptions,
    *,
    subresource: str = "",
    is_conditional: bool = False,
    duplicates: Sequence[str] = (),
    is_applied: bool = False,
    keeps_argument: bool = False,
) -> tuple[Stored, JSON]:
    """Change the stored object by `transform`; a lost race is retried, unless the client named the version it saw.

    `keeps_argument`: the transform returns a new object, which may share parts with the one it is given.
    """
    for _ in range(MAX_ATTEMPTS):
        stored = await in_asked_version(call, call.found())
        try:
            return await _update_once(
                call,
                stored,
                transform,
                options,
                subresource=subresource,
                duplicates=duplicates,
                is_applied=is_applied,
                keeps_argument=keeps_argument,
            )
        except Stale:
            if is_conditional:
                break
    row = call.served.type
    raise Conflict.of(row.plural, call.target.name, MODIFIED_MESSAGE, row.group)


async def _update_once(
    call: Call,
    stored: Stored,
    transform: Transform,
    options: WriteOptions,
    *,
    subresource: str,
    duplicates: Sequence[str],
    is_applied: bool,
    keeps_argument: bool,
) -> tuple[Stored, JSON]:
    strategy = call.strategy
    old = strategy.from_stored(msgspec.json.decode(stored.raw))
    shares = keeps_argument and strategy.keeps_other_parts and stored.shaped_by is strategy
    new = transform(old if shares else strategy.from_stored(msgspec.json.decode(stored.raw)))
    check_kind(call, new)
    if new["metadata"] is old["metadata"]:
        new["metadata"] = dict(old["metadata"])
    check_identity(call, new, old)
    parts = _changed_parts(new, old)
    if duplicates or not strategy.fits(parts):
        call.warnings += strategy.check_fields(parts, mode=options.field_validation, duplicates=duplicates)
        for name in [name for name in new if name not in parts and name not in old]:
            del new[name]  # an unknown field, which was dropped
        strategy.check_types(parts)
    keep_system_fields(new, old)
    _keep_other_parts(call, new, old, subresource, shares=shares)
    strategy.prepare_update(new, old)
    if shares and old.keys() <= new.keys() and all(type(part) is dict for part in parts.values()):
        strategy.apply_defaults(dict(parts))  # the others have theirs
    else:
        strategy.apply_defaults(new)
    if not is_applied:
        new = _tracked(call, old, new, options, subresource)
    attributes = _attributes(call, UPDATE, new, old, options, subresource)
    admitted = await _mutate(call, attributes)
    if admitted is not new:
        new = admitted
        strategy.apply_defaults(new)
    keep_system_fields(new, old)
    _check(call, new, old)
    addresses = call.backend.addresses.claim()
    try:
        strategy.allocate(new, old, _allocation(call, addresses))
        _bump_generation(call, new, old)
        await _validate(call, attributes, new)
        if _may_be_removed(call, new):
            return await remove(call, stored, new, dry_run=options.dry_run)
        if new == old:
            return stored, old
        return await _commit(call, attributes, stored.key, new, expected=stored.revision)
    finally:
        addresses.release()


async def _commit(
    call: Call, attributes: Attributes, key: ObjectKey, obj: JSON, *, expected: int
) -> tuple[Stored, JSON]:
    admission = call.backend.admission
    if not admission.compares(attributes.resource):
        return await commit(call, key, obj, expected=expected, dry_run=attributes.dry_run)
    async with admission.turn(msgspec.structs.replace(attributes, object=obj)):
        return await commit(call, key, obj, expected=expected, dry_run=attributes.dry_run)


def _changed_parts(new: JSON, old: JSON) -> JSON:
    """The fields of the object that an update changes: the others were checked when they were stored.

    They are compared as they are encoded, since `1 == True`.
    """
    absent = object()
    return {
        name: part
        for name, part in new.items()
        if (before := old.get(name, absent)) is not part and (before is absent or _differs(part, before))
    }


def _differs(part: Any, before: Any) -> bool:
    return part != before or (type(part) is not str and msgspec.json.encode(part) != msgspec.json.encode(before))


def _allocation(call: Call, addresses: AddressClaim) -> AllocationContext:
    backend = call.backend
    return AllocationContext(backend.store, backend.registry.names_taken, backend.timestamp, addresses)


def _may_be_removed(call: Call, obj: JSON) -> bool:
    """Whether the object is being deleted and nothing holds it any longer."""
    metadata = obj["metadata"]
    return (
        bool(metadata.get("deletionTimestamp"))
        and not metadata.get("finalizers")
        and not metadata.get("deletionGracePeriodSeconds")
        and not call.strategy.is_held(obj)
    )


def _keep_other_parts(call: Call, new: JSON, old: JSON, subresource: str, *, shares: bool) -> None:
    """A plain update leaves status alone; an update of a part leaves everything else alone."""
    if subresource == "status":
        call.strategy.prepare_status_update(new, old if shares else decoded_again(old))
    elif subresource == "finalize":
        old = old if shares else decoded_again(old)
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        new.clear()
        new.update(old)
        new["metadata"] = dict(old["metadata"])
        new["spec"] = {**(old.get("spec") or {}), "finalizers": finalizers}
    elif subresource in ("ephemeralcontainers", "resize"):
        call.strategy.prepare_part_update(new, decoded_again(old), subresource)
    elif not subresource and call.served.type.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = old["status"] if shares else decoded_again(old["status"])


def _bump_generation(call: Call, new: JSON, old: JSON) -> None:
    strategy = call.strategy
    if not strategy.has_generation or call.target.subresource == "binding":
        return
    if strategy.wanted_state(new) != strategy.wanted_state(old):
        new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def _check(call: Call, obj: JSON, old: JSON | None) -> None:
    row, metadata = call.served.type, obj.get("metadata")
    errors: list[FieldError] = []
    if old is None or not isinstance(metadata, dict) or not _says_the_same(metadata, old["metadata"]):
        errors += object_metadata_errors(call, metadata if isinstance(metadata, dict) else {})
    subresource = call.target.subresource
    if old is None or subresource in ("", "status"):
        errors += call.strategy.errors(obj, old, is_status=subresource == "status")
    else:
        errors += call.strategy.validate_part(obj, old, subresource)
    if errors:
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        raise Invalid.of(row.kind, str(name or ""), errors, row.group)
    if old is not None:
        check_no_new_finalizers(call, obj, old)


def _says_the_same(metadata: JSON, before: JSON) -> bool:
    """Whether only the record of managers differs: the rest was checked when it was stored."""
    if len(metadata) - ("managedFields" in metadata) != len(before) - ("managedFields" in before):
        return False
    return all(name == "managedFields" or before.get(name) == value for name, value in metadata.items())


def _tracked(call: Call, old: JSON | None, new: JSON, options: WriteOptions, subresource: str) -> JSON:
    manager = options.field_manager or default_manager(call.request)
    now = call.backend.clock.now()
    return track(call.strategy, old, new, manager=manager, now=now, subresource=subresource)


async def _mutate(call: Call, attributes: Attributes) -> JSON:
    changed, warnings = await call.backend.admission.mutate(attributes)
    call.warnings += warnings
    assert attributes.object is not None, "only deletions have none"
    return changed if changed is not None else attributes.object


async def _validate(call: Call, attributes: Attributes, obj: JSON) -> None:
    if attributes.object is not obj:
        attributes = msgspec.structs.replace(attributes, object=obj)
    warnings = await call.backend.admission.validate(attributes)
    call.warnings += [warning for warning in warnings if warning not in call.warnings]


def _attributes(
    call: Call, operation: str, obj: JSON | None, old: JSON | None, options: WriteOptions, subresource: str
) -> Attributes:
    metadata = (obj or old or {}).get("metadata") or {}
    return Attributes(
        operation=operation,
        resource=call.served.type,
        name=str(metadata.get("name") or call.target.name),
        namespace=call.target.namespace if call.served.type.namespaced else "",
        object=obj,
        old=old,
        user=call.user,
        subresource=subresource,
        dry_run=options.dry_run,
        at=call.backend.clock.now(),
    )
