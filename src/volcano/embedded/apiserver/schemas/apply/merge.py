"""Server-side apply: merging what managers apply, conflicts between them, and who manages which field.

`apply_patch` answers a PATCH of type apply; `track_update` updates managedFields on create, update and other
patches. Both are pure and return the object to store.
"""

from __future__ import annotations

from collections.abc import Collection
from datetime import datetime
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api.errors import BadRequest, Conflict
from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import core_table
from volcano.api.times import timestamp
from volcano.embedded.apiserver.schemas.apply.field_sets import BadFields, Tree, difference, intersection, paths, union
from volcano.embedded.apiserver.schemas.apply.managed_fields import (
    APPLY,
    MAX_ENTRIES,
    UPDATE,
    Managed,
    ManagedEntry,
    Owner,
    capped,
    owner_of,
    read_managed,
    written,
)
from volcano.embedded.apiserver.schemas.apply.stored_entries import entries_after
from volcano.embedded.apiserver.schemas.apply.typed_values import (
    Comparison,
    TypedError,
    all_of,
    compare,
    fields_of,
    merged,
    misfits,
    with_named_fields,
    without,
)
from volcano.embedded.apiserver.schemas.crd.structural import StructuralSchema
from volcano.embedded.apiserver.schemas.reading import text
from volcano.embedded.apiserver.schemas.type_nodes import UNTYPED, TypeNode, core_node, custom_node

Schema: TypeAlias = StructuralSchema | str | JSON | None
"""A CRD's schema (compiled or plain), or the name of one in the core table; None knows nothing."""

BEFORE_FIRST_APPLY: Final = "before-first-apply"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
MAX_CAUSES: Final = 100
_UNTRACKED: Final[Tree] = {
    "f:apiVersion": {".": {}},
    "f:kind": {".": {}},
    "f:metadata": {
        ".": {},
        **{
            f"f:{name}": {".": {}}
            for name in (
                "name", "namespace", "creationTimestamp", "selfLink", "uid", "clusterName", "generation",
                "managedFields", "resourceVersion",
            )
        },
    },
}  # fmt: skip
"""Fields that are never managed."""


def apply_patch(
    live: JSON | None,
    applied: JSON,
    *,
    manager: str,
    force: bool,
    schema: Schema,
    now: datetime,
    subresource: str = "",
    ignored: Collection[str] = (),
) -> JSON:
    """The object after an apply; the live object itself when nothing changes. `ignored` fields are not to be applied.

    Raises Conflict when another manager has another value for a field, BadRequest when the patch cannot be applied.
    """
    if isinstance(applied.get("metadata"), dict) and applied["metadata"].get("managedFields") is not None:
        raise BadRequest("metadata.managedFields must be nil")
    node = node_of(schema)
    config = {name: value for name, value in _without_nulls(applied).items() if name not in ignored}
    _check(config, node, applied)
    version = text(applied, "apiVersion")
    current: JSON = live if live is not None else _blank(applied, None)
    managed = _managed_before(live, node, schema, version, now)
    owner = owner_of(manager, APPLY, version, subresource)
    try:
        return _applied(current, config, managed, owner=owner, version=version, force=force, node=node, now=now)
    except _Conflicts as conflicts:
        remaining = conflicts.without(_allowed_by_last_applied(live, manager, version, node))
        if remaining:
            raise _conflict(remaining) from None
    except TypedError as error:
        raise BadRequest(f"failed to create typed patch object ({_named(applied)}): {error}") from None
    return _applied(current, config, managed, owner=owner, version=version, force=True, node=node, now=now)


def track_update(
    old: JSON | None,
    new: JSON,
    *,
    manager: str,
    operation: str = UPDATE,
    schema: Schema,
    now: datetime,
    subresource: str = "",
) -> JSON:
    """The new object with managedFields that include what this change set. `old` is None on create.

    The request's own managedFields, where it has readable ones, are the starting point (an empty list resets them).
    """
    node = node_of(schema)
    version = text(new, "apiVersion")
    owner = owner_of(manager, operation, version, subresource)
    target, before = _bare(new), _bare(old) if old is not None else _blank(new, schema)
    if old is not None and (entries := _unchanged_entries(old, new, subresource)):
        try:
            change = compare(before, target, node)
        except TypedError:
            return _with_entries(target, entries)
        taken = difference(union(change.modified, change.added), _UNTRACKED)
        touched = all_of([change.modified, change.added, change.removed])
        updated = entries_after(
            entries, touched=touched, taken=taken, owner=owner, version=version, time=timestamp(now)
        )
        if updated is not None:
            return _with_entries(target, updated)
    managed, reset = _managed_of(old, new, subresource)
    if reset or (old is not None and not managed):
        return _stored(target, {})
    try:
        change = compare(before, target, node)
    except TypedError:
        return _stored(target, managed)
    managed = _released(managed, change, owner=None)
    taken = difference(union(change.modified, change.added), _UNTRACKED)
    if taken:
        held = managed[owner].fields if owner in managed else {}
        managed[owner] = ManagedEntry(union(held, taken), version, timestamp(now))
    return _stored(target, capped(managed))


