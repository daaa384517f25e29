"""Which run of a schedule is due: the most recent time since the last one, and how many were missed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final

from volcano.api.cron.schedule import CronError, Interval, Schedule, load_zone, parse_schedule

MANY: Final = 100
SECOND: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class BadSchedule:
    """Why there is no schedule to go by."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class Timetable:
    """A CronJob's schedule, the zone its times are shown in, and a complaint that does not stop it."""

    schedule: Schedule
    shown_in: tzinfo
    complaint: BadSchedule | None = None


@dataclass(frozen=True, slots=True)
class Due:
    """A time that has come and was not served yet."""

    time: datetime
    missed_many: bool = False


def timetable(text: str, zone_name: str | None, local: tzinfo) -> Timetable | BadSchedule:
    """The schedule of a CronJob. A zone inside the schedule wins over the one beside it."""
    zone = load_zone(zone_name) if zone_name else local
    if zone is None:
        return BadSchedule("InvalidTimeZone", f"unknown time zone {zone_name}")
    try:
        schedule = parse_schedule(text, zone)
    except CronError as error:
        return BadSchedule("UnParseableCronJobSchedule", f"unparseable schedule {text!r}: {error}")
    complaint = None
    if "TZ" in text:
        message = f"the schedule {text!r} has a time zone of its own; use spec.timeZone"
        complaint = BadSchedule("UnsupportedSchedule", message)
    return Timetable(schedule, zone if zone_name else UTC, complaint)


def most_recent(
    schedule: Schedule, after: datetime, now: datetime, *, not_before: datetime | None = None
) -> Due | None:
    """The last time of the schedule later than `after` and `not_before`, and not later than `now`.

    The times of an interval count from `after`, so a deadline must not move it.
    """
    first = schedule.next(after)
    if first is None or first > now:
        return None
    if isinstance(schedule, Interval):
        last = first + (now - first) // schedule.every * schedule.every
    else:
        last = _last(schedule, first, now)
    if not_before is not None and last <= not_before:
        return None
    return Due(last, missed_many=_missed_many(schedule, max(after, not_before or after), now))


def _last(schedule: Schedule, first: datetime, now: datetime) -> datetime:
    """By halving: nothing is due after `high`, and `low` is due. A minutely schedule after years costs thirty looks."""
    low, high = first, now
    while high - low >= SECOND:
        middle = low + (high - low) / 2
        found = schedule.next(middle)
        if found is not None and found <= now:
            low = found
        else:
            high = middle
    return low


def _missed_many(schedule: Schedule, after: datetime, now: datetime) -> bool:
    moment: datetime | None = after
    for _ in range(MANY + 1):
        moment = schedule.next(moment) if moment is not None else None
        if moment is None or moment > now:
            return False
    return True
