"""Strict decoding of Kubernetes' own kinds by the core table: unknown fields, fields given twice, wrong types.

Kubernetes decodes into Go structs, so what a type does not have is dropped or reported, nulls are nothing, and a wrong
type is a BadRequest in the words of Go's decoder. Custom kinds have their structural schema instead.
"""

from __future__ import annotations

import binascii
import json
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api.errors import BadRequest
from volcano.api.meta import JSON
from volcano.api.openapi_table import (
    FREE_FORM,
    INT_OR_STRING,
    JSON_SCHEMA,
    MICRO_TIME,
    QUANTITY,
    TIME,
    core_table,
    schema_name,
)
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.scheme import ResourceType
from volcano.apiserver.schemas.field_errors import Path, path_text, quoted
from volcano.apiserver.schemas.formats import is_date_time

MAX_REPORTED: Final = 100
_EXTENSIONS: Final = JSON_SCHEMA.removesuffix("JSONSchemaProps")
_SCHEMA_OR: Final = tuple(_EXTENSIONS + name for name in ("JSONSchemaPropsOrArray", "JSONSchemaPropsOrBool"))
_PLAIN: Final = frozenset((QUANTITY, INT_OR_STRING, TIME, MICRO_TIME)) | FREE_FORM


# -- unknown fields -------------------------------------------------------------------------------------------
class Strays(msgspec.Struct):
    """What a walk found that is not of the type: unknown fields, and nulls, each with the object it is in."""

    unknown: list[tuple[JSON, str, Path]]
    nulls: list[tuple[Any, Any, Any]]


Walk: TypeAlias = Callable[[Any, Path, Strays], None]


def unknown_fields(resource: ResourceType, obj: JSON) -> list[str]:
    """Paths of the fields the kind does not have; the object is not changed."""
    return [path_text(path) for _, _, path in _strays(resource, obj).unknown]


def prune_core(resource: ResourceType, obj: JSON) -> list[str]:
    """Drop unknown fields and nulls, in place; the answer is the unknown fields' paths."""
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
    """`unknown field "spec.foo"`, as warnings say it and as a strict decoding error lists it."""
    twice = [f"duplicate field {quoted(path)}" for path in duplicates]
    return [*twice, *(f"unknown field {quoted(path)}" for path in unknown)][:MAX_REPORTED]


def strict_error(messages: list[str]) -> BadRequest:
    return BadRequest("strict decoding error: " + ", ".join(messages))


def _strays(resource: ResourceType, obj: JSON) -> Strays:
    found = Strays([], [])
    name = schema_name(resource.group, resource.version, resource.kind)
    walk = _walk_of(name) if name else None
    if walk is not None:
        walk(obj, None, found)
    return found


@cache
def _walk_of(name: str) -> Walk | None:
    if name in _SCHEMA_OR:
        return _schema_or_else
    if name in _PLAIN or name not in core_table().schemas:
        return None
    if name == JSON_SCHEMA:  # the one type that contains itself
        return _walk_schema
    return _object_walk(core_table().schemas[name])


def _walk_schema(value: Any, path: Path, strays: Strays) -> None:
    _schema_walk()(value, path, strays)


@cache
def _schema_walk() -> Walk:
    return _object_walk(core_table().schemas[JSON_SCHEMA])


def _schema_or_else(value: Any, path: Path, strays: Strays) -> None:
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

    def walk(value: Any, path: Path, strays: Strays) -> None:
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

    def walk(value: Any, path: Path, strays: Strays) -> None:
        if type(value) is not list:
            return
        for index, item in enumerate(value):
            if item is None:
                strays.nulls.append((value, index, dict(empty) if empty == {} else empty))
            elif inner is not None:
                inner(item, (path, index), strays)

    return walk


def _map_walk(inner: Walk | None) -> Walk:
    def walk(value: Any, path: Path, strays: Strays) -> None:
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
        return []  # what cannot be decoded is reported by whoever decodes it
    return found


