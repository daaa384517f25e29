"""The nearest known word to one that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The question to append to an error, or nothing where no known word is near."""
    near = nearest_word(word, known)
    return f"; did you mean {near}?" if near else ""


def nearest_word(word: str, known: Iterable[str]) -> str:
    """The nearest other word, or nothing where none is near."""
    by_lower = {each.lower(): each for each in sorted(known) if each != word}
    nearest = difflib.get_close_matches(word.lower()[:100], by_lower, n=1)
    return by_lower[nearest[0]] if nearest else ""
