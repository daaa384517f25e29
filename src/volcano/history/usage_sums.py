"""Sums over the records of a time: what pods held and used, and how long jobs waited, by group and day.

Sums are of whole numbers, so that both databases answer alike; they become hours at the end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime, timedelta
from typing import Any, Final, NamedTuple, TypeAlias

from volcano.api.history_records import UsageRow
from volcano.history.columns import EPOCH, milliseconds
from volcano.history.conditions import Conditions
from volcano.history.database import Database
from volcano.history.questions import UsageQuestion

DAY_MILLISECONDS: Final = 86_400_000
EPOCH_DAY: Final = EPOCH.toordinal()
_HOUR_MILLISECONDS: Final = 3_600_000
_BEGIN: Final = '(CASE WHEN p."bound" > :begin THEN p."bound" ELSE :begin END)'
_END: Final = '(CASE WHEN p."ended" IS NULL OR p."ended" > :until THEN :until ELSE p."ended" END)'
_MIB: Final = '(p."memory_bytes" / 1048576)'
_PODS: Final = 'pods p JOIN jobs j ON j."uid" = p."job_uid" LEFT JOIN measured u ON u."pod_uid" = p."uid"'
_HELD_PERIOD: Final = 'p."bound" < :until AND (p."ended" IS NULL OR p."ended" > :begin)'

HOURS: Final = {
    "cpu_hours": 1000 * _HOUR_MILLISECONDS,
    "memory_gib_hours": 1024 * 3600,
    "gpu_hours": 1000 * _HOUR_MILLISECONDS,
    "measured_cpu_hours": 1000 * _HOUR_MILLISECONDS,
    "used_cpu_hours": 1000 * 3600,
    "measured_memory_gib_hours": 1024 * 3600,
    "used_memory_gib_hours": 1024 * 3600,
}
"""The sums over pods, in the order of their statement, and what each is divided by."""
MEASURED_SUMS: Final = ("measured_cpu_hours", "used_cpu_hours", "measured_memory_gib_hours", "used_memory_gib_hours")

Totals: TypeAlias = dict[str, int]
Found: TypeAlias = dict[tuple[Any, ...], Totals]
"""The number of the day, or 0, and the values of the groups → the sums by name."""


class UsageSpan(NamedTuple):
    """A time within which each local day has 24 hours at the same offset from UTC.

    `only` is the number of the one day of a span on which clocks change, and 0 where the report is not by day.
    """

    begin: datetime
    end: datetime
    offset: timedelta = timedelta(0)
    only: int | None = None

    def day_of(self, moment: str) -> str:
        """The number of the local day of an SQL expression."""
        return f"(({moment}) + :offset) / {DAY_MILLISECONDS}" if self.only is None else str(self.only)


def conditions_of(question: UsageQuestion) -> Conditions:
    """Which jobs `j` the question is about."""
    where = Conditions()
    where.see('j."namespace"', question.visible)
    for column in ("namespace", "queue", "user"):
        where.equal(f'j."{column}"', column, getattr(question, column))
    return where


def add(found: Found, key: tuple[Any, ...], **amounts: int) -> None:
    totals = found.setdefault(key, {})
    for name, amount in amounts.items():
        totals[name] = max(totals.get(name, 0), amount) if name == "longest" else totals.get(name, 0) + amount


def usage_row(key: tuple[Any, ...], groups: Sequence[str], totals: Totals, *, has_days: bool) -> UsageRow:
    day, *values = key
    started = totals.get("started", 0)
    shown: dict[str, Any] = dict(zip(groups, values, strict=True))
    shown |= {name: totals.get(name, 0) / parts for name, parts in HOURS.items()}
    return UsageRow(
        **shown,
        day=date.fromordinal(EPOCH_DAY + int(day)).isoformat() if has_days else "",
        pods=totals.get("pods", 0),
        jobs=totals.get("jobs", 0),
        started_jobs=started,
        mean_wait_seconds=totals.get("waited", 0) / started / 1000 if started else 0.0,
        longest_wait_seconds=totals.get("longest", 0) / 1000,
    )


class SpanSums:
    """Of the records of one span, by few statements.

    `ended_only`: what pods used is counted once they have ended, when it does not change any more.
    """

    def __init__(
        self, database: Database, question: UsageQuestion, span: UsageSpan, found: Found, *, ended_only: bool = False
    ) -> None:
        self._database, self._span, self._found, self._ended_only = database, span, found, ended_only
        self._columns = [f'j."{name}"' for name in question.by if name != "day"]
        self._where = conditions_of(question)
        self._where.values |= {"begin": milliseconds(span.begin), "until": milliseconds(span.end)}
        if span.only is None:
            self._where.values["offset"] = span.offset // timedelta(milliseconds=1)

    def add(self, *, with_earlier_pods: bool = True) -> None:
        """`with_earlier_pods`: those that held nodes before the span are counted among its pods."""
        self._add_held(with_earlier_pods=with_earlier_pods)
        self._add_waited()
        self._add_submitted()

    def add_use_of_living(self) -> None:
        """What pods used that have not ended, of those that were bound within the span."""
        tables = _PODS.replace("LEFT JOIN measured", "JOIN measured")
        period = 'p."ended" IS NULL AND p."bound" >= :begin AND p."bound" < :until'
        sums = ", ".join(f"COALESCE(SUM({amount}), 0)" for amount in _used())
        for key, (_, *amounts) in self._sums(self._span.day_of('p."bound"'), sums, tables, period):
            add(self._found, key, **dict(zip(MEASURED_SUMS, amounts, strict=True)))

    def _sums(self, day: str, sums: str, tables: str, period: str) -> Iterator[tuple[tuple[Any, ...], list[int]]]:
        lead = ", ".join([f"{day} AS day", *self._columns])
        by = ", ".join(["1", *self._columns])
        statement = f"SELECT {lead}, COUNT(*), {sums} FROM {tables} WHERE {period} AND {self._where.text} GROUP BY {by}"
        width = len(self._columns) + 1
        for row in self._database.query(statement, self._where.values):
            if int(row[width]):
                yield (int(row[0]), *row[1:width]), [int(value) for value in row[width:]]

    def _add_held(self, *, with_earlier_pods: bool) -> None:
        """Pods within a day, which are most, by one statement; those of several days are joined with these."""
        first, last = self._span.day_of(_BEGIN), self._span.day_of(f"{_END} - 1")
        if self._span.only is not None:
            self._add_pods(first, ":begin", ":until", _PODS, _HELD_PERIOD, with_earlier_pods=with_earlier_pods)
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
            number = (start + offset) // DAY_MILLISECONDS
            stop = min((number + 1) * DAY_MILLISECONDS - offset, end)
            yield f"SELECT {number} AS n, {start} AS b, {stop} AS e"
            start = stop

    def _add_pods(
        self, day: str, begin: str, end: str, tables: str, period: str, *, with_earlier_pods: bool = True
    ) -> None:
        """What pods held between two moments, and what those that began then used: how use is spread is not kept."""
        is_part = begin != ":begin"
        held = f"({_smaller(_END, end)} - {_larger(_BEGIN, begin)})" if is_part else f"({_END} - {_BEGIN})"
        has_begun = f'p."bound" >= {begin} AND p."bound" < {end}'
        counts = f'{has_begun} AND p."ended" IS NOT NULL' if self._ended_only else has_begun
        amounts = (
            f"CASE WHEN {has_begun} THEN 1 END",
            f'{held} * p."cpu_milli"',
            f"{held} * {_MIB} / 1000",
            f'{held} * p."gpu_milli"',
            *(f"CASE WHEN {counts} THEN {amount} END" for amount in _used()),
        )
        sums = ", ".join(f"COALESCE(SUM({amount}), 0)" for amount in amounts)
        for key, (count, began, *found) in self._sums(day, sums, tables, period):
            pods = count if with_earlier_pods else began
            add(self._found, key, pods=pods, began=began, **dict(zip(HOURS, found, strict=True)))

    def _add_waited(self) -> None:
        sums = 'SUM(j."started" - j."created"), MAX(j."started" - j."created")'
        period = 'j."started" >= :begin AND j."started" < :until'
        for key, (count, total, longest) in self._sums(self._span.day_of('j."started"'), sums, "jobs j", period):
            add(self._found, key, started=count, waited=total, longest=longest)

    def _add_submitted(self) -> None:
        period = 'j."created" >= :begin AND j."created" < :until'
        for key, (count, _) in self._sums(self._span.day_of('j."created"'), "0", "jobs j", period):
            add(self._found, key, jobs=count)


def _used() -> tuple[str, ...]:
    """In the order of MEASURED_SUMS."""
    return (
        'u."milliseconds" * p."cpu_milli"',
        'u."cpu_milli_seconds"',
        f'u."milliseconds" * {_MIB} / 1000',
        'u."memory_mib_seconds"',
    )


def _larger(one: str, other: str) -> str:
    return f"(CASE WHEN {one} > {other} THEN {one} ELSE {other} END)"


def _smaller(one: str, other: str) -> str:
    return f"(CASE WHEN {one} < {other} THEN {one} ELSE {other} END)"
