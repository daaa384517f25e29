"""Regular expressions as Kubernetes' schemas write them (RE2), run by Python's engine.

The dialects differ little; the differences that matter are translated. A pattern that is RE2 but not Python is `None`:
it cannot be checked here. Values longer than LONGEST are not searched, because Python's engine can backtrack.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Final

LONGEST: Final = 64 * 1024
LONGEST_PATTERN: Final = 8 * 1024

_POSIX: Final = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "0-9A-Za-z", "upper": "A-Z", "lower": "a-z", "space": r"\t\n\v\f\r ",
    "blank": r"\t ", "word": r"\w", "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~", "cntrl": r"\x00-\x1f\x7f",
    "print": " -~", "graph": "!-~", "ascii": r"\x00-\x7f",
}  # fmt: skip


_FOREIGN: Final = re.compile(r"\\[pPQC]|\(\?[imsU]*-|\(\?U")


def is_foreign(pattern: str) -> bool:
    """Whether a pattern uses what only RE2 has, so that not compiling it here says nothing against it."""
    return len(pattern) <= LONGEST_PATTERN and _FOREIGN.search(pattern) is not None


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> re.Pattern[str] | None:
    """The pattern for Python, or None when it cannot be said there."""
    if len(pattern) > LONGEST_PATTERN:
        return None
    try:
        return re.compile(_translated(pattern), re.ASCII)
    except (re.error, RecursionError, OverflowError):
        return None


def matches(pattern: re.Pattern[str], text: str) -> bool:
    """Unanchored, as Go's MatchString."""
    return len(text) <= LONGEST and pattern.search(text) is not None


def _translated(pattern: str) -> str:
    """`$` is the very end, `\\z` and POSIX classes are spelled Python's way, flags move to the front."""
    flags = re.match(r"\(\?([ims]+)\)", pattern)
    multiline = bool(flags and "m" in flags[1])
    out: list[str] = []
    inside, index = False, 0
    while index < len(pattern):
        char = pattern[index]
        if char == "\\" and index + 1 < len(pattern):
            out.append("\\Z" if pattern[index + 1] == "z" else pattern[index : index + 2])
            index += 2
            continue
        if inside and pattern.startswith("[:", index):
            end = pattern.find(":]", index)
            name = pattern[index + 2 : end] if end > 0 else ""
            if name in _POSIX:
                out.append(_POSIX[name])
                index = end + 2
                continue
        if char == "[" and not inside:
            inside = True
            out.append(char)
            index += 1
            for opening in ("^", "]"):  # a bracket that comes first is itself
                if pattern.startswith(opening, index):
                    out.append("\\]" if opening == "]" else opening)
                    index += 1
            continue
        if char == "]":
            inside = False
        if char == "[" and inside:
            out.append("\\")
        out.append("\\Z" if char == "$" and not inside and not multiline else char)
        index += 1
    return "".join(out)
