"""Regular expressions as Kubernetes' schemas write them (RE2).

The dialect differs little from Python's; the differences that matter are translated. A pattern that is RE2 but not
Python is `None`: it cannot be checked here. Python's engine is used as long as it cannot take long; otherwise an
automaton answers (schemas.linear_patterns), and a text too long for that counts as no match.
"""

from __future__ import annotations

import re
from functools import lru_cache
from math import isinf
from typing import Final

from volcano.embedded.apiserver.schemas.linear_patterns import Automaton, TooComplex, risk_of

LONGEST: Final = 64 * 1024
LONGEST_PATTERN: Final = 8 * 1024
MOST_STEPS: Final = 5_000_000
MOST_MOVES: Final = 4_000_000
"""What Python's engine may take in the worst case, and the automaton in any."""

_POSIX: Final = {
    "alpha": "A-Za-z", "digit": "0-9", "alnum": "0-9A-Za-z", "upper": "A-Z", "lower": "a-z", "space": r"\t\n\v\f\r ",
    "blank": r"\t ", "word": r"\w", "xdigit": "0-9A-Fa-f", "punct": r"!-/:-@\[-`{-~", "cntrl": r"\x00-\x1f\x7f",
    "print": " -~", "graph": "!-~", "ascii": r"\x00-\x7f",
}  # fmt: skip


_FOREIGN: Final = re.compile(r"\\[pPQC]|\(\?[imsU]*-|\(\?U")


def is_foreign(pattern: str) -> bool:
    """Whether a pattern uses what only RE2 has, so that not compiling it here says nothing against it."""
    return len(pattern) <= LONGEST_PATTERN and _FOREIGN.search(pattern) is not None


class Pattern:
    """A compiled pattern, searched anywhere in a text as Go's MatchString does."""

    __slots__ = ("_automaton", "_engine", "_longest")

    def __init__(self, translated: str) -> None:
        self._engine = re.compile(translated, re.ASCII)
        risk = risk_of(translated)
        self._longest = LONGEST if risk <= 1 else 0 if isinf(risk) else min(LONGEST, int(MOST_STEPS ** (1 / risk)))
        try:
            self._automaton = Automaton(translated) if risk > 1 else None
        except TooComplex:
            self._automaton = None

    def matches(self, text: str) -> bool:
        if len(text) <= self._longest:
            return self._engine.search(text) is not None
        if self._automaton is None or len(text) * self._automaton.size > MOST_MOVES:
            return False
        return self._automaton.search(text)

    def found(self, text: str) -> list[str]:
        """All matches; ValueError where looking for them could take long."""
        if len(text) > self._longest:
            raise ValueError("the pattern takes too long on this text")
        return [match[0] for match in self._engine.finditer(text)]


@lru_cache(maxsize=4096)
def compile_pattern(pattern: str) -> Pattern | None:
    """The pattern, or None when it cannot be said in Python."""
    if len(pattern) > LONGEST_PATTERN:
        return None
    try:
        return Pattern(_translated(pattern))
    except (re.error, RecursionError, OverflowError):
        return None


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
