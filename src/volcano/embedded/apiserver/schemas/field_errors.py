"""Field errors in Kubernetes' words: `Invalid value: "x": …`, `Required value`, and how Go prints the value.

Paths are kept as nested pairs (parent, step) while walking, where a step is a name or an index, and become text
only when something is wrong.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final, TypeAlias

import msgspec

from volcano.api.errors import FieldError

Path: TypeAlias = tuple[Any, str | int] | str | None
"""A pair of the parent's path and the next step; text is a prefix; None is the root."""

NO_PATH: Final = "<nil>"
"""How Kubernetes prints the path of errors that concern no single field."""

_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}


def path_text(path: Path) -> str:
    """`spec.tasks[0].name`."""
    steps: list[str | int] = []
    while isinstance(path, tuple):
        path, step = path
        steps.append(step)
    text = path or ""
    for step in reversed(steps):
        if isinstance(step, int):
            text += f"[{step}]"
        else:
            text = f"{text}.{step}" if text else step
    return text


def quoted(text: str) -> str:
    """A string as Go's %q prints it."""
    if text.isascii() and text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(map(_escaped, text)) + '"'


def _escaped(char: str) -> str:
    if char in '"\\':
        return "\\" + char
    if char in _ESCAPES:
        return _ESCAPES[char]
    if char.isprintable():
        return char
    code = ord(char)
    if code < 0x80:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def go_number(value: float) -> str:
    """A float as Go's %v prints it: shortest, with an exponent from 1e21 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    if 1e-4 <= abs(value) < 1e21:
        text = repr(value) if "e" not in repr(value) else f"{value:f}"
        return text.removesuffix(".0")
    mantissa, _, exponent = repr(value).partition("e")
    if not exponent:  # Python writes exponents only below 1e-4 and from 1e16 on
        mantissa, _, exponent = f"{value:e}".partition("e")
    return f"{mantissa.removesuffix('.0')}e{int(exponent):+03d}"


def go_json(value: Any) -> str:
    """A value as Go's encoding/json writes it: sorted keys, angle brackets escaped."""
    text = msgspec.json.encode(value, order="sorted").decode()
    for char, escape in _HTML.items():
        if char in text:
            text = text.replace(char, escape)
    return text


def shown(value: Any) -> str:
    """A value as a field error shows it."""
    if isinstance(value, str):
        return quoted(value)
    if value is True or value is False:
        return "true" if value else "false"
    if isinstance(value, float):
        return go_number(value)
    return go_json(value)


def invalid(path: Path, value: Any, detail: str) -> FieldError:
    return FieldError(path_text(path), f"Invalid value: {shown(value)}: {detail}")


def type_invalid(path: Path, value: Any, detail: str) -> FieldError:
    return FieldError(path_text(path), f"Invalid value: {shown(value)}: {detail}", "FieldValueTypeInvalid")


def required(path: Path, detail: str = "") -> FieldError:
    text = f"Required value: {detail}" if detail else "Required value"
    return FieldError(path_text(path), text, "FieldValueRequired")


def forbidden(path: Path, detail: str) -> FieldError:
    return FieldError(path_text(path), f"Forbidden: {detail}", "FieldValueForbidden")


def duplicate(path: Path, value: Any) -> FieldError:
    return FieldError(path_text(path), f"Duplicate value: {shown(value)}", "FieldValueDuplicate")


def unsupported(path: Path, value: Any, supported: Iterable[Any]) -> FieldError:
    """`Unsupported value: "x": supported values: "a", "b"`."""
    listed = ", ".join(quoted(item if isinstance(item, str) else go_json(item)) for item in supported)
    text = f"Unsupported value: {shown(value)}"
    text += f": supported values: {listed}" if listed else ""
    return FieldError(path_text(path), text, "FieldValueNotSupported")


def too_long(path: Path, limit: int) -> FieldError:
    unit = "byte" if limit == 1 else "bytes"
    return FieldError(path_text(path), f"Too long: may not be more than {limit} {unit}", "FieldValueTooLong")


def too_many(path: Path, count: int, limit: int) -> FieldError:
    unit = "item" if limit == 1 else "items"
    return FieldError(path_text(path), f"Too many: {count}: must have at most {limit} {unit}", "FieldValueTooMany")


def pathless(detail: str) -> FieldError:
    """An error of the schema as a whole, which Kubernetes reports without a path."""
    return FieldError(NO_PATH, f'Invalid value: "": {detail}')
