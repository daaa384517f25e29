"""Strict decoding of Kubernetes' own kinds by the core table: unknown fields, and fields given twice.

Kubernetes decodes into Go structs, so what a type does not have is dropped or reported, and nulls count as absent.
Values of wrong types are in builtin.decoding. Custom kinds have their structural schema instead.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api.errors import BadRequest
from volcano.api.field_errors import Path, path_text
from volcano.api.go_text import quoted
from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import (
    FREE_FORM,
    INT_OR_STRING,
    JSON_SCHEMA,
    MICRO_TIME,
    QUANTITY,
    SCHEMA_OR,
    TIME,
    core_table,
    schema_name,
)
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.schemas.builtin.decoding import check_types as check_types

MAX_REPORTED_FIELDS: Final = 100
_PLAIN: Final = frozenset((QUANTITY, INT_OR_STRING, TIME, MICRO_TIME)) | FREE_FORM


# -- unknown fields -------------------------------------------------------------------------------------------
class StrayFields(msgspec.Struct):
    """What a walk found that the type does not have: unknown fields, and nulls, each with the object it is in."""

    unknown: list[tuple[JSON, str, Path]]
    nulls: list[tuple[Any, Any, Any]]


Walk: TypeAlias = Callable[[Any, Path, StrayFields], None]


def prune_core(resource: ResourceType, obj: JSON) -> list[str]:
    """Drop unknown fields and nulls, in place; returns the paths of the unknown fields."""
    found = _strays(resource, obj)
    for parent, name, _ in found.unknown:
        parent.pop(name, None)
    for parent, step, instead in found.nulls:
        if instead is None:
            parent.pop(step, None)
        else:
            parent[step] = instead
    return [path_text(path) for _, _, path in found.unknown]


def strict_messages(unknown: list[str], duplicates: list[str]) -> list[str]:
    """`unknown field "spec.foo"`, as in warnings and in a strict decoding error."""
    twice = [f"duplicate field {quoted(path)}" for path in duplicates]
    return [*twice, *(f"unknown field {quoted(path)}" for path in unknown)][:MAX_REPORTED_FIELDS]


def strict_error(messages: list[str]) -> BadRequest:
    return BadRequest("strict decoding error: " + ", ".join(messages))


def _strays(resource: ResourceType, obj: JSON) -> StrayFields:
    found = StrayFields([], [])
    name = schema_name(resource.group, resource.version, resource.kind)
    walk = _walk_of(name) if name else None
    if walk is not None:
        walk(obj, None, found)
    return found


@cache
def _walk_of(name: str) -> Walk | None:
    if name in SCHEMA_OR:
        return _schema_or_else
    if name in _PLAIN or name not in core_table().schemas:
        return None
    if name == JSON_SCHEMA:  # the one type that contains itself
        return _walk_schema
    return _object_walk(core_table().schemas[name])


def _walk_schema(value: Any, path: Path, strays: StrayFields) -> None:
    _schema_walk()(value, path, strays)


@cache
def _schema_walk() -> Walk:
    return _object_walk(core_table().schemas[JSON_SCHEMA])


def _schema_or_else(value: Any, path: Path, strays: StrayFields) -> None:
    """A schema, a list of schemas, or a boolean."""
    if type(value) is list:
        for index, item in enumerate(value):
            _walk_schema(item, (path, index), strays)
    else:
        _walk_schema(value, path, strays)


def _walk_in(schema: JSON) -> Walk | None:
    if "$ref" in schema:
        return _walk_of(schema["$ref"])
    if isinstance(schema.get("items"), dict):
        return _list_walk(schema["items"])
    if isinstance(schema.get("additionalProperties"), dict):
        return _map_walk(_walk_in(schema["additionalProperties"]))
    return _object_walk(schema) if "properties" in schema else None


def _object_walk(schema: JSON) -> Walk:
    table = {name: _walk_in(child) for name, child in schema.get("properties", {}).items()}

    def walk(value: Any, path: Path, strays: StrayFields) -> None:
        if type(value) is not dict:
            return
        for name, item in value.items():
            if name not in table:
                strays.unknown.append((value, name, (path, name)))
            elif item is None:
                strays.nulls.append((value, name, None))
            else:
                inner = table[name]
                if inner is not None:
                    inner(item, (path, name), strays)

    return walk


def _list_walk(items: JSON) -> Walk:
    inner = _walk_in(items)
    empty: Any = {} if "$ref" in items else ""

    def walk(value: Any, path: Path, strays: StrayFields) -> None:
        if type(value) is not list:
            return
        for index, item in enumerate(value):
            if item is None:
                strays.nulls.append((value, index, dict(empty) if empty == {} else empty))
            elif inner is not None:
                inner(item, (path, index), strays)

    return walk


def _map_walk(inner: Walk | None) -> Walk:
    def walk(value: Any, path: Path, strays: StrayFields) -> None:
        if type(value) is not dict:
            return
        for name, item in value.items():
            if item is None:
                strays.nulls.append((value, name, None))
            elif inner is not None:
                inner(item, (path, name), strays)

    return walk


# -- fields given twice ---------------------------------------------------------------------------------------
class _Pairs(msgspec.Struct):
    pairs: list[tuple[str, Any]]


def duplicate_fields(raw: bytes) -> list[str]:
    """Paths of the fields that a JSON text gives more than once."""
    seen: list[bool] = []

    def notice(pairs: list[tuple[str, Any]]) -> Any:
        if len(pairs) > 1 and len({name for name, _ in pairs}) != len(pairs):
            seen.append(True)
        return None

    try:
        json.loads(raw, object_pairs_hook=notice)
        if not seen:
            return []
        found: list[str] = []
        _report(json.loads(raw, object_pairs_hook=_Pairs), None, found)
    except (ValueError, RecursionError):
        return []  # a text that cannot be decoded is reported where it is decoded
    return found


def _report(value: Any, path: Path, found: list[str]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _report(item, (path, index), found)
    elif isinstance(value, _Pairs):
        names: dict[str, int] = {}
        for name, item in value.pairs:
            names[name] = names.get(name, 0) + 1
            if names[name] == 2 and len(found) < MAX_REPORTED_FIELDS:
                found.append(path_text((path, name)))
            _report(item, (path, name), found)
