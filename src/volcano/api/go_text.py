"""How Go prints values, to the letter: `%q`, `%v` of floats, and encoding/json.

Messages of Kubernetes contain values printed by these rules, and clients compare them.
"""

from __future__ import annotations

import math
from typing import Any, Final

import msgspec

_ESCAPES: Final = {"\a": "\\a", "\b": "\\b", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t", "\v": "\\v"}
_HTML: Final = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026", "\u2028": "\\u2028", "\u2029": "\\u2029"}
_EXPONENT_FROM: Final = 1e21
_PRINTED_EXPONENT_BELOW: Final = 1e-4
_JSON_EXPONENT_BELOW: Final = 1e-6


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
    """A float as Go's %v prints it: the shortest digits, an exponent below 1e-4 and from 1e21 on."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    mantissa, exponent = _shortest(value)
    if _PRINTED_EXPONENT_BELOW <= abs(value) < _EXPONENT_FROM:
        return _positional(mantissa, exponent)
    return f"{mantissa}e{exponent:+03d}"


def go_json(value: Any) -> str:
    """A value as Go's encoding/json writes it: sorted keys, angle brackets escaped, 1.0 as 1."""
    text = msgspec.json.encode(_with_go_floats(value), order="sorted", enc_hook=str).decode()
    for char, escape in _HTML.items():
        if char in text:
            text = text.replace(char, escape)
    return text


def _with_go_floats(value: Any) -> Any:
    if isinstance(value, float):
        return msgspec.Raw(_json_float(value).encode())
    if isinstance(value, dict):
        return {key: _with_go_floats(inner) for key, inner in value.items()}
    return [_with_go_floats(inner) for inner in value] if isinstance(value, list | tuple) else value


def _json_float(value: float) -> str:
    if not math.isfinite(value):
        return "null"  # JSON has no such number
    if value == 0 or _JSON_EXPONENT_BELOW <= abs(value) < _EXPONENT_FROM:
        mantissa, exponent = _shortest(value)
        return _positional(mantissa, exponent)
    mantissa, exponent = _shortest(value)
    return f"{mantissa}e{exponent:+d}"


def _shortest(value: float) -> tuple[str, int]:
    """The fewest digits that read back as the value, as `d.ddd` and a decimal exponent."""
    sign = "-" if math.copysign(1, value) < 0 else ""
    digits, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = digits.partition(".")
    point = len(whole) + int(exponent or 0)
    all_digits = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(all_digits)
    all_digits = all_digits.rstrip("0") or "0"
    mantissa = all_digits[0] + (f".{all_digits[1:]}" if len(all_digits) > 1 else "")
    return sign + mantissa, point - 1 if all_digits != "0" else 0


def _positional(mantissa: str, exponent: int) -> str:
    sign = "-" if mantissa.startswith("-") else ""
    digits = mantissa.lstrip("-").replace(".", "")
    if exponent < 0:
        return f"{sign}0.{'0' * (-exponent - 1)}{digits}"
    whole, fraction = digits[: exponent + 1].ljust(exponent + 1, "0"), digits[exponent + 1 :]
    return f"{sign}{whole}.{fraction}" if fraction else sign + whole
