"""Regular expressions that users write: Go's RE2 syntax, matched in linear time, errors in Go's words.

Every pattern that comes from an object or a request is compiled here, never with `re`: Python's engine backtracks, so a
pattern can be written that keeps it busy for hours, and its syntax differs from what Kubernetes accepts.
"""

from __future__ import annotations

import re
from functools import lru_cache
from itertools import islice
from typing import Final

import re2

MAX_PATTERN_BYTES: Final = 8 * 1024
MAX_PATTERN_MEMORY_BYTES: Final = 4 * 1024 * 1024
"""What a compiled pattern and its caches may take."""
MAX_PROGRAM_INSTRUCTIONS: Final = 170_000
"""About as many as fit into that memory."""
MAX_MATCH_STEPS: Final = 200_000_000
"""Bytes of the text times instructions of the pattern; about a second in RE2's slowest engine."""
MAX_SCANNED_BYTES: Final = 100_000_000
"""The text may be scanned once per match; this bounds all scans of one search for every match."""
MAX_CACHED_PATTERNS: Final = 1024
MAX_REMEMBERED_CHARACTERS: Final = 128
"""Names and quantities are short and come again and again; the library takes 3 µs for each."""
MAX_REMEMBERED_TEXTS: Final = 4096

_GO_WORDS: Final = {
    "missing )": "missing closing )",
    "missing ]": "missing closing ]",
    "no argument for repetition operator": "missing argument to repetition operator",
    "bad repetition operator": "invalid nested repetition operator",
    "invalid repetition size": "invalid repeat count",
    "invalid perl operator": "invalid or unsupported Perl syntax",
    "invalid named capture group": "invalid named capture",
    "trailing \\": "trailing backslash at end of expression",
}
_ESCAPE: Final = re.compile(r"\\Q.*?(?:\\E|\Z)|\\.", re.DOTALL)
_OPTIONS: Final = re2.Options()
_OPTIONS.log_errors = False
_OPTIONS.never_capture = True  # nothing here reads groups, and without them RE2 needs only its fastest engine
_OPTIONS.max_mem = MAX_PATTERN_MEMORY_BYTES


class PatternError(ValueError):
    """The pattern is not valid, or is too large."""


class Pattern:
    """A compiled pattern, searched anywhere in a text as Go's MatchString does."""

    __slots__ = ("_compiled", "_max_text_bytes", "instructions")

    def __init__(self, pattern: str) -> None:
        if len(pattern.encode(errors="replace")) > MAX_PATTERN_BYTES:
            raise PatternError(f"the pattern is longer than {MAX_PATTERN_BYTES} bytes")
        if any(escape[0] == r"\C" for escape in _ESCAPE.finditer(pattern)):  # RE2 in C++ has it, RE2 in Go has not
            raise PatternError(r"error parsing regexp: invalid escape sequence: `\C`")
        try:
            self._compiled = re2.compile(pattern.encode(), _OPTIONS)
        except UnicodeEncodeError:
            raise PatternError("error parsing regexp: invalid UTF-8") from None
        except re2.error as error:
            raise PatternError(_go_error(error)) from None
        self.instructions: int = self._compiled.programsize
        self._max_text_bytes: int = MAX_MATCH_STEPS // max(1, self.instructions)

    def matches(self, text: str) -> bool:
        """Whether the pattern matches somewhere. A text too long to search with this pattern does not match."""
        return _matches(self, text) if len(text) <= MAX_REMEMBERED_CHARACTERS else self.search(text)

    def search(self, text: str) -> bool:
        """The same as `matches`, always searched."""
        encoded = text.encode(errors="replace")
        return len(encoded) <= self._max_text_bytes and self._compiled.search(encoded) is not None

    def find_all(self, text: str, limit: int | None = None) -> list[str]:
        """The matches from left to right; ValueError where the search would take too long."""
        size = len(text.encode())
        most = MAX_SCANNED_BYTES // max(1, size)
        if size > self._max_text_bytes:
            raise ValueError(f"the text has {size} bytes; this pattern can search {self._max_text_bytes}")
        wanted = most + 1 if limit is None else min(limit, most + 1)
        found = [match[0] for match in islice(self._compiled.finditer(text), wanted)]
        if len(found) > most:
            raise ValueError(f"the pattern matches more than {most} times in a text of {size} bytes")
        return found


@lru_cache(maxsize=MAX_REMEMBERED_TEXTS)
def _matches(pattern: Pattern, text: str) -> bool:
    return pattern.search(text)


@lru_cache(maxsize=MAX_CACHED_PATTERNS)
def compile_pattern(pattern: str) -> Pattern:
    """The compiled pattern; PatternError says in Go's words what is wrong with it."""
    return Pattern(pattern)


def _go_error(error: Exception) -> str:
    said = error.args[0]
    reason, _, part = (said.decode(errors="replace") if isinstance(said, bytes) else str(said)).partition(": ")
    if reason.startswith("pattern too large"):
        return "error parsing regexp: expression too large"
    return f"error parsing regexp: {_GO_WORDS.get(reason, reason)}: `{part}`"