def _report(value: Any, path: Path, found: list[str]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _report(item, (path, index), found)
    elif isinstance(value, _Pairs):
        names: dict[str, int] = {}
        for name, item in value.pairs:
            names[name] = names.get(name, 0) + 1
            if names[name] == 2 and len(found) < MAX_REPORTED:
                found.append(path_text((path, name)))
            _report(item, (path, name), found)


# -- types ----------------------------------------------------------------------------------------------------
class Place(msgspec.Struct, frozen=True):
    """Where a value is decoded: the Go struct, the path as Go prints it, and the path with indexes."""

    struct: str
    names: tuple[str, ...]
    path: Path


Check: TypeAlias = Callable[[Any, "Place"], None]
_KINDS: Final = {str: "string", bool: "bool", int: "number", float: "number", list: "array", dict: "object"}
_RANGES: Final = {"int32": 2**31, "int64": 2**63}


class _Mismatch(Exception):
    pass


def check_types(resource: ResourceType, obj: Any) -> None:
    """BadRequest when a value cannot be decoded into its field; the first one is named."""
    name = schema_name(resource.group, resource.version, resource.kind)
    if name is None:
        return
    try:
        _check_of(name)(obj, Place(resource.kind, (), None))
    except _Mismatch as mismatch:
        raise BadRequest(
            f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {mismatch}'
        ) from None


def _refuse(value: Any, place: Place, go_type: str) -> _Mismatch:
    kind = _KINDS.get(type(value), "null")
    if kind == "number" and go_type in ("int32", "int64"):
        kind += f" {value}"
    field = ".".join((place.struct, *place.names))
    return _Mismatch(f"json: cannot unmarshal {kind} into Go struct field {field} of type {go_type}")


@cache
def _check_of(name: str) -> Check:
    if name == QUANTITY:
        return _check_quantity
    if name == INT_OR_STRING:
        return _check_int_or_string
    if name in (TIME, MICRO_TIME):
        return _check_time
    if name in FREE_FORM:
        return _check_free
    if name == JSON_SCHEMA:
        return _check_schema
    return _object_check(core_table().schemas[name], _go_name(name))


def _check_schema(value: Any, place: Place) -> None:
    _schema_check()(value, place)


@cache
def _schema_check() -> Check:
    return _object_check(core_table().schemas[JSON_SCHEMA], _go_name(JSON_SCHEMA))


def _go_name(name: str) -> str:
    return ".".join(name.rsplit(".", 2)[-2:])


def _check_in(schema: JSON) -> Check:
    if "$ref" in schema:
        return _check_of(schema["$ref"])
    kind = schema.get("type")
    if isinstance(schema.get("items"), dict):
        return _list_check(schema)
    if isinstance(schema.get("additionalProperties"), dict):
        return _map_check(schema)
    if kind == "object" and "properties" in schema:
        return _object_check(schema, "struct")
    if kind == "string" and schema.get("format") == "byte":
        return _check_bytes
    return _scalar_check(schema)


def _go_type(schema: JSON) -> str:
    if "$ref" in schema:
        return _go_name(schema["$ref"])
    if isinstance(schema.get("items"), dict):
        return f"[]{_go_type(schema['items'])}"
    if isinstance(schema.get("additionalProperties"), dict):
        return f"map[string]{_go_type(schema['additionalProperties'])}"
    kind = str(schema.get("type", "object"))
    names = {"boolean": "bool", "integer": schema.get("format", "int32"), "number": "float64"}
    return str(names.get(kind, kind))


def _object_check(schema: JSON, go_name: str) -> Check:
    table = {name: _check_in(child) for name, child in schema.get("properties", {}).items()}
    struct = go_name.rpartition(".")[2]

    def check(value: Any, place: Place) -> None:
        if type(value) is not dict:
            raise _refuse(value, place, go_name)
        names, path = place.names, place.path
        for name, item in value.items():
            inner = table.get(name)
            if inner is not None and item is not None:
                inner(item, Place(struct, (*names, name), (path, name)))

    return check


def _list_check(schema: JSON) -> Check:
    inner, go_type = _check_in(schema["items"]), _go_type(schema)

    def check(value: Any, place: Place) -> None:
        if type(value) is not list:
            raise _refuse(value, place, go_type)
        for index, item in enumerate(value):
            if item is not None:
                inner(item, Place(place.struct, place.names, (place.path, index)))

    return check


def _map_check(schema: JSON) -> Check:
    inner, go_type = _check_in(schema["additionalProperties"]), _go_type(schema)

    def check(value: Any, place: Place) -> None:
        if type(value) is not dict:
            raise _refuse(value, place, go_type)
        for name, item in value.items():
            if item is not None:
                inner(item, Place(place.struct, place.names, (place.path, name)))

    return check


def _scalar_check(schema: JSON) -> Check:
    kind, go_type = schema.get("type"), _go_type(schema)
    if kind == "integer":
        bound = _RANGES.get(go_type, 2**63)

        def check_integer(value: Any, place: Place) -> None:
            if type(value) is not int or not -bound <= value < bound:
                raise _refuse(value, place, go_type)

        return check_integer
    wanted: tuple[type, ...] = {"string": (str,), "boolean": (bool,), "number": (int, float), "object": (dict,)}.get(
        str(kind), (object,)
    )
    if wanted == (object,):
        return _check_free

    def check(value: Any, place: Place) -> None:
        if type(value) not in wanted:
            raise _refuse(value, place, go_type)

    return check


def _check_free(value: Any, place: Place) -> None:
    """Anything goes."""


def _check_quantity(value: Any, place: Place) -> None:
    try:
        if not isinstance(value, str | int | float) or isinstance(value, bool):
            raise QuantityError(QuantityError.MESSAGE)
        parse_quantity(value)
    except QuantityError as error:
        raise _Mismatch(f"{path_text(place.path)}: {error}") from None


def _check_int_or_string(value: Any, place: Place) -> None:
    if type(value) is str:
        return
    if type(value) is not int or not -(2**31) <= value < 2**31:
        raise _refuse(value, place, "int32")


def _check_time(value: Any, place: Place) -> None:
    if type(value) is not str:
        raise _refuse(value, place, "string")
    if not is_date_time(value):
        layout = '"2006-01-02T15:04:05Z07:00"'
        raise _Mismatch(f'parsing time {quoted(value)} as {layout}: cannot parse {quoted(value)} as "2006"')


def _check_bytes(value: Any, place: Place) -> None:
    if type(value) is not str:
        raise _refuse(value, place, "[]uint8")
    try:
        binascii.a2b_base64("".join(value.split()).encode("ascii", "replace"), strict_mode=True)
    except binascii.Error:
        good = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
        at = next((index for index, char in enumerate(value) if char not in good), len(value))
        raise _Mismatch(f"illegal base64 data at input byte {at}") from None
