"""Reading plain JSON by path: what is missing or of another type is empty."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from volcano.api.meta import JSON
from volcano.api.times import timestamp_or_none


def at(value: Any, *path: str) -> Any:
    """The value at a path of names, or None."""
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def text(value: Any, *path: str) -> str:
    found = at(value, *path)
    return found if isinstance(found, str) else ""


def number(value: Any, *path: str) -> int:
    found = at(value, *path)
    return int(found) if isinstance(found, int) else 0


def objects(value: Any, *path: str) -> list[JSON]:
    """The objects of a list."""
    found = at(value, *path)
    return [item for item in found if isinstance(item, dict)] if isinstance(found, list) else []


def texts(value: Any, *path: str) -> list[str]:
    found = at(value, *path)
    return [item for item in found if isinstance(item, str)] if isinstance(found, list) else []


def mapping(value: Any, *path: str) -> JSON:
    found = at(value, *path)
    return found if isinstance(found, dict) else {}


def moment(value: Any, *path: str) -> datetime | None:
    """A time, if there is one that can be read."""
    return timestamp_or_none(at(value, *path))


def condition(conditions: Sequence[JSON], kind: str) -> str:
    """The status of a condition, or an empty text."""
    return next((text(item, "status") for item in conditions if item.get("type") == kind), "")
