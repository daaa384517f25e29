"""Go durations, `1h2m3.5s`, to and from timedelta.

Go counts nanoseconds in 64 bits; a timedelta counts microseconds, so what is finer is rounded to the nearest. What Go
cannot hold is refused here too.
"""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

NANOSECONDS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
MAX_NANOSECONDS: Final = 2**63 - 1
MAX_DURATION_CHARACTERS: Final = 256
_PART: Final = re.compile(r"(?P<whole>[0-9]*)(?P<dot>\.?)(?P<fraction>[0-9]*)(?P<unit>[^0-9.]*)")


class DurationError(ValueError):
    """The text is not a duration; the message is Go's."""


def parse_duration(text: str) -> timedelta:
    """`-1.5h`, `300ms`, `2h45m`, `0`: a sign, then numbers each with its unit."""
    return timedelta(microseconds=_rounded(parse_nanoseconds(text), 1000))


def parse_nanoseconds(text: str) -> int:
    """The same, exactly."""
    if len(text) > MAX_DURATION_CHARACTERS:
        raise DurationError(f"time: invalid duration of {len(text)} characters")
    quoted = f'"{text}"'
    rest = text[1:] if text[:1] in ("+", "-") else text
    if rest == "0":
        return 0
    if not rest:
        raise DurationError(f"time: invalid duration {quoted}")
    total = 0
    while rest:
        match = _PART.match(rest)
        if match is None or not (match["whole"] or match["fraction"]):
            raise DurationError(f"time: invalid duration {quoted}")
        if not match["unit"]:
            raise DurationError(f"time: missing unit in duration {quoted}")
        if match["unit"] not in NANOSECONDS:
            raise DurationError(f'time: unknown unit "{match["unit"]}" in duration {quoted}')
        unit = NANOSECONDS[match["unit"]]
        total += int(match["whole"] or "0") * unit
        total += int(match["fraction"] or "0") * unit // 10 ** len(match["fraction"])
        if total > MAX_NANOSECONDS + (text[0] == "-"):
            raise DurationError(f"time: invalid duration {quoted}")
        rest = rest[match.end() :]
    return -total if text[0] == "-" else total


def format_duration(duration: timedelta) -> str:
    """As Go prints it: `1h2m3.5s`, `1.5ms`, `0s`."""
    microseconds = duration // timedelta(microseconds=1)
    sign, left = ("-", -microseconds) if microseconds < 0 else ("", microseconds)
    if left == 0:
        return "0s"
    if left < 1000:
        return f"{sign}{left}µs"
    if left < 10**6:
        return f"{sign}{_decimal(left, 10**3)}ms"
    minutes, seconds = divmod(left, 60 * 10**6)
    hours, minutes = divmod(minutes, 60)
    text = f"{_decimal(seconds, 10**6)}s"
    if hours or minutes:
        text = f"{minutes}m{text}"
    if hours:
        text = f"{hours}h{text}"
    return sign + text


def _decimal(amount: int, unit: int) -> str:
    whole, rest = divmod(amount, unit)
    if not rest:
        return str(whole)
    digits = str(rest).rjust(len(str(unit)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}"


def _rounded(amount: int, by: int) -> int:
    half = by // 2
    return (amount + half) // by if amount >= 0 else -((-amount + half) // by)
