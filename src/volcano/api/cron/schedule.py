"""Cron schedules in the dialect of robfig/cron v3: five fields, `@daily` and its like, `@every 1h`, `TZ=` prefixes.

A schedule is a rule over wall-clock time in a zone. A wall-clock time that a change of clocks skips never comes; one
that comes twice fires twice. Nothing is looked for further ahead than five years. Answers are in UTC, where times that
come twice differ.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta, tzinfo
from typing import Final, Protocol
from zoneinfo import ZoneInfo

import msgspec

from volcano.api.durations import DurationError, parse_nanoseconds
from volcano.api.names import LABEL_LENGTH

MAX_CRON_NAME_LENGTH: Final = LABEL_LENGTH - 11
"""Each job's name is the CronJob's, a hyphen and the minute it was due."""
MAX_SCHEDULE_CHARACTERS: Final = 1024
YEARS_AHEAD: Final = 5
MINUTE: Final = timedelta(minutes=1)
HOUR: Final = timedelta(hours=1)
SECOND: Final = timedelta(seconds=1)

MONTHS: Final = {
    "jan": 1, "feb": 2, "mar": 3, "apr": 4, "may": 5, "jun": 6,
    "jul": 7, "aug": 8, "sep": 9, "oct": 10, "nov": 11, "dec": 12,
}  # fmt: skip
DAYS: Final = {"sun": 0, "mon": 1, "tue": 2, "wed": 3, "thu": 4, "fri": 5, "sat": 6}
DESCRIPTORS: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_PREFIX: Final = re.compile(r"(?:CRON_)?TZ=(?P<zone>[^ ]*) (?P<rest>.*)", re.S)


class CronError(ValueError):
    """The text is not a schedule; the message says why, as robfig/cron does."""


class Schedule(Protocol):
    """When something is due."""

    def next(self, after: datetime) -> datetime | None:
        """The first time later than `after`, in UTC; None if there is none in five years."""
        ...

    @property
    def zone(self) -> tzinfo: ...


class Interval(msgspec.Struct, frozen=True):
    """`@every`: so long after the last time, in whole seconds."""

    every: timedelta
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        try:
            return after.astimezone(UTC).replace(microsecond=0) + self.every
        except OverflowError:
            return None


class Calendar(msgspec.Struct, frozen=True):
    """The five fields as sets. A day must match both day fields, or, if neither is a star, either."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    any_day: bool
    any_weekday: bool
    zone: tzinfo

    def next(self, after: datetime) -> datetime | None:
        if not (self.minutes and self.hours and self.months and (self.days or self.weekdays)):
            return None
        try:
            return self._search(after)
        except OverflowError:
            return None

    def _search(self, after: datetime) -> datetime | None:
        moment = after.astimezone(UTC).replace(second=0, microsecond=0) + MINUTE
        last_year = (after.astimezone(self.zone) + SECOND).year + YEARS_AHEAD
        while (local := moment.astimezone(self.zone)).year <= last_year:
            if local.month not in self.months:
                first = local.replace(day=1) + timedelta(days=32)
                moment = self._midnight(first.replace(day=1), moment)
            elif not self._is_due_on(local):
                moment = self._midnight(local + timedelta(days=1), moment)
            elif local.hour not in self.hours:
                moment += HOUR - timedelta(minutes=local.minute)
            elif local.minute not in self.minutes:
                later = (minute for minute in self.minutes if minute > local.minute)
                moment += timedelta(minutes=min(later, default=60) - local.minute)
            else:
                return moment
        return None

    def _is_due_on(self, local: datetime) -> bool:
        by_day, by_weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        if self.any_day or self.any_weekday:
            return by_day and by_weekday
        return by_day or by_weekday

    def _midnight(self, day: datetime, moment: datetime) -> datetime:
        """The first minute of a local day. Where clocks skip midnight, the day begins later than at 00:00."""
        midnight = datetime(day.year, day.month, day.day, tzinfo=self.zone)
        start = midnight.astimezone(UTC)
        while (start - MINUTE).astimezone(self.zone).date() == midnight.date() and start - MINUTE > moment:
            start -= MINUTE
        return max(start, moment + MINUTE)


