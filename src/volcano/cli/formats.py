"""Shared formats of spec and habit: padded tables, ages, resource lists, times in the local zone."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.cli.failures import Failed

NONE_FOUND = "No resources found"
ZERO_TIME = "0001-01-01 00:00:00 +0000 UTC"


def padded(values: Iterable[Any], widths: Sequence[int]) -> str:
    """Left-justified, not cut, the last column padded too."""
    return "".join(f"{value!s:<{width}}" for value, width in zip(values, widths))


def parse_time(text: str | None) -> datetime | None:
    return datetime.fromisoformat(text.replace("Z", "+00:00")) if text else None


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


def age(since: datetime | None, now: datetime, *, whole_years: bool = True) -> str:
    """How long ago, in at most two units, as kubectl says it."""
    if since is None:
        return "<unknown>"
    return human(now - since, whole_years=whole_years)


def human(elapsed: timedelta, *, whole_years: bool = True) -> str:
    seconds = int(elapsed.total_seconds())
    if elapsed < timedelta(seconds=-1):
        return "<invalid>"
    if elapsed < timedelta(0):
        return "0s"
    minutes, hours, days = seconds // 60, seconds // 3600, seconds // 86400
    if seconds < 120:
        return f"{seconds}s"
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    if hours < 192:
        return _two(days, "d", hours % 24, "h")
    if hours < 2 * 365 * 24:
        return f"{days}d"
    if hours < 8 * 365 * 24:
        years, rest = divmod(days, 365)
        return _two(years, "y", rest, "d") if whole_years else f"{years}y{rest}d"
    return f"{days // 365}y"


def _two(first: int, unit: str, second: int, smaller: str) -> str:
    return f"{first}{unit}{second}{smaller}" if second else f"{first}{unit}"


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
