"""Shared formats of spec and habit: padded tables, ages, resource lists, times in the local zone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import Any

from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.api.times import parse_timestamp
from volcano.cli.failures import Failed

NONE_FOUND = "No resources found"
ZERO_TIME = "0001-01-01 00:00:00 +0000 UTC"


def padded(values: Iterable[Any], widths: Sequence[int]) -> str:
    """Left-justified, not cut, the last column padded too."""
    return "".join(f"{value!s:<{width}}" for value, width in zip(values, widths))


def parse_time(text: str | None) -> datetime | None:
    return parse_timestamp(text) if text else None


def local(moment: datetime) -> datetime:
    """In the process's own zone."""
    return moment.astimezone()


def local_date(text: str | None) -> str:
    moment = parse_time(text)
    return local(moment).strftime("%Y-%m-%d") if moment else "0001-01-01"


def local_timestamp(text: str | None) -> str:
    """`2026-01-02 03:04:05 +0000 UTC`."""
    moment = parse_time(text)
    if moment is None:
        return ZERO_TIME
    return local(moment).strftime("%Y-%m-%d %H:%M:%S %z %Z")


def parse_resource_list(text: str) -> dict[str, str]:
    """`cpu=1000m,memory=100Mi`; an empty string is none."""
    amounts: dict[str, str] = {}
    for part in text.split(",") if text else ():
        name, equals, amount = part.partition("=")
        if not equals or "=" in amount:
            raise Failed(f"invalid resource {part!r}, expected name=quantity".replace("'", '"'))
        try:
            parse_quantity(amount)
        except QuantityError as error:
            raise Failed(str(error)) from error
        amounts[name] = amount
    return amounts


def labels_of(item: JSON) -> dict[str, str]:
    found: dict[str, str] = item.get("metadata", {}).get("labels") or {}
    return found


def utc_now() -> datetime:
    from volcano.machinery.clock import SystemClock

    return SystemClock().now().astimezone(UTC)
