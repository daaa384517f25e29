"""How long ago something was, in kubectl's words: `45s`, `2m3s`, `3d4h`, `2y5d`."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

UNKNOWN: Final = "<unknown>"
_YEAR: Final = 365


def human_duration(duration: timedelta, *, whole_years: bool = True) -> str:
    """Two units while the larger is small, one when it is not. Without `whole_years` even two years are `2y0d`."""
    seconds = int(duration.total_seconds())
    if duration < timedelta(seconds=-1):
        return "<invalid>"
    if seconds < 120:
        return f"{max(seconds, 0)}s"
    minutes, hours = seconds // 60, seconds // 3600
    if minutes < 10:
        return _two(minutes, "m", seconds % 60, "s")
    if minutes < 180:
        return f"{minutes}m"
    if hours < 8:
        return _two(hours, "h", minutes % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * _YEAR:
        return f"{days}d"
    if days < 8 * _YEAR:
        years, rest = divmod(days, _YEAR)
        return _two(years, "y", rest, "d") if whole_years else f"{years}y{rest}d"
    return f"{days // _YEAR}y"


def _two(large: int, unit: str, small: int, small_unit: str) -> str:
    return f"{large}{unit}{small}{small_unit}" if small else f"{large}{unit}"


def age(since: datetime | None, now: datetime, *, whole_years: bool = True) -> str:
    return human_duration(now - since, whole_years=whole_years) if since is not None else UNKNOWN
