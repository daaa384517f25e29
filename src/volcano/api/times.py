"""Times as text: the one place that writes and reads RFC 3339; and what counts as recent.

Kubernetes writes `metav1.Time` with whole seconds in UTC and `metav1.MicroTime` with six digits. Durations are
api.durations; ages for people are api.ages.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, tzinfo
from functools import lru_cache
from typing import Final

_RFC_3339: Final = re.compile(
    r"(?P<whole>\d{4}-\d\d-\d\d[Tt]\d\d:\d\d:\d\d)(?:\.(?P<fraction>\d+))?(?P<zone>[Zz]|[+-]\d\d:\d\d)", re.ASCII
)
_MICROSECOND_DIGITS: Final = 6
MAX_TIME_CHARACTERS: Final = 64


def is_recent(moment: datetime, now: datetime, interval: timedelta) -> bool:
    """Whether less than the interval has passed since a moment.

    A moment in the future is from a clock that was wrong. It counts as long ago: waiting for it to pass would take as
    long as the clock was set back.
    """
    return timedelta(0) <= now - moment < interval


def timestamp(moment: datetime) -> str:
    """`2026-01-31T12:00:00Z`: UTC, fractions of a second cut off."""
    return _whole_seconds(moment.replace(microsecond=0))


@lru_cache(maxsize=64)
def _whole_seconds(moment: datetime) -> str:
    """Cached: the API server writes the same second into many objects."""
    return _in_utc(moment).isoformat(timespec="seconds") + "Z"


def micro_timestamp(moment: datetime) -> str:
    """`2026-01-31T12:00:00.000001Z`: UTC, always six digits; leases use it."""
    return _in_utc(moment).isoformat(timespec="microseconds") + "Z"


def zoned_timestamp(moment: datetime, zone: tzinfo) -> str:
    """`2026-01-31T21:00:00+09:00`: whole seconds on the zone's clock; an offset of zero is written `Z`."""
    return moment.astimezone(zone).isoformat(timespec="seconds").replace("+00:00", "Z")


def parse_timestamp(text: str) -> datetime:
    """RFC 3339, with any number of fractional digits (those past microseconds are cut off) or ValueError."""
    match = _RFC_3339.fullmatch(text) if len(text) <= MAX_TIME_CHARACTERS else None
    if match is None:
        raise ValueError(f"{text[:MAX_TIME_CHARACTERS]!r} is not a time such as 2026-01-31T12:00:00Z")
    fraction = (match["fraction"] or "")[:_MICROSECOND_DIGITS].ljust(_MICROSECOND_DIGITS, "0")
    zone = match["zone"].upper().replace("Z", "+00:00")
    return datetime.fromisoformat(f"{match['whole'].upper()}.{fraction}{zone}")


def timestamp_or_none(value: object) -> datetime | None:
    """The time that `value` writes, or None where it is absent or not RFC 3339."""
    try:
        return parse_timestamp(value) if isinstance(value, str) else None
    except ValueError:
        return None


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} names no time zone")
    return moment.astimezone(UTC).replace(tzinfo=None)
