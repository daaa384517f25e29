"""Which controllers there are by name, and which of them a list chooses; nothing of what they do is imported."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

SHARDING_CONTROLLER: Final = "sharding-controller"
DEFAULT_CONTROLLERS: Final = f"*,-{SHARDING_CONTROLLER}"
NAMES: Final = (
    "job-controller",
    "queue-controller",
    "pg-controller",
    "gc-controller",
    "jobflow-controller",
    "jobtemplate-controller",
    "cronjob-controller",
    "hyperNode-controller",
    "colocation-config-controller",
    SHARDING_CONTROLLER,
)


class UnknownController(ValueError):
    """The list of controllers names one that does not exist, or one twice."""


def is_enabled(name: str, chosen: Iterable[str]) -> bool:
    """`name` or `+name` turns on, `-name` off, the first mention wins; otherwise `*`, or an empty list, is on."""
    chosen = list(chosen)
    for item in chosen:
        if item in (name, f"+{name}"):
            return True
        if item == f"-{name}":
            return False
    return not chosen or "*" in chosen


def parse_controllers(text: str) -> list[str]:
    """The items of --controllers; UnknownController when one of them names none, or one is named twice."""
    chosen = [item.strip() for item in text.split(",") if item.strip()]
    mentioned = [item.lstrip("+-") for item in chosen if item != "*"]
    for name in mentioned:
        if name not in NAMES:
            raise UnknownController(f"there is no controller {name!r}; known: {', '.join(NAMES)}")
        if mentioned.count(name) > 1:
            raise UnknownController(f"controllers option {name!r} is named twice")
    return chosen