def parse_schedule(text: str, zone: tzinfo = UTC) -> Schedule:
    """The schedule a text describes; a `TZ=` prefix wins over the zone given. CronError if it describes none."""
    if not text:
        raise CronError("empty spec string")
    if len(text) > MAX_SCHEDULE_CHARACTERS:
        raise CronError(f"a schedule of {len(text)} characters is over the limit of {MAX_SCHEDULE_CHARACTERS}")
    if text.startswith(("TZ=", "CRON_TZ=")):
        prefixed = _PREFIX.fullmatch(text)
        if prefixed is None:
            raise CronError(f"no schedule after the time zone: {text}")
        named = load_zone(prefixed["zone"])
        if named is None:
            raise CronError(f"provided bad location {prefixed['zone']}: unknown time zone {prefixed['zone']}")
        text, zone = prefixed["rest"].strip(), named
    if text.startswith("@"):
        return _descriptor(text, zone)
    return _calendar(text, zone)


def load_zone(name: str) -> tzinfo | None:
    """A zone of the time-zone database by its name; an empty name is UTC."""
    if name in ("", "UTC"):
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, KeyError, OSError):  # bad names, unknown ones, and directories of the database
        return None


def _descriptor(text: str, zone: tzinfo) -> Schedule:
    if text in DESCRIPTORS:
        return _calendar(DESCRIPTORS[text], zone)
    if not text.startswith("@every "):
        raise CronError(f"unrecognized descriptor: {text}")
    try:
        nanoseconds = parse_nanoseconds(text.removeprefix("@every "))
    except DurationError as error:
        raise CronError(f"failed to parse duration {text}: {error}") from error
    return Interval(timedelta(seconds=max(1, nanoseconds // 10**9)), zone)


def _calendar(text: str, zone: tzinfo) -> Calendar:
    fields = text.split()
    if len(fields) != 5:
        raise CronError(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    minutes, hours, days, months, weekdays = (
        _field(field, low, high, names)
        for field, (low, high, names) in zip(
            fields, ((0, 59, {}), (0, 23, {}), (1, 31, {}), (1, 12, MONTHS), (0, 6, DAYS)), strict=True
        )
    )
    return Calendar(
        minutes=minutes.values,
        hours=hours.values,
        days=days.values,
        months=months.values,
        weekdays=weekdays.values,
        any_day=days.is_star,
        any_weekday=weekdays.is_star,
        zone=zone,
    )


class _Field(msgspec.Struct, frozen=True):
    values: frozenset[int]
    is_star: bool


def _field(text: str, low: int, high: int, names: Mapping[str, int]) -> _Field:
    values: set[int] = set()
    is_star = False
    for part in text.split(","):
        if part:  # empty parts of a list count for nothing
            found, starred = _range(part, low, high, names)
            values.update(found)
            is_star |= starred
    return _Field(frozenset(values), is_star)


def _range(text: str, low: int, high: int, names: Mapping[str, int]) -> tuple[range, bool]:
    """`5`, `1-5`, `*`, `*/15`, `5/15`, `mon-fri`. A star with a step above 1 is no star."""
    bounds, *steps = text.split("/")
    first, *rest = bounds.split("-")
    is_star = first in ("*", "?")
    if is_star:
        start, end = low, high
    else:
        start = _number(first, names)
        if len(rest) > 1:
            raise CronError(f"too many hyphens: {text}")
        end = _number(rest[0], names) if rest else start
    if len(steps) > 1:
        raise CronError(f"too many slashes: {text}")
    step = _number(steps[0], {}) if steps else 1
    if steps and not rest:
        end = high
    if start < low:
        raise CronError(f"beginning of range ({start}) below minimum ({low}): {text}")
    if end > high:
        raise CronError(f"end of range ({end}) above maximum ({high}): {text}")
    if start > end:
        raise CronError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise CronError(f"step of range should be a positive number: {text}")
    return range(start, end + 1, step), is_star and step == 1


def _number(text: str, names: Mapping[str, int]) -> int:
    named = names.get(text.lower())
    if named is not None:
        return named
    if not re.fullmatch("[+-]?[0-9]+", text):
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    number = int(text) if len(text) < 20 else 2**63
    if not -(2**63) <= number < 2**63:
        raise CronError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    if number < 0:
        raise CronError(f"negative number ({number}) not allowed: {text}")
    return number
