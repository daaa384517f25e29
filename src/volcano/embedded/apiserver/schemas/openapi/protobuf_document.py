"""A Swagger document as the protobuf message that Helm and older clients read (gnostic's openapi.v2.Document).

Messages are written by hand: a field is its number, its wire type and its bytes. Only what the documents here contain
is supported.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON

_METHODS: Final = {"get": 2, "put": 3, "post": 4, "delete": 5, "patch": 8}
_INTEGERS: Final = {
    "maxLength": 11, "minLength": 12, "maxItems": 14, "minItems": 15, "maxProperties": 17, "minProperties": 18,
}  # fmt: skip
_DOUBLES: Final = {"multipleOf": 6, "maximum": 7, "minimum": 9}
_FLAGS: Final = {"exclusiveMaximum": 8, "exclusiveMinimum": 10, "uniqueItems": 16}
_TEXTS: Final = {"$ref": 1, "format": 2, "title": 3, "description": 4, "pattern": 13}


def openapi_v2_protobuf(document: JSON) -> bytes:
    info = document["info"]
    return b"".join(
        (
            _text(1, document["swagger"]),
            _message(2, _text(1, info["title"]) + _text(2, info["version"])),
            _message(8, b"".join(_named_path(path, item) for path, item in document["paths"].items())),
            _message(9, _named_schemas(document["definitions"])),
        )
    )


# -- the wire -------------------------------------------------------------------------------------------------
def _varint(value: int) -> bytes:
    value &= 2**64 - 1
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def _message(number: int, content: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(content)) + content


def _text(number: int, value: str) -> bytes:
    return _message(number, value.encode()) if value else b""


def _texts(number: int, values: Iterable[str]) -> bytes:
    return b"".join(_message(number, value.encode()) for value in values)


def _integer(number: int, value: int) -> bytes:
    return _varint(number << 3) + _varint(value)


def _flag(number: int, value: Any) -> bytes:
    return _integer(number, 1) if value is True else b""


def _double(number: int, value: float) -> bytes:
    return _varint(number << 3 | 1) + struct.pack("<d", value)


def _any(value: Any) -> bytes:
    """Any value, as YAML; JSON is YAML."""
    return _text(2, msgspec.json.encode(value).decode() + "\n")


# -- the document ---------------------------------------------------------------------------------------------
def _named_path(path: str, item: JSON) -> bytes:
    return _message(2, _text(1, path) + _message(2, _path(item)))


def _path(item: JSON) -> bytes:
    operations = b"".join(_message(number, _operation(item[m])) for m, number in _METHODS.items() if m in item)
    return operations + b"".join(_message(9, _parameter(p)) for p in item.get("parameters", ()))


def _operation(operation: JSON) -> bytes:
    return b"".join(
        (
            _texts(1, operation["tags"]),
            _text(5, operation["operationId"]),
            _texts(6, operation.get("produces", ())),
            _texts(7, operation.get("consumes", ())),
            *(_message(8, _parameter(parameter)) for parameter in operation["parameters"]),
            _message(9, b"".join(_message(1, _response(c, r)) for c, r in operation["responses"].items())),
            _texts(10, operation.get("schemes", ())),
            _extensions(13, operation),
        )
    )


def _response(code: str, response: JSON) -> bytes:
    content = _text(1, response["description"])
    if "schema" in response:
        content += _message(2, _message(1, _schema(response["schema"])))
    return _text(1, code) + _message(2, _message(1, content))


def _parameter(parameter: JSON) -> bytes:
    """A ParametersItem with a Parameter inside."""
    where, name = parameter["in"], parameter["name"]
    if where == "body":
        body = _text(2, name) + _text(3, where) + _flag(4, parameter.get("required"))
        return _message(1, _message(1, body + _message(5, _schema(parameter["schema"]))))
    content = _flag(1, parameter.get("required")) + _text(2, where) + _text(4, name)
    if where == "query":
        content += _text(6, parameter["type"]) + _flag(20, parameter.get("uniqueItems"))
        return _message(1, _message(2, _message(3, content)))
    content += _text(5, parameter["type"]) + _flag(19, parameter.get("uniqueItems"))
    return _message(1, _message(2, _message(4, content)))


def _named_schemas(schemas: JSON) -> bytes:
    return b"".join(_message(1, _text(1, name) + _message(2, _schema(schema))) for name, schema in schemas.items())


def _schema(schema: JSON) -> bytes:
    parts = [_text(number, schema[key]) for key, number in _TEXTS.items() if isinstance(schema.get(key), str)]
    parts += [_double(number, float(schema[key])) for key, number in _DOUBLES.items() if key in schema]
    parts += [_flag(number, schema.get(key)) for key, number in _FLAGS.items()]
    parts += [_integer(number, int(schema[key])) for key, number in _INTEGERS.items() if key in schema]
    parts.append(_texts(19, schema.get("required") or ()))
    parts += [_message(20, _any(value)) for value in schema.get("enum") or ()]
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        parts.append(_message(21, _message(1, _schema(more))))
    elif isinstance(more, bool):
        parts.append(_message(21, _integer(2, int(more))))
    if isinstance(schema.get("type"), str):
        parts.append(_message(22, _text(1, schema["type"])))
    if isinstance(schema.get("items"), dict):
        parts.append(_message(23, _message(1, _schema(schema["items"]))))
    if isinstance(schema.get("properties"), dict):
        parts.append(_message(25, _named_schemas(schema["properties"])))
    parts.append(_extensions(31, schema))
    return b"".join(parts)


def _extensions(number: int, value: JSON) -> bytes:
    found = ((key, item) for key, item in value.items() if key.startswith("x-"))
    return b"".join(_message(number, _text(1, key) + _message(2, _any(item))) for key, item in found)