def node_of(schema: Schema) -> TypeNode:
    """The type that a schema describes."""
    if isinstance(schema, StructuralSchema):
        return schema.node
    if isinstance(schema, str):
        return core_node(schema)
    return custom_node(schema) if schema else UNTYPED


# -- applying -------------------------------------------------------------------------------------------------
def _applied(
    live: JSON,
    config: JSON,
    managed: Managed,
    *,
    owner: Owner,
    version: str,
    force: bool,
    node: TypeNode,
    now: datetime,
) -> JSON:
    before = _bare(live)
    last = managed[owner].fields if owner in managed else {}
    fields = fields_of(config, node)
    time = managed[owner].time if owner in managed else None
    claimed = {**managed, owner: ManagedEntry(fields, version, time)}
    after = _pruned(merged(before, config, node), claimed, last, node)
    change = compare(before, after, node)
    conflicts = _conflicts(claimed, change, owner)
    if conflicts and not force:
        raise _Conflicts(conflicts)
    claimed = _released(claimed, change, owner=owner)
    tracked = difference(fields, _UNTRACKED)
    claimed.pop(owner, None)
    if tracked:
        claimed[owner] = ManagedEntry(tracked, version, time)
    if after == before:
        return live if claimed == managed else _stored(before, claimed)
    if owner in claimed:
        claimed[owner] = ManagedEntry(claimed[owner].fields, version, timestamp(now))
    return _stored(after, claimed)


def _pruned(value: JSON, managed: Managed, last: Tree, node: TypeNode) -> JSON:
    """The object without the fields that this manager no longer applies and no other manager owns."""
    if not last:
        return value
    had = with_named_fields(last, node)
    rest = without(value, had, node)
    everything = with_named_fields(fields_of(value, node), node)
    left = with_named_fields(fields_of(rest, node), node)
    owned = with_named_fields(all_of([entry.fields for entry in managed.values()]), node)
    gone = intersection(difference(everything, union(left, owned)), had)
    kept: JSON = without(value, gone, node)
    return kept


def _conflicts(managed: Managed, change: Comparison, owner: Owner) -> dict[Owner, Tree]:
    touched = union(change.modified, change.added)
    found = {other: intersection(entry.fields, touched) for other, entry in managed.items() if other != owner}
    return {other: tree for other, tree in found.items() if tree}


def _released(managed: Managed, change: Comparison, owner: Owner | None) -> Managed:
    """The entries without the fields that a change took over; the owner of the change keeps its own."""
    taken = all_of([change.modified, change.added, change.removed])
    answer: Managed = {}
    for other, entry in managed.items():
        lost = taken if other != owner else {}
        fields = difference(entry.fields, lost)
        if fields:
            answer[other] = entry if not lost else ManagedEntry(fields, entry.api_version, entry.time)
    return answer


def _managed_before(live: JSON | None, node: TypeNode, schema: Schema, version: str, now: datetime) -> Managed:
    """The live object's entries; fields without a known manager belong to `before-first-apply`."""
    try:
        managed = read_managed(live)
    except BadFields as error:
        raise BadRequest(f"failed to decode managed fields: {error}") from None
    if live is None or managed:
        return managed
    change = compare(_blank(live, schema), _bare(live), node)
    fields = difference(union(change.modified, change.added), _UNTRACKED)
    if not fields:
        return {}
    live_version = text(live, "apiVersion") or version
    owner = owner_of(BEFORE_FIRST_APPLY, UPDATE, live_version, "")
    return {owner: ManagedEntry(fields, live_version, timestamp(now))}


def _check(config: JSON, node: TypeNode, applied: JSON) -> None:
    problems = list(misfits(config, node))
    if problems:
        raise BadRequest(f"failed to create typed patch object ({_named(applied)}): {problems[0]}")


def _named(applied: JSON) -> str:
    group, _, version = text(applied, "apiVersion").rpartition("/")
    where = f"{text(applied, 'metadata', 'namespace')}/{text(applied, 'metadata', 'name')}"
    return f"{where}; {f'{group}/{version}' if group else version}, Kind={text(applied, 'kind')}"


