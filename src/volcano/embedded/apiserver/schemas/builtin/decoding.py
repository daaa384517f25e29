"""The type check of Kubernetes' own kinds: can each value be decoded into its field? Errors are Go's."""

from __future__ import annotations

import binascii
from collections.abc import Callable
from functools import cache
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api.errors import BadRequest
from volcano.api.field_errors import Path, path_text
from volcano.api.formats import is_date_time
from volcano.api.go_text import quoted
from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity
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
    if name in SCHEMA_OR:
        return _check_schema_or
    if name in FREE_FORM:
        return _check_free
    if name == JSON_SCHEMA:
        return _check_schema
    return _object_check(core_table().schemas[name], _go_name(name))


def _check_schema_or(value: Any, place: Place) -> None:
    """A schema, a list of schemas, or a boolean."""
    for item in value if type(value) is list else (value,):
        if type(item) is not bool:
            _check_schema(item, place)


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
    """Any value is accepted."""


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
