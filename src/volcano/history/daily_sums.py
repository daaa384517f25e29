"""Sums of whole past days, kept by namespace, queue and user, so that a report of months reads few rows.

A day is a day of UTC. Its sums are exact: the writer that changes a record of a day drops the sums of that day in the
same transaction (history.changed_days), and the next upkeep makes them again. What pods use is added to for as long as
they run, so only pods that have ended count in kept sums; living ones are read from their records.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from volcano.history.columns import milliseconds, moment_of, quoted
from volcano.history.database import Database
from volcano.history.questions import UsageQuestion
from volcano.history.usage_sums import (
    DAY_MILLISECONDS,
    HOURS,
    Found,
    SpanSums,
    UsageSpan,
    add,
    conditions_of,
)

GROUPS: Final = ("namespace", "queue", "user")
SUMS: Final = ("pods", "began", *HOURS, "started", "waited", "longest", "jobs")
MAX_DAYS_PER_UPKEEP: Final = 120
SETTLED_AFTER: Final = timedelta(hours=1)
"""After midnight: what is recorded late would drop the day's sums again."""


class DayRange(NamedTuple):
    """Days by number, `last` excluded."""

    first: int
    last: int

    @property
    def begin(self) -> datetime:
        return moment_of(self.first * DAY_MILLISECONDS)

    @property
    def end(self) -> datetime:
        return moment_of(self.last * DAY_MILLISECONDS)


def kept_days(database: Database, begin: datetime, end: datetime) -> list[DayRange]:
    """The days within a time whose sums are kept; neighbours are one range."""
    first, last = -(-milliseconds(begin) // DAY_MILLISECONDS), milliseconds(end) // DAY_MILLISECONDS
    found: list[DayRange] = []
    rows = database.query(
        'SELECT "day" FROM summed_days WHERE "day" >= :first AND "day" < :last ORDER BY "day"',
        {"first": first, "last": last},
    )
    for (day,) in rows:
        if found and found[-1].last == day:
            found[-1] = found[-1]._replace(last=day + 1)
        else:
            found.append(DayRange(day, day + 1))
    return found


def add_kept(
    database: Database, question: UsageQuestion, days: DayRange, found: Found, *, with_earlier_pods: bool
) -> None:
    """`with_earlier_pods`: those that held nodes before are counted among the pods; by day, on each day anew."""
    has_days = "day" in question.by
    groups = [f'j."{name}"' for name in question.by if name != "day"]
    if has_days:
        pods = 'j."pods"'
    else:
        first = f'CASE WHEN j."day" = {days.first} THEN j."pods" ELSE j."began" END'
        pods = first if with_earlier_pods else 'j."began"'
    sums = [f"SUM({pods})", *(f'{"MAX" if name == "longest" else "SUM"}(j."{name}")' for name in SUMS[1:])]
    lead = ['j."day"' if has_days else "0", *groups]
    where = conditions_of(question)
    where.add('j."day" >= :first AND j."day" < :last', first=days.first, last=days.last)
    by = ", ".join(["1", *groups])
    rows = database.query(
        f"SELECT {', '.join([*lead, *sums])} FROM daily_sums j WHERE {where.text} GROUP BY {by}", where.values
    )
    for row in rows:
        amounts = {name: int(amount or 0) for name, amount in zip(SUMS, row[len(lead) :], strict=True)}
        if any(amounts.values()):
            add(found, (int(row[0]), *row[1 : len(lead)]), **amounts)
    span = UsageSpan(days.begin, days.end, only=None if has_days else 0)
    SpanSums(database, question, span, found).add_use_of_living()


def sum_days(database: Database, now: datetime) -> int:
    """Make the sums that are missing, the newest days first; how many days were summed."""
    oldest = database.query('SELECT MIN("created") FROM jobs')[0][0]
    if oldest is None:
        return 0
    first, last = oldest // DAY_MILLISECONDS, milliseconds(now - SETTLED_AFTER) // DAY_MILLISECONDS
    rows = database.query('SELECT "day" FROM summed_days WHERE "day" >= :first', {"first": first})
    there = {row[0] for row in rows}
    missing = [day for day in range(last - 1, first - 1, -1) if day not in there][:MAX_DAYS_PER_UPKEEP]
    for day in missing:
        _sum_day(database, day)
    return len(missing)


def _sum_day(database: Database, day: int) -> None:
    days = DayRange(day, day + 1)
    question = UsageQuestion(since=days.begin, until=days.end, by=GROUPS)
    with database.transaction():
        found: Found = {}
        SpanSums(database, question, UsageSpan(days.begin, days.end, only=day), found, ended_only=True).add()
        columns = ("day", *GROUPS, *SUMS)
        statement = f"INSERT INTO daily_sums ({quoted(columns)}) VALUES ({', '.join(f':{name}' for name in columns)})"
        database.execute_many(
            statement,
            [
                {**dict.fromkeys(SUMS, 0), **totals, **dict(zip(("day", *GROUPS), key, strict=True))}
                for key, totals in found.items()
            ],
        )
        database.execute("INSERT INTO summed_days VALUES (:day)", {"day": day})


def newest_kept(database: Database) -> int:
    """The number of the newest day whose sums are kept; -1: none are."""
    newest = database.query('SELECT MAX("day") FROM summed_days')[0][0]
    return -1 if newest is None else int(newest)


def drop_days(database: Database, days: Iterable[int] | DayRange) -> None:
    """Inside the transaction that changes records of these days."""
    ranges: Iterator[DayRange] = iter((days,)) if isinstance(days, DayRange) else (DayRange(d, d + 1) for d in days)
    for each in ranges:
        for table in ("daily_sums", "summed_days"):
            database.execute(
                f'DELETE FROM {table} WHERE "day" >= :first AND "day" < :last',
                {"first": each.first, "last": each.last},
            )
