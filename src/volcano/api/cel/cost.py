"""How much work a rule can cause on a value: an upper bound, read from the rule's source and the value's sizes.

The engine ends an evaluation after a number of iterations, but an iteration may search or split a text of a megabyte,
or compare whole lists. Kubernetes counts a cost while it evaluates; the engine here does not.
"""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from volcano.api.cel.texts import without_texts

MAX_ITERATIONS: Final = 10_000
"""The engine's own limit for one evaluation."""
TEXT_MAKING_WEIGHT: Final = 8
"""Making a character of a new text takes as long as looking at so many."""
_LOOP: Final = re.compile(r"\.\s*(?:all|exists|exists_one|map|filter|sortBy|transformList|transformMap)\s*\(")
_MAKES_TEXTS: Final = re.compile(
    r"\.\s*(?:split|join|replace|findAll|reverse|lowerAscii|upperAscii|substring|format)\s*\("
)
_SPLITS: Final = re.compile(r"\.\s*(?:split|findAll)\s*\(")
_PATH: Final = re.compile(r"(?:\b(?:has|size)\s*\(\s*)?\b(?:self|oldSelf)\b(?:\??\.\w+|\[[^\]]*\])*(?P<call>\s*\()?")
_STEPS_THROUGH: Final = ("all", "exists", "exists_one", "map", "filter", "size", "hasValue", "orValue", "value")
_KEEPS_WHOLE_VALUES: Final = re.compile(r"\bcel\s*\.\s*bind\b|\.\s*join\s*\(")


class ValueSizes(msgspec.Struct):
    """What makes a value expensive; counted in one walk."""

    parts: int = 0
    """Values within the value, and the characters of its texts."""
    longest_text: int = 0
    longest_collection: int = 0

    def add(self, value: Any) -> None:
        waiting = [value]
        while waiting:
            part = waiting.pop()
            self.parts += 1
            if isinstance(part, str):
                self.parts += len(part)
                self.longest_text = max(self.longest_text, len(part))
            elif isinstance(part, dict):
                self.longest_collection = max(self.longest_collection, len(part))
                waiting += part.values()
                self.parts += sum(map(len, part))
            elif isinstance(part, list):
                self.longest_collection = max(self.longest_collection, len(part))
                waiting += part


class RuleShape(msgspec.Struct, frozen=True):
    """What of a rule's source decides about its cost."""

    loops: int = 0
    makes_texts: bool = False
    splits: bool = False
    reads_whole_values_in_loops: bool = False

    def cost(self, sizes: ValueSizes) -> int:
        """At most so many parts and characters are looked at."""
        if self.loops == 0:
            return sizes.parts * (TEXT_MAKING_WEIGHT if self.makes_texts else 1)
        elements = max(1, sizes.longest_collection, sizes.longest_text if self.splits else 0)
        iterations = MAX_ITERATIONS if self.loops > 4 else min(MAX_ITERATIONS, elements**self.loops)
        reach = sizes.parts if self.reads_whole_values_in_loops else 1 + sizes.longest_text
        return sizes.parts + iterations * reach * (TEXT_MAKING_WEIGHT if self.makes_texts else 1)


def shape_of(source: str) -> RuleShape:
    """Loops beside each other count as if they were nested: an upper bound needs no syntax tree."""
    bare = without_texts(source)
    loops = len(_LOOP.findall(bare))
    inner = bare[found.end() :] if (found := _LOOP.search(bare)) is not None else ""
    return RuleShape(
        loops, _MAKES_TEXTS.search(bare) is not None, _SPLITS.search(bare) is not None,
        loops > 0 and (_KEEPS_WHOLE_VALUES.search(bare) is not None or _uses_whole_values(inner)),
    )  # fmt: skip


def _uses_whole_values(source: str) -> bool:
    """Whether a path into the object is compared, searched or put into a list, rather than stepped through."""
    for found in _PATH.finditer(source):
        if found[0].startswith(("has", "size")):
            continue
        last = found[0].rstrip("( ").rpartition(".")[2]
        if found["call"] is None or last not in _STEPS_THROUGH:
            return True
    return False