# -- conflicts ------------------------------------------------------------------------------------------------
class _Conflicts(Exception):
    def __init__(self, found: dict[Owner, Tree]) -> None:
        super().__init__("conflicts")
        self.found = found

    def without(self, allowed: Tree) -> dict[Owner, Tree]:
        if not allowed or any(difference(tree, allowed) for tree in self.found.values()):
            rest = {owner: difference(tree, allowed) for owner, tree in self.found.items()}
            return {owner: tree for owner, tree in rest.items() if tree}
        return {}


def _conflict(found: dict[Owner, Tree]) -> Conflict:
    named = [(owner, path) for owner in sorted(found, key=lambda o: o.shown) for path in paths(found[owner])]
    if len(named) == 1:
        message = f"Apply failed with 1 conflict: conflict with {named[0][0].shown}: {named[0][1]}"
    else:
        lines: list[str] = []
        for owner in sorted(found, key=lambda o: o.shown):
            lines.append(f"conflicts with {owner.shown}:")
            lines += [f"- {path}" for path in paths(found[owner])]
        message = f"Apply failed with {len(named)} conflicts: " + "\n".join(lines)
    causes = [
        {"reason": "FieldManagerConflict", "message": f"conflict with {owner.shown}", "field": path}
        for owner, path in named[:MAX_CAUSES]
    ]
    return Conflict(message, details={"causes": causes})


def _allowed_by_last_applied(live: JSON | None, manager: str, version: str, node: TypeNode) -> Tree:
    """The fields of the last client-side `kubectl apply`, which `kubectl apply --server-side` may take over."""
    recorded = text(live, "metadata", "annotations", LAST_APPLIED) if manager == "kubectl" else ""
    if not recorded or live is None:
        return {}
    try:
        last = msgspec.json.decode(recorded)
        if not isinstance(last, dict) or last.get("apiVersion") != version:
            return {}
        change = compare(last, _bare(live), node)
        return difference(fields_of(last, node), all_of([change.modified, change.added, change.removed]))
    except (msgspec.DecodeError, TypedError, RecursionError):
        return {}


# -- objects --------------------------------------------------------------------------------------------------
def _bare(obj: JSON) -> JSON:
    """The object without managedFields."""
    metadata = obj.get("metadata")
    if not isinstance(metadata, dict) or "managedFields" not in metadata:
        return obj
    return {**obj, "metadata": {key: value for key, value in metadata.items() if key != "managedFields"}}


def _stored(obj: JSON, managed: Managed) -> JSON:
    """The object with its entries."""
    return _with_entries(_bare(obj), written(managed))


def _with_entries(obj: JSON, entries: list[JSON]) -> JSON:
    """The object, which has no entries, with these."""
    if not entries:
        return obj
    metadata = obj.get("metadata")
    return {**obj, "metadata": {**(metadata if isinstance(metadata, dict) else {}), "managedFields": entries}}


def _unchanged_entries(old: JSON, new: JSON, subresource: str) -> list[JSON]:
    """The stored entries, where the request has none of its own."""
    metadata = new.get("metadata")
    if not isinstance(metadata, dict) or not isinstance(old.get("metadata"), dict):
        return []
    stored, given = old["metadata"].get("managedFields"), metadata.get("managedFields")
    if not isinstance(stored, list) or len(stored) > MAX_ENTRIES:
        return []
    return stored if subresource or given is None or given == stored else []


def _managed_of(old: JSON | None, new: JSON, subresource: str) -> tuple[Managed, bool]:
    """The entries to start from, and whether the request resets all of them."""
    given: Any = new.get("metadata", {}).get("managedFields") if isinstance(new.get("metadata"), dict) else None
    if old is not None and not subresource:
        if given == [] or given == [{}]:
            return {}, True
        try:
            managed = read_managed(new)
        except BadFields:
            managed = {}
        if managed:
            return managed, False
    try:
        return read_managed(old), False
    except BadFields:
        return {}, False


def _blank(obj: JSON, schema: Schema) -> JSON:
    """The object that a new one is compared with: empty except for the structs that Go always writes."""
    blank: JSON = {key: obj[key] for key in ("apiVersion", "kind") if key in obj}
    if isinstance(schema, str):
        blank |= _empty_structs(schema)
    return blank


@cache
def _empty_structs(name: str) -> JSON:
    table = core_table()
    found: JSON = {}
    schema = table.schemas.get(name, {})
    for field, child in schema.get("properties", {}).items():
        if child.get("x-embedded") and "properties" in table.schemas.get(child["$ref"], {}):
            found[field] = _empty_structs(child["$ref"])
        elif field in schema.get("required", ()) and child.get("type") in ("array", "object"):
            found[field] = None
    return found


def _without_nulls(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_nulls(item) for key, item in value.items() if item is not None}
    if isinstance(value, list):
        return [_without_nulls(item) for item in value]
    return value
