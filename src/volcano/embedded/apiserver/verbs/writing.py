"""The road to the store that all writes share: system fields, schema, admission, validation, commit.

Order as in Kubernetes: prune and default, mutate, default again, validate against the schema, validating admission,
commit.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import msgspec

from volcano.api.copies import copied
from volcano.api.errors import (
    BadRequest,
    Conflict,
    FieldError,
    Invalid,
    ServiceUnavailable,
)
from volcano.api.meta import JSON
from volcano.embedded.apiserver.admitting.hook import CREATE, UPDATE, Attributes
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.kinds.core_validation import core_errors
from volcano.embedded.apiserver.kinds.metadata import metadata_errors
from volcano.embedded.apiserver.kinds.ownership import track
from volcano.embedded.apiserver.kinds.service_addresses import assign_addresses
from volcano.embedded.apiserver.kinds.shaping import (
    apply_defaults,
    check_fields,
    check_value_types,
    schema_errors,
    shape_new,
)
from volcano.embedded.apiserver.kinds.strategies import KEEPS_STATUS_ON_CREATE, carry_over, prepare
from volcano.embedded.apiserver.registry.conversion import from_storage, to_storage
from volcano.embedded.apiserver.registry.custom_resources import set_status
from volcano.embedded.apiserver.registry.resources import CRDS
from volcano.embedded.apiserver.store.contract import ObjectKey, Stale, Stored, StoreFailed, Write
from volcano.embedded.apiserver.wire.requests import WriteOptions, default_manager

ATTEMPTS: Final = 8
_SYSTEM_FIELDS: Final = (
    "uid",
    "creationTimestamp",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "generation",
    "selfLink",
)
MODIFIED_MESSAGE: Final = "the object has been modified; please apply your changes to the latest version and try again"

Transform = Callable[[JSON], JSON]


def check_kind(call: Call, obj: JSON) -> None:
    """The body must be of the kind the URL names; one that names none is taken to be."""
    row = call.served.type
    for field, usual in (("kind", row.kind), ("apiVersion", row.api_version)):
        if not isinstance(obj.get(field), str | None):
            kind = {bool: "bool", list: "array", dict: "object"}.get(type(obj[field]), "number")
            start = msgspec.json.encode(obj)[:30].decode(errors="replace")
            raise BadRequest(
                f"the object provided is unrecognized (must be of type {row.kind}): couldn't get version/kind; json "
                f"parse error: json: cannot unmarshal {kind} into Go struct field .{field} of type string ({start} ...)"
            )
        obj[field] = obj.get(field) or usual
    kind, version = obj["kind"], obj["apiVersion"]
    if call.served.is_custom and version != row.api_version:
        raise BadRequest(
            f"the API version in the data ({version}) does not match the expected API version ({row.api_version})"
        )
    if call.served.is_custom and kind != row.kind:
        name = (obj.get("metadata") or {}).get("name") or ""
        raise Invalid.of(kind, name, [FieldError("kind", f'Invalid value: "{kind}": must be {row.kind}')], row.group)
    if kind != row.kind or version != row.api_version:
        group, _, short = version.rpartition("/")
        known = call.backend.registry.of_kind(group, short, kind) is not None
        why = f"converting ({short}.{kind}) to ({row.group or 'core'}.{row.kind}): unknown conversion"
        if not known:
            why = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
        raise BadRequest(f'{kind} in version "{short}" cannot be handled as a {row.kind}: {why}')
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    if not isinstance(obj["metadata"], dict):
        check_value_types(call.served, obj)
        raise BadRequest(
            f'{row.kind} in version "{row.version}" cannot be handled as a {row.kind}: metadata must be an object'
        )


async def create_object(
    call: Call, obj: JSON, options: WriteOptions, *, duplicates: Sequence[str] = (), is_applied: bool = False
) -> tuple[Stored, JSON]:
    """A new object, stored; Stale when there is one of that name."""
    served, row = call.served, call.served.type
    obj, warnings = shape_new(served, obj, mode=options.field_validation, duplicates=duplicates)
    call.warnings += warnings
    _new_metadata(call, obj["metadata"])
    if row.has_status and row.qualified not in KEEPS_STATUS_ON_CREATE:
        obj.pop("status", None)
    if not served.is_custom:
        prepare(row, obj)
    if served.storage != "pods":  # whose defaults came with their shape
        apply_defaults(served, obj)
    if not is_applied:
        obj = _tracked(call, None, obj, options, "")
    obj = await _mutate(call, CREATE, obj, None, options)
    if call.backend.admission.is_open:
        apply_defaults(served, obj)
    _check(call, obj, None)
    _settle(call, obj, None)
    await _validate(call, CREATE, obj, None, options)
    key = call.key_of(obj["metadata"]["name"])
    try:
        return await commit(call, key, obj, expected=0, dry_run=options.dry_run)
    finally:
        call.backend.admission.quota.release(key)


def _new_metadata(call: Call, metadata: JSON) -> None:
    for field in (*_SYSTEM_FIELDS, "resourceVersion"):
        metadata.pop(field, None)
    row = call.served.type
    if not isinstance(metadata.get("name") or "", str) or not isinstance(metadata.get("generateName") or "", str):
        raise Invalid.of(row.kind, "", metadata_errors(row.qualified, metadata), row.group)
    if not metadata.get("name") and metadata.get("generateName"):
        metadata["name"] = f"{metadata['generateName'][:58]}{call.backend.ids.suffix()}"
    if row.namespaced:
        given = metadata.get("namespace")
        if given and given != call.target.namespace:
            raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
        metadata["namespace"] = call.target.namespace
    else:
        metadata.pop("namespace", None)
    metadata["uid"] = call.backend.ids.uid()
    metadata["creationTimestamp"] = call.backend.timestamp()
    if call.served.has_generation:
        metadata["generation"] = 1


async def update_object(
    call: Call,
    transform: Transform,
    options: WriteOptions,
    *,
    subresource: str = "",
    insists: bool = False,
    duplicates: Sequence[str] = (),
    is_applied: bool = False,
) -> tuple[Stored, JSON]:
    """Change the stored object by `transform`; tried again when someone else was faster, unless the caller insists."""
    for _ in range(ATTEMPTS):
        stored = call.found()
        try:
            return await _update_once(
                call,
                stored,
                transform,
                options,
                subresource=subresource,
                duplicates=duplicates,
                is_applied=is_applied,
            )
        except Stale:
            if insists:
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
) -> tuple[Stored, JSON]:
    served = call.served
    old = from_storage(served, msgspec.json.decode(stored.raw))
    new = transform(copied(old))
    check_kind(call, new)
    _check_identity(call, new, old)
    call.warnings += check_fields(served, new, mode=options.field_validation, duplicates=duplicates)
    check_value_types(served, new)
    _keep_system_fields(new, old)
    _keep_other_parts(call, new, old, subresource)
    if not served.is_custom:
        carry_over(served.type, new, old)
    apply_defaults(served, new)
    if not is_applied:
        new = _tracked(call, old, new, options, subresource)
    new = await _mutate(call, UPDATE, new, old, options, subresource)
    if call.backend.admission.is_open:
        apply_defaults(served, new)
    _keep_system_fields(new, old)
    _check(call, new, old)
    _settle(call, new, old)
    _bump_generation(call, new, old)
    await _validate(call, UPDATE, new, old, options, subresource)
    if _may_go(call, new):
        return await remove(call, stored, new, dry_run=options.dry_run)
    if new == old:
        return stored, old
    return await commit(call, stored.key, new, expected=stored.revision, dry_run=options.dry_run)


def _settle(call: Call, obj: JSON, old: JSON | None) -> None:
    """What the server itself decides about a valid object: a CRD's accepted names, a service's addresses."""
    if call.served.storage == "services":
        assign_addresses(call.backend.store, obj, old)
    if call.served.storage == CRDS and not obj["metadata"].get("deletionTimestamp"):
        set_status(obj, call.backend.registry, call.backend.timestamp())


def _may_go(call: Call, obj: JSON) -> bool:
    """Being deleted, and nothing holds it any longer. A namespace also has finalizers in its spec."""
    metadata = obj["metadata"]
    if (
        not metadata.get("deletionTimestamp")
        or metadata.get("finalizers")
        or metadata.get("deletionGracePeriodSeconds")
    ):
        return False
    return call.served.type.qualified != "namespaces" or not (obj.get("spec") or {}).get("finalizers")


def _check_identity(call: Call, new: JSON, old: JSON) -> None:
    row, metadata, before = call.served.type, new["metadata"], old["metadata"]
    name = metadata.get("name") or before["name"]
    if name != before["name"]:
        raise BadRequest(f"the name of the object ({name}) does not match the name on the URL ({before['name']})")
    metadata["name"] = name
    if row.namespaced and (metadata.get("namespace") or before["namespace"]) != before["namespace"]:
        raise BadRequest("the namespace of the provided object does not match the namespace sent on the request")
    uid = metadata.get("uid")
    if uid and uid != before["uid"]:
        raise Conflict.of(
            row.plural,
            name,
            f"Precondition failed: UID in precondition: {uid}, UID in object meta: {before['uid']}",
            row.group,
        )
    version = metadata.get("resourceVersion")
    if version and version != before["resourceVersion"]:
        if not isinstance(version, str) or not version.isdigit():
            raise Invalid.of(
                row.kind,
                name,
                [FieldError("metadata.resourceVersion", f"Invalid value: {version!r}: must be an unsigned integer")],
                row.group,
            )
        raise Conflict.of(row.plural, name, MODIFIED_MESSAGE, row.group)
    metadata["resourceVersion"] = before["resourceVersion"]


def _keep_system_fields(new: JSON, old: JSON) -> None:
    metadata, before = new["metadata"], old["metadata"]
    metadata["name"] = before["name"]
    for field in (*_SYSTEM_FIELDS, "namespace", "resourceVersion"):
        if field in before:
            metadata[field] = before[field]
        else:
            metadata.pop(field, None)


def _keep_other_parts(call: Call, new: JSON, old: JSON, subresource: str) -> None:
    """A plain update leaves status alone; a status update leaves everything else alone."""
    if subresource == "status":
        status = new.get("status")
        metadata = new["metadata"]
        kept = {field: metadata[field] for field in ("labels", "annotations", "managedFields") if field in metadata}
        new.clear()
        new.update(copied(old))
        new.pop("status", None)
        if status is not None:
            new["status"] = status
        if not call.served.is_custom:
            for field in ("labels", "annotations"):
                new["metadata"].pop(field, None)
            new["metadata"].update(kept)
        elif "managedFields" in kept:
            new["metadata"]["managedFields"] = kept["managedFields"]
    elif subresource == "finalize":
        finalizers = (new.get("spec") or {}).get("finalizers") or []
        new.clear()
        new.update(copied(old))
        new["spec"] = {**(old.get("spec") or {}), "finalizers": finalizers}
    elif not subresource and call.served.type.has_status:
        new.pop("status", None)
        if "status" in old:
            new["status"] = copied(old["status"])


def _bump_generation(call: Call, new: JSON, old: JSON) -> None:
    if not call.served.has_generation or call.target.subresource == "binding":
        return
    ignored = {"metadata", "status"} if call.served.type.has_status or not call.served.is_custom else {"metadata"}
    if _without(new, ignored) != _without(old, ignored):
        new["metadata"]["generation"] = (old["metadata"].get("generation") or 0) + 1


def _without(obj: Mapping[str, Any], fields: set[str]) -> JSON:
    return {field: value for field, value in obj.items() if field not in fields}


def _check(call: Call, obj: JSON, old: JSON | None) -> None:
    row = call.served.type
    metadata = obj.get("metadata")
    errors = metadata_errors(row.qualified, metadata if isinstance(metadata, dict) else {})
    if old is None or call.target.subresource in ("", "status"):
        if call.served.is_custom:
            errors += schema_errors(call.served, obj, old)
        else:
            errors += core_errors(row, obj, old, call.target.subresource if old is not None else "")
    if errors:
        name = metadata.get("name") if isinstance(metadata, dict) else ""
        raise Invalid.of(row.kind, str(name or ""), errors, row.group)
    if old is not None and old["metadata"].get("deletionTimestamp"):
        added = set(obj["metadata"].get("finalizers") or ()) - set(old["metadata"].get("finalizers") or ())
        if added:
            raise Invalid.of(
                row.kind,
                old["metadata"]["name"],
                [
                    FieldError(
                        "metadata.finalizers",
                        "Forbidden: no new finalizers can be added if the object is being deleted, found new "
                        f"finalizers {sorted(added)}",
                        "FieldValueForbidden",
                    )
                ],
                row.group,
            )


def _tracked(call: Call, old: JSON | None, new: JSON, options: WriteOptions, subresource: str) -> JSON:
    manager = options.field_manager or default_manager(call.request)
    now = call.backend.clock.now()
    return track(call.served, old, new, manager=manager, now=now, subresource=subresource)


async def _mutate(
    call: Call, operation: str, obj: JSON, old: JSON | None, options: WriteOptions, subresource: str = ""
) -> JSON:
    changed, warnings = await call.backend.admission.admit(_attributes(call, operation, obj, old, options, subresource))
    call.warnings += warnings
    return changed if changed is not None else obj


async def _validate(
    call: Call, operation: str, obj: JSON, old: JSON | None, options: WriteOptions, subresource: str = ""
) -> None:
    attributes = _attributes(call, operation, obj, old, options, subresource)
    _, warnings = await call.backend.admission.admit(msgspec.structs.replace(attributes, phase="validate"))
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
    )


async def commit(call: Call, key: ObjectKey, obj: JSON, *, expected: int, dry_run: bool = False) -> tuple[Stored, JSON]:
    """Make it durable. A dry run only shows what would be stored."""
    stored_form = to_storage(call.served, obj)

    def encode(revision: int) -> bytes:
        stored_form["metadata"]["resourceVersion"] = str(revision)
        return msgspec.json.encode(stored_form)

    if dry_run:
        current = call.backend.store.find(key)
        if (current.revision if current else 0) != expected:
            raise Stale
        if not expected:
            return Stored(key, 0, msgspec.json.encode(stored_form)), obj
        return Stored(key, expected, encode(expected)), obj
    write = Write(key, expected, encode, index=call.served.index(stored_form))
    try:
        return await call.backend.store.write(write), obj
    except StoreFailed as error:
        raise ServiceUnavailable(f"the write could not be stored: {error}", details={"retryAfterSeconds": 1}) from error


async def remove(call: Call, stored: Stored, obj: JSON, *, dry_run: bool = False) -> tuple[Stored, JSON]:
    """Take the object out of the store; the log keeps its last state."""
    stored_form = to_storage(call.served, obj)

    def encode(revision: int) -> bytes:
        stored_form["metadata"]["resourceVersion"] = str(revision)
        return msgspec.json.encode(stored_form)

    if dry_run:
        return stored, obj
    write = Write(stored.key, stored.revision, encode, deletes=True, index=call.served.index(stored_form))
    try:
        return await call.backend.store.write(write), obj
    except StoreFailed as error:
        raise ServiceUnavailable(f"the write could not be stored: {error}", details={"retryAfterSeconds": 1}) from error
