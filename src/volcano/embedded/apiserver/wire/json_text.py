"""JSON that clients send, decoded within a bound on its depth."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest

MAX_NESTING: Final = 200
_TEXTS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"', re.S)
_STEPS: Final = {code: 1 if code in b"[{" else -1 for code in b"[]{}"}
_ALL_BUT_BRACKETS: Final = bytes(code for code in range(256) if code not in b"[]{}")


def decode_json(body: bytes) -> Any:
    check_depth(body)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise BadRequest(f"the object provided is unrecognized: json parse error: {error}") from None


def check_depth(body: bytes) -> None:
    """Refuse JSON that is nested too deeply, before a recursive decoder reads it."""
    if body.count(b"{") + body.count(b"[") <= MAX_NESTING:
        return
    brackets = _TEXTS.sub(b"", body).translate(None, _ALL_BUT_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_NESTING:
        raise BadRequest(f"the object is nested deeper than {MAX_NESTING} levels")
