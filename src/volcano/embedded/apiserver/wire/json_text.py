"""JSON that clients send, decoded within bounds on its depth and on how many values it has."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest

MAX_NESTING: Final = 200
MAX_BODY_NODES: Final = 100_000
"""Values and keys of one body. An object of a megabyte has about thirty thousand; defaults, validation and field
ownership take about 20 µs for each, and other requests wait meanwhile."""
_TEXTS: Final = re.compile(rb'"[^"\\]*+(?:\\.[^"\\]*+)*+"?', re.S)
"""A text without its end matches too, up to the end of the body: else each quote in it would begin a search for an
end that is not there."""
_STEPS: Final = {code: 1 if code in b"[{" else -1 for code in b"[]{}"}
_ALL_BUT_BRACKETS: Final = bytes(code for code in range(256) if code not in b"[]{}")


def decode_json(body: bytes) -> Any:
    check_bounds(body)
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError, ValueError) as error:
        raise BadRequest(f"the object provided is unrecognized: json parse error: {error}") from None


def check_bounds(body: bytes) -> None:
    """Refuse JSON that is nested too deeply or has too many values, before a recursive decoder reads it."""
    if _nodes(body) <= MAX_NESTING:
        return
    brackets_and_marks = _TEXTS.sub(b"", body)
    if _nodes(brackets_and_marks) > MAX_BODY_NODES:
        raise BadRequest(f"the object has more than {MAX_BODY_NODES} values and keys")
    brackets = brackets_and_marks.translate(None, _ALL_BUT_BRACKETS)
    if max(accumulate(map(_STEPS.__getitem__, brackets)), default=0) > MAX_NESTING:
        raise BadRequest(f"the object is nested deeper than {MAX_NESTING} levels")


def _nodes(text: bytes) -> int:
    """Values and keys in JSON without texts; in one with texts, at least as many."""
    return 1 + sum(map(text.count, (b",", b":", b"{", b"[")))
