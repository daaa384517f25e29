"""Kubernetes' protobuf bodies → JSON objects. Go clients, kubectl's typed commands among them, send built-in kinds so.

Decoding only: answers are JSON, which every such client accepts. The table of field numbers is made by
tools/generate_protobuf_table.py.
"""

from __future__ import annotations

import base64
import struct
import zlib
from collections.abc import Callable, Iterator, Mapping
from datetime import UTC, datetime
from functools import cache
from importlib import resources
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest
from volcano.api.meta import JSON
from volcano.api.times import micro_timestamp, timestamp
from volcano.embedded.apiserver.wire.json_text import MAX_BODY_NODES, decode_json

MEDIA_TYPE: Final = "application/vnd.kubernetes.protobuf"
MAGIC: Final = b"k8s\x00"
MAX_MESSAGE_DEPTH: Final = 100
_META: Final = "k8s.io.apimachinery.pkg.apis.meta.v1"
_EXTENSIONS: Final = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1"
_PACKAGES: Final = {
    "apiextensions.k8s.io": _EXTENSIONS,
    "apiregistration.k8s.io": "k8s.io.kube_aggregator.pkg.apis.apiregistration.v1",
}


class _WireField(msgspec.Struct, frozen=True):
    name: str
    kind: str
    is_list: bool
    is_map: bool
    is_pointer: bool
    is_inline: bool


@cache
def _messages() -> Mapping[str, Mapping[int, _WireField]]:
    packed = resources.files("volcano.embedded.apiserver.wire").joinpath("data/protobuf.json.z").read_bytes()
    table = msgspec.json.decode(zlib.decompress(packed))["messages"]
    return {
        message: {int(number): _field(text) for number, text in fields.items()} for message, fields in table.items()
    }


def _field(text: str) -> _WireField:
    flags, name, kind = text.split(":")
    return _WireField(name, kind, "*" in flags, "%" in flags, "?" in flags, "~" in flags)


def decode_protobuf(body: bytes) -> JSON:
    """The object inside Kubernetes' protobuf envelope; BadRequest for anything else."""
    if not body.startswith(MAGIC):
        raise BadRequest("provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]")
    try:
        within = _Bounds(MAX_MESSAGE_DEPTH, [MAX_BODY_NODES])
        envelope = dict(_wire(body[len(MAGIC) :], within))
        type_meta = dict(_wire(envelope.get(1, b""), within))
        api_version, kind = type_meta.get(1, b"").decode(), type_meta.get(2, b"").decode()
        message = _message_of(api_version, kind)
        obj = _decode(envelope.get(2, b""), message, within)
    except (ValueError, IndexError, KeyError, AttributeError, TypeError, struct.error, OverflowError) as error:
        raise BadRequest(f"the protobuf body cannot be read: {error}") from None
    return {"apiVersion": api_version, "kind": kind, **obj}


def _message_of(api_version: str, kind: str) -> str:
    group, _, version = api_version.rpartition("/")
    if kind == "DeleteOptions":
        return f"{_META}.DeleteOptions"
    package = _PACKAGES.get(group) or f"k8s.io.api.{group.split('.')[0] or 'core'}.{version}"
    name = f"{package}.{kind}"
    if name not in _messages():
        raise BadRequest(f'no kind "{kind}" is registered for version "{api_version}" in protobuf')
    return name


class _Bounds(msgspec.Struct):
    """How much deeper a message may go, and how many fields the whole body may still have."""

    levels: int
    fields_left: list[int]

    def deeper(self) -> _Bounds:
        if self.levels <= 1:
            raise ValueError(f"nested deeper than {MAX_MESSAGE_DEPTH} levels")
        return _Bounds(self.levels - 1, self.fields_left)

    def count(self) -> None:
        self.fields_left[0] -= 1
        if self.fields_left[0] < 0:
            raise ValueError(f"more than {MAX_BODY_NODES} fields")


def _wire(content: bytes, within: _Bounds) -> Iterator[tuple[int, Any]]:
    """Field numbers and raw values: integers for varints, bytes for the rest."""
    at, end = 0, len(content)
    while at < end:
        within.count()
        tag, at = _varint(content, at)
        number, form = tag >> 3, tag & 7
        value: Any
        if form == 0:
            value, at = _varint(content, at)
        elif form == 2:
            size, at = _varint(content, at)
            if at + size > end:
                raise ValueError("a field is longer than its message")
            value, at = content[at : at + size], at + size
        elif form in (1, 5):
            size = 8 if form == 1 else 4
            value, at = content[at : at + size], at + size
            if len(value) != size:
                raise ValueError("a field is longer than its message")
        else:
            raise ValueError(f"unknown wire type {form}")
        yield number, value


