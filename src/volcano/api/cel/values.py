"""Values of types that Kubernetes adds to CEL: maps with one entry, the type's name and a canonical text.

The engine has no types of that kind. Equal values have equal texts, so that `==` compares them correctly.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple


class Function(NamedTuple):
    """One overload: parameter and result types by their CEL names, and what it does."""

    name: str
    parameters: tuple[str, ...]
    result: str
    does: Callable[..., Any]
    is_member: bool = True


def made(kind: str, text: str) -> dict[str, str]:
    return {kind: text}


def text_of(value: Mapping[str, Any], *kinds: str) -> str:
    """The text of a value that is of one of these types; ValueError, as for any wrong argument, when it is none."""
    if len(value) == 1:
        for kind in kinds:
            if isinstance(text := value.get(kind), str):
                return text
    raise ValueError("no such overload")


def kind_of(value: Mapping[str, Any], *kinds: str) -> str:
    """Which of these types the value has."""
    found = next((kind for kind in kinds if kind in value), "")
    text_of(value, found)
    return found


def succeeds(convert: Callable[..., Any]) -> Callable[..., bool]:
    """A function that returns whether a conversion succeeds."""

    def question(*arguments: Any) -> bool:
        try:
            convert(*arguments)
        except ValueError:
            return False
        return True

    return question
