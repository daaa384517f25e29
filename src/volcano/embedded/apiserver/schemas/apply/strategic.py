"""Strategic merge patch: a merge patch that knows which lists are maps by key, for the kinds of the core table.

Directives in the patch change how parts of it merge: `$patch`, `$retainKeys`, `$deleteFromPrimitiveList/<list>` and
`$setElementOrder/<list>`. Arguments are never changed.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest
from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import core_table

DIRECTIVE: Final = "$patch"
RETAIN: Final = "$retainKeys"
DELETE_PREFIX: Final = "$deleteFromPrimitiveList/"
ORDER_PREFIX: Final = "$setElementOrder/"
MAX_DEPTH: Final = 128
_ABSENT: Final = object()


class FieldMerge(msgspec.Struct, frozen=True):
    """How one field merges: its own schema, its strategy, and the key of its elements."""

    schema: JSON
    merges: bool
    replaces: bool
    key: str


def strategic_merge(current: JSON, patch: JSON, schema_name: str) -> JSON:
    """The object after the patch; BadRequest when the patch contradicts itself or the schema."""
    schema = core_table().schemas.get(schema_name, {})
    return _merge_map(current, patch, schema, 0)


_FIELDS: dict[tuple[int, str], FieldMerge] = {}
"""Of fields that the core table names, by the identity of their schema, which stays as long as the table does."""


def _field(schema: JSON, name: str) -> FieldMerge:
    """How a field merges; fields that the schema does not have merge like plain JSON."""
    found = _FIELDS.get((id(schema), name))
    if found is None:
        found = _read_field(schema, name)
        if name in (schema.get("properties") or {}):
            _FIELDS[id(schema), name] = found
    return found


def _read_field(schema: JSON, name: str) -> FieldMerge:
    table = core_table()
    more = schema.get("additionalProperties")
    found = (schema.get("properties") or {}).get(name) or (more if isinstance(more, dict) else {})
    strategies = str(found.get("x-kubernetes-patch-strategy", "")).split(",")
    inner = table.resolve(found)
    if isinstance(inner.get("items"), dict):
        inner = table.resolve(inner["items"])
    return FieldMerge(
        inner, "merge" in strategies, "replace" in strategies, found.get("x-kubernetes-patch-merge-key", "")
    )


# -- objects --------------------------------------------------------------------------------------------------
def _merge_map(current: JSON, patch: JSON, schema: JSON, depth: int) -> JSON:
    if depth > MAX_DEPTH:
        raise BadRequest(f"the patch is nested deeper than {MAX_DEPTH} levels")
    if DIRECTIVE in patch:
        directive = patch[DIRECTIVE]
        if directive == "replace":
            plain: JSON = _without_directives({key: value for key, value in patch.items() if key != DIRECTIVE}, depth)
            return plain
        if directive == "delete":
            return {}
        if directive != "merge":
            raise BadRequest(f"unknown patch type found: {directive}")
    merged = _retained(current, patch)
    ordered = _ordered_lists(merged, patch, schema, depth)
    for key, value in patch.items():
        if key in ordered or (key[:1] == "$" and (key in (DIRECTIVE, RETAIN) or key.startswith(ORDER_PREFIX))):
            continue
        if key.startswith(DELETE_PREFIX):
            _delete_from_list(merged, key.removeprefix(DELETE_PREFIX), value)
        elif value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merge_value(merged.get(key, _ABSENT), value, _field(schema, key), depth)
    return merged


def _merge_value(current: Any, value: Any, field: FieldMerge, depth: int) -> Any:
    if isinstance(current, dict) and isinstance(value, dict) and not field.replaces:
        return _merge_map(current, value, field.schema, depth + 1)
    if isinstance(current, list) and isinstance(value, list) and field.merges:
        return _merge_list(current, value, field, depth + 1)
    return _without_directives(value, depth)


def _retained(current: JSON, patch: JSON) -> JSON:
    """The current object, reduced to `$retainKeys` where the patch has them."""
    if RETAIN not in patch:
        return dict(current)
    kept = patch[RETAIN]
    if not isinstance(kept, list) or not all(isinstance(key, str) for key in kept):
        raise BadRequest("invalid patch format of retainKeys list")
    kept = frozenset(kept)
    for key, value in patch.items():
        if value is not None and not key.startswith("$") and key not in kept:
            raise BadRequest(f"invalid patch format of retainKeys list: it does not name {key!r}")
    return {key: value for key, value in current.items() if key in kept}


def _without_directives(value: Any, depth: int) -> Any:
    """A part of the patch that becomes a new value: without directives and nulls."""
    if depth > MAX_DEPTH:
        raise BadRequest(f"the patch is nested deeper than {MAX_DEPTH} levels")
    if isinstance(value, dict):
        if value.get(DIRECTIVE) == "delete":
            return {}
        return {
            key: item if type(item) is str else _without_directives(item, depth + 1)
            for key, item in value.items()
            if item is not None and not (key[:1] == "$" and _is_directive(key))
        }
    if isinstance(value, list):
        return [
            _without_directives(item, depth + 1)
            for item in value
            if not (isinstance(item, dict) and item.get(DIRECTIVE) is not None)
        ]
    return value


def _is_directive(key: str) -> bool:
    return key in (DIRECTIVE, RETAIN) or key.startswith((DELETE_PREFIX, ORDER_PREFIX))


def _delete_from_list(merged: JSON, key: str, gone: Any) -> None:
    if not isinstance(gone, list):
        raise BadRequest("invalid patch format of primitive list")
    current = merged.get(key)
    if isinstance(current, list):
        marks = {_mark(item, "") for item in gone}
        merged[key] = [item for item in current if _mark(item, "") not in marks]


# -- lists ----------------------------------------------------------------------------------------------------
def _mark(item: Any, key: str) -> Any:
    """What identifies an element: its key, or the plain value itself."""
    value = item.get(key, _ABSENT) if key and isinstance(item, dict) else item
    if type(value) is str:
        return value
    if value is _ABSENT:
        return id(item)
    return (type(value), msgspec.json.encode(value, order="sorted") if isinstance(value, dict | list) else value)


def _merge_list(current: list[Any], patch: list[Any], field: FieldMerge, depth: int) -> list[Any]:
    if not any(isinstance(item, dict) for item in (*current, *patch)):
        merged = {_mark(item, ""): item for item in (*reversed(patch), *reversed(current))}
        return _in_order(list(reversed(merged.values())), patch, current, "")
    if not all(isinstance(item, dict) for item in (*current, *patch)):
        raise BadRequest("lists of objects and of plain values cannot be merged")
    if not field.key:
        raise BadRequest("cannot merge a list of objects that have no merge key")
    kept, plain = _obey_elements(current, patch, field.key)
    if plain is None:
        return kept
    places = {_mark(item, field.key): index for index, item in reversed(list(enumerate(kept)))}
    for item in plain:
        if field.key not in item:
            raise BadRequest(f"map: {item!r} does not contain declared merge key: {field.key}")
        index = places.get(_mark(item, field.key))
        if index is None:
            places[_mark(item, field.key)] = len(kept)
            kept.append(_without_directives(item, depth))
        else:
            kept[index] = _merge_map(kept[index], item, field.schema, depth + 1)
    return _in_order(kept, plain, current, field.key)


def _obey_elements(current: list[Any], patch: list[Any], key: str) -> tuple[list[Any], list[Any] | None]:
    """Elements with `$patch` act on the whole list.

    Returns what they leave of the list, and the other elements of the patch; None when these replaced the list.
    """
    plain: list[Any] = []
    gone: set[Any] = set()
    replaces = False
    for item in patch:
        directive = item.get(DIRECTIVE)
        if directive is None:
            plain.append(item)
        elif directive == "delete":
            if key not in item:
                raise BadRequest(f"delete patch type with no merge key defined: {key}")
            gone.add(_mark(item, key))
        elif directive == "replace":
            replaces = True
        else:
            raise BadRequest(f"unknown patch type found in a list: {directive}")
    if replaces:
        return _without_directives(plain, 0), None
    return [item for item in current if _mark(item, key) not in gone], plain


def _ordered_lists(merged: JSON, patch: JSON, schema: JSON, depth: int) -> set[str]:
    """Apply `$setElementOrder` directives; the lists that they name need no further merging."""
    done: set[str] = set()
    for directive, order in patch.items():
        if not directive.startswith(ORDER_PREFIX):
            continue
        name = directive.removeprefix(ORDER_PREFIX)
        if not isinstance(order, list):
            raise BadRequest("invalid patch format of setElementOrder list")
        changes, current = patch.get(name), merged.get(name)
        if changes is None and current is None:
            continue
        if not isinstance(changes or [], list) or not isinstance(current or [], list):
            raise BadRequest(f"{name} is not a list, yet the patch orders its elements")
        if name in patch and changes is None:
            continue
        field = _field(schema, name)
        _check_order(changes or [], order, field.key)
        standing = _standing_order(current or [], changes or [], field.key)
        found = current if changes is None else _merge_value(current, changes, field, depth)
        merged[name] = _in_order(found or [], order, standing, field.key)
        done.add(name)
    return done


def _standing_order(current: list[Any], changes: list[Any], key: str) -> list[Any]:
    """The order in which elements the patch does not name are kept.

    Where elements are deleted, added ones take the places that became free: kube-apiserver does so, and a
    `kubectl apply` that renames a container shows it.
    """
    gone = {_mark(i, key) for i in changes if isinstance(i, dict) and i.get(DIRECTIVE) == "delete"}
    kept = [item for item in current if _mark(item, key) not in gone]
    if len(kept) == len(current):
        return current
    known = {_mark(item, key) for item in kept} | gone
    return [*kept, *(item for item in changes if _mark(item, key) not in known)][: len(current)]


def _check_order(changes: Sequence[Any], order: list[Any], key: str) -> None:
    """All that the patch adds or changes must be in the order it gives, in that order."""
    marks = [_mark(item, key) for item in order]
    at = 0
    for item in changes:
        if isinstance(item, dict) and item.get(DIRECTIVE) is not None:
            continue
        mark = _mark(item, key)
        while at < len(marks) and marks[at] != mark:
            at += 1
        if at == len(marks):
            raise BadRequest("the order in patch list doesn't match the setElementOrder list")


def _in_order(items: list[Any], wanted: Sequence[Any], before: Sequence[Any], key: str) -> list[Any]:
    """Elements the patch names in its order; the others keep their place before those they stood before."""
    ranks = {_mark(entry, key): rank for rank, entry in reversed(list(enumerate(wanted)))}
    marked = [(_mark(item, key), item) for item in items]
    named = sorted((each for each in marked if each[0] in ranks), key=lambda each: ranks[each[0]])
    if len(named) == len(marked):
        return [item for _, item in named]
    places = {_mark(entry, key): place for place, entry in reversed(list(enumerate(before)))}
    last = len(before)
    others = [each for each in marked if each[0] not in ranks]
    others.sort(key=lambda each: places.get(each[0], last))
    answer: list[Any] = []
    left = right = 0
    while left < len(others) and right < len(named):
        other, mine = places.get(others[left][0], last), places.get(named[right][0], last)
        if other < mine < last:
            answer.append(others[left][1])
            left += 1
        else:
            answer.append(named[right][1])
            right += 1
    return [*answer, *(item for _, item in named[right:]), *(item for _, item in others[left:])]
