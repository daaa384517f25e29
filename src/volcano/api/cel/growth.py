"""How much longer than its values a rule can make a text: an upper bound, read from the rule's source.

The engine bounds iterations and depth but not memory: `self.a.replace('x', 'xxxxxxxxxx')` eight times over makes a
hundred gigabytes of a kilobyte. Kubernetes refuses such rules by an estimate of their cost.
"""

from __future__ import annotations

import re
from math import prod
from typing import Final

import msgspec

from volcano.api.cel.texts import TEXT, without_texts

MAX_GROWN_BYTES: Final = 256 * 1024 * 1024
_REPLACE: Final = re.compile(rf"\.\s*replace\s*\((?:\s*({TEXT})\s*,\s*({TEXT})\s*(?:,[^,()]*)?\))?")
_JOIN: Final = re.compile(rf"\.\s*join\s*\((?:\s*({TEXT})?\s*\))?")


class TextGrowth(msgspec.Struct, frozen=True):
    """A text of n bytes becomes at most `factor` · n^(1 + `degree`) bytes."""

    factor: int = 1
    degree: int = 0

    def allows(self, size: int) -> bool:
        """Whether values of so many bytes in JSON stay within the bound."""
        return bool(self.factor * size ** (1 + self.degree) <= MAX_GROWN_BYTES)


def text_growth(source: str) -> TextGrowth:
    """By literal arguments; one that is not literal may be as long as the values themselves."""
    factor, degree = 1, 0
    for found in _REPLACE.finditer(source):
        if found[2] is None:
            degree += 1
        else:
            factor *= max(1, 1 + len(found[2]) // max(1, len(found[1]) - 2) if len(found[2]) > len(found[1]) else 1)
    for found in _JOIN.finditer(source):
        if found[1] is None and not found[0].endswith(")"):
            degree += 1
        else:
            factor *= 1 + max(0, len(found[1] or "") - 2)
    # a variable that cel.bind defines can be added to itself in the next definition
    parts = without_texts(source).split("cel.bind(")
    return TextGrowth(factor * prod(1 + part.count("+") for part in parts), degree)
