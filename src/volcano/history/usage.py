"""Who used what: requested amounts times the time in which pods held nodes, by group and day; and how long jobs waited.

Sums are of whole numbers, so that both databases answer alike; they become hours at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, timedelta
from typing import Any, Final, NamedTuple
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from volcano.api.history_records import UsageRow
from volcano.history.columns import EPOCH, milliseconds
from volcano.history.conditions import Conditions
from volcano.history.database import Database
from volcano.history.questions import QuestionRefused, UsageQuestion

_HOUR_MILLISECONDS: Final = 3_600_000
_DAY_MILLISECONDS: Final = 86_400_000
_EPOCH_DAY: Final = EPOCH.toordinal()
_BEGIN: Final = '(CASE WHEN p."bound" > :begin THEN p."bound" ELSE :begin END)'
_END: Final = '(CASE WHEN p."ended" IS NULL OR p."ended" > :until THEN :until ELSE p."ended" END)'
_MIB: Final = '(p."memory_bytes" / 1048576)'
_PODS: Final = 'pods p JOIN jobs j ON j."uid" = p."job_uid" LEFT JOIN measured u ON u."pod_uid" = p."uid"'
_HELD_PERIOD: Final = 'p."bound" < :until AND (p."ended" IS NULL OR p."ended" > :begin)'


_HOURS: Final = {
    "cpu_hours": 1000 * _HOUR_MILLISECONDS,
    "memory_gib_hours": 1024 * 3600,
    "gpu_hours": 1000 * _HOUR_MILLISECONDS,
    "measured_cpu_hours": 1000 * _HOUR_MILLISECONDS,
    "used_cpu_hours": 1000 * 3600,
    "measured_memory_gib_hours": 1024 * 3600,
    "used_memory_gib_hours": 1024 * 3600,
}
"""The sums over pods, in the order of their statement, and what each is divided by."""


class _Span(NamedTuple):
    """A time within which each local day has 24 hours at the same offset from UTC.

    `only` is the number of the one day of a span on which clocks change, and 0 where the report is not by day.
    """

    begin: datetime
    end: datetime
    offset: timedelta = timedelta(0)
    only: int | None = None

    def day_of(self, moment: str) -> str:
        """The number of the local day of an SQL expression."""
        return f"(({moment}) + :offset) / {_DAY_MILLISECONDS}" if self.only is None else str(self.only)


def usage(database: Database, question: UsageQuestion, now: datetime) -> list[UsageRow]:
    rows: list[UsageRow] = []
    for span in _spans(question, now):
        rows += _SpanSums(database, question, span).rows()
    return sorted(rows, key=lambda row: (row.day, row.queue, row.user, row.namespace))


def _spans(question: UsageQuestion, now: datetime) -> Iterator[_Span]:
    """A day on which clocks change is a span of its own: it is longer or shorter than others."""
    until = min(question.until, max(now, question.since))
    if "day" not in question.by:
        yield _Span(question.since, until, only=0)
        return
    try:
        zone = ZoneInfo(question.zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise QuestionRefused(f"zone: {question.zone[:64]!r} is not a time zone such as Europe/Berlin") from error
    current: _Span | None = None
    begin = question.since
    while begin < until:
        local = begin.astimezone(zone)
        midnight = datetime.combine(local.date() + timedelta(days=1), datetime.min.time(), zone).astimezone(UTC)
        end, offset = min(midnight, until), local.utcoffset() or timedelta(0)
        is_usual = (end - timedelta(milliseconds=1)).astimezone(zone).utcoffset() == offset
        if current is not None and is_usual and current.offset == offset:
            current = current._replace(end=end)
        else:
            if current is not None:
                yield current
            current = _Span(begin, end, offset)
        if not is_usual:
            yield current._replace(only=local.date().toordinal() - _EPOCH_DAY)
            current = None
        begin = end
    if current is not None:
        yield current


class _SpanSums:
    """The sums of one span by day and group, collected from few statements."""

    def __init__(self, database: Database, question: UsageQuestion, span: _Span) -> None:
        self._database, self._span = database, span
        self._groups = [name for name in question.by if name != "day"]
        self._where = Conditions()
        self._where.see('j."namespace"', question.visible)
        for column in ("namespace", "queue", "user"):
            self._where.equal(f'j."{column}"', column, getattr(question, column))
        self._where.values |= {"begin": milliseconds(span.begin), "until": milliseconds(span.end)}
        if span.only is None:
            self._where.values["offset"] = span.offset // timedelta(milliseconds=1)
        self._has_days = "day" in question.by
        self._found: dict[tuple[Any, ...], dict[str, Any]] = {}

    def rows(self) -> list[UsageRow]:
        self._add_held()
        self._add_waited()
        self._add_submitted()
        for (day, *groups), row in self._found.items():
            row.update(zip(self._groups, groups, strict=True), day=self._day(day))
        return [UsageRow(**row) for row in self._found.values()]

    def _day(self, number: int) -> str:
        return date.fromordinal(_EPOCH_DAY + int(number)).isoformat() if self._has_days else ""

    def _sums(self, day: str, sums: str, tables: str, period: str) -> Iterator[tuple[dict[str, Any], list[int]]]:
        columns = [f'j."{name}"' for name in self._groups]
        lead = ", ".join([f"{day} AS day", *columns])
        by = ", ".join(["1", *columns])
        statement = f"SELECT {lead}, COUNT(*), {sums} FROM {tables} WHERE {period} AND {self._where.text} GROUP BY {by}"
        for row in self._database.query(statement, self._where.values):
            count, values = int(row[len(columns) + 1]), row[len(columns) + 1 :]
            if count:
                yield self._found.setdefault(tuple(row[: len(columns) + 1]), {}), [int(value) for value in values]

    def _add_held(self) -> None:
        """Pods within a day, which are most, by one statement; those of several days are joined with these."""
        first, last = self._span.day_of(_BEGIN), self._span.day_of(f"{_END} - 1")
        if self._span.only is not None:
            self._add_pods(first, ":begin", ":until", _PODS, _HELD_PERIOD)
            return
        self._add_pods(first, ":begin", ":until", _PODS, f"{_HELD_PERIOD} AND {first} = {last}")
        days = f"({' UNION ALL '.join(self._days())}) d"
        period = f"{_HELD_PERIOD} AND {first} <> {last} AND {_BEGIN} < d.e AND {_END} > d.b"
        self._add_pods("d.n", "d.b", "d.e", f"{_PODS} CROSS JOIN {days}", period)

    def _days(self) -> Iterator[str]:
        """Number, beginning and end of each day of the span."""
        begin, end = self._where.values["begin"], self._where.values["until"]
        offset, start = self._where.values["offset"], begin
        while start < end:
            number = (start + offset) // _DAY_MILLISECONDS
            stop = min((number + 1) * _DAY_MILLISECONDS - offset, end)
            yield f"SELECT {number} AS n, {start} AS b, {stop} AS e"
            start = stop

    def _add_pods(self, day: str, begin: str, end: str, tables: str, period: str) -> None:
        """What pods held between two moments, and what those that began then used: how use is spread is not kept."""
        is_part = begin != ":begin"
        held = f"({_smaller(_END, end)} - {_larger(_BEGIN, begin)})" if is_part else f"({_END} - {_BEGIN})"
        began = f'CASE WHEN p."bound" >= {begin} AND p."bound" < {end} THEN'
        amounts = (
            f'{held} * p."cpu_milli"',
            f"{held} * {_MIB} / 1000",
            f'{held} * p."gpu_milli"',
            f'{began} u."milliseconds" * p."cpu_milli" END',
            f'{began} u."cpu_milli_seconds" END',
            f'{began} u."milliseconds" * {_MIB} / 1000 END',
            f'{began} u."memory_mib_seconds" END',
        )
        sums = ", ".join(f"COALESCE(SUM({amount}), 0)" for amount in amounts)
        for row, (count, *found) in self._sums(day, sums, tables, period):
            row["pods"] = row.get("pods", 0) + count
            for (name, parts), amount in zip(_HOURS.items(), found, strict=True):
                row[name] = row.get(name, 0.0) + amount / parts

    def _add_waited(self) -> None:
        sums = 'SUM(j."started" - j."created"), MAX(j."started" - j."created")'
        period = 'j."started" >= :begin AND j."started" < :until'
        for row, (count, total, longest) in self._sums(self._span.day_of('j."started"'), sums, "jobs j", period):
            row.update(started_jobs=count, mean_wait_seconds=total / count / 1000, longest_wait_seconds=longest / 1000)

    def _add_submitted(self) -> None:
        period = 'j."created" >= :begin AND j."created" < :until'
        for row, (count, _) in self._sums(self._span.day_of('j."created"'), "0", "jobs j", period):
            row.update(jobs=count)


def _larger(one: str, other: str) -> str:
    return f"(CASE WHEN {one} > {other} THEN {one} ELSE {other} END)"


def _smaller(one: str, other: str) -> str:
    return f"(CASE WHEN {one} < {other} THEN {one} ELSE {other} END)"