def _varint(content: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = content[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
        if shift > 63:
            raise ValueError("a number is too long")


def _decode(content: bytes, message: str, within: _Bounds) -> Any:
    special = _SPECIAL.get(message)
    if special is not None:
        return special(content, within)
    fields = _messages()[message]
    obj: JSON = {}
    for number, raw in _wire(content, within):
        field = fields.get(number)
        if field is None or field.name == "-":
            continue
        if field.is_map:
            entry = dict(_wire(raw, within))
            obj.setdefault(field.name, {})[entry.get(1, b"").decode()] = _value(entry.get(2, b""), field.kind, within)
        elif field.is_list:
            obj.setdefault(field.name, []).append(_value(raw, field.kind, within))
        elif field.is_inline:
            obj.update(_value(raw, field.kind, within))
        else:
            value = _value(raw, field.kind, within)
            if field.is_pointer or not _is_zero(value):
                obj[field.name] = value
    return obj


def _is_zero(value: Any) -> bool:
    return value is None or value is False or value in ("", 0) or value in ([], {})


def _value(raw: Any, kind: str, within: _Bounds) -> Any:
    match kind:
        case "s":
            return raw.decode()
        case "i":
            raw = raw if isinstance(raw, int) else 0
            return raw - 2**64 if raw >= 2**63 else raw
        case "b":
            return bool(raw)
        case "y":
            return base64.b64encode(raw).decode()
        case "d":
            return struct.unpack("<d", raw)[0]
    return _decode(raw, kind, within.deeper())


# ── types whose JSON is not an object with their fields ──


def _quantity(content: bytes, within: _Bounds) -> str:
    return bytes(dict(_wire(content, within)).get(1, b"0")).decode() or "0"


def _int_or_string(content: bytes, within: _Bounds) -> int | str:
    fields = dict(_wire(content, within))
    if fields.get(1, 0) == 1:
        return bytes(fields.get(3, b"")).decode()
    return int(_value(fields.get(2, 0), "i", within))


def _time(content: bytes, within: _Bounds) -> str | None:
    fields = dict(_wire(content, within))
    if not fields:
        return None
    moment = datetime.fromtimestamp(_value(fields.get(1, 0), "i", within), UTC)
    return timestamp(moment)


def _micro_time(content: bytes, within: _Bounds) -> str | None:
    fields = dict(_wire(content, within))
    if not fields:
        return None
    moment = datetime.fromtimestamp(_value(fields.get(1, 0), "i", within), UTC)
    micros = _value(fields.get(2, 0), "i", within) // 1000
    return micro_timestamp(moment.replace(microsecond=micros % 1_000_000))


def _raw_json(content: bytes, within: _Bounds) -> Any:
    raw = dict(_wire(content, within)).get(1, b"")
    return decode_json(raw) if raw else None


def _items(content: bytes, within: _Bounds) -> list[str]:
    return [raw.decode() for number, raw in _wire(content, within) if number == 1]


def _props_or_array(content: bytes, within: _Bounds) -> Any:
    fields = list(_wire(content, within))
    schemas = [_decode(raw, f"{_EXTENSIONS}.JSONSchemaProps", within.deeper()) for number, raw in fields if number == 2]
    single = next((raw for number, raw in fields if number == 1), None)
    return schemas if single is None else _decode(single, f"{_EXTENSIONS}.JSONSchemaProps", within.deeper())


def _props_or_bool(content: bytes, within: _Bounds) -> Any:
    fields = dict(_wire(content, within))
    return _decode(fields[2], f"{_EXTENSIONS}.JSONSchemaProps", within.deeper()) if 2 in fields else bool(fields.get(1))


def _props_or_strings(content: bytes, within: _Bounds) -> Any:
    fields = list(_wire(content, within))
    single = next((raw for number, raw in fields if number == 1), None)
    if single is not None:
        return _decode(single, f"{_EXTENSIONS}.JSONSchemaProps", within.deeper())
    return [raw.decode() for number, raw in fields if number == 2]


_SPECIAL: Final[Mapping[str, Callable[[bytes, _Bounds], Any]]] = {
    "k8s.io.apimachinery.pkg.api.resource.Quantity": _quantity,
    "k8s.io.apimachinery.pkg.util.intstr.IntOrString": _int_or_string,
    f"{_META}.Time": _time,
    f"{_META}.MicroTime": _micro_time,
    f"{_META}.FieldsV1": _raw_json,
    "k8s.io.apimachinery.pkg.runtime.RawExtension": _raw_json,
    f"{_EXTENSIONS}.JSON": _raw_json,
    f"{_EXTENSIONS}.JSONSchemaPropsOrArray": _props_or_array,
    f"{_EXTENSIONS}.JSONSchemaPropsOrBool": _props_or_bool,
    f"{_EXTENSIONS}.JSONSchemaPropsOrStringArray": _props_or_strings,
    "k8s.io.api.authorization.v1.ExtraValue": _items,
    "k8s.io.api.authentication.v1.ExtraValue": _items,
}
