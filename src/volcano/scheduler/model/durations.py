"""Go's duration texts: "1h30m", "600s", "1.5h"."""

from __future__ import annotations

import re
from datetime import timedelta
from typing import Final

_UNITS: Final = {"ns": 1e-9, "us": 1e-6, "µs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}
_PIECE: Final = re.compile(r"(\d+(?:\.\d*)?|\.\d+)(ns|us|µs|ms|s|m|h)")
LONGEST: Final = 64


def parse_duration(text: str) -> timedelta | None:
    """The span a text names; None when it names none."""
    body = text.lstrip("+-")
    if body == "0":
        return timedelta(0)
    if not body or len(text) > LONGEST or len(text) - len(body) > 1 or _PIECE.sub("", body):
        return None
    seconds = sum(float(number) * _UNITS[unit] for number, unit in _PIECE.findall(body))
    try:
        return timedelta(seconds=-seconds if text.startswith("-") else seconds)
    except OverflowError:
        return None
