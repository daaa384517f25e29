"""Who used what: requested amounts times the time in which pods held nodes, by group and day; and how long jobs waited.

Sums are of whole numbers, so that both databases answer alike; they become hours at the end.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from volcano.api.history_records import UsageRow
from volcano.history.columns import milliseconds
from volcano.history.conditions import Conditions
from volcano.history.database import Database
from volcano.history.questions import QuestionRefused, UsageQuestion

_HOUR_MILLISECONDS: Final = 3_600_000
_BEGIN: Final = 'CASE WHEN p."bound" > :begin THEN p."bound" ELSE :begin END'
_END: Final = 'CASE WHEN p."ended" IS NULL OR p."ended" > :until THEN :until ELSE p."ended" END'
_HELD: Final = f"(({_END}) - ({_BEGIN}))"
_MIB: Final = '(p."memory_bytes" / 1048576)'
_PODS: Final = 'pods p JOIN jobs j ON j."uid" = p."job_uid"'


def usage(database: Database, question: UsageQuestion, now: datetime) -> list[UsageRow]:
    groups = [name for name in question.by if name != "day"]
    rows: list[UsageRow] = []
    for day, begin, end in _periods(question):
        rows += _Period(database, question, groups, begin, min(end, max(now, begin))).rows(day)
    return sorted(rows, key=lambda row: (row.day, row.queue, row.user, row.namespace))


def _periods(question: UsageQuestion) -> Iterator[tuple[str, datetime, datetime]]:
    if "day" not in question.by:
        yield "", question.since, question.until
        return
    try:
        zone = ZoneInfo(question.zone)
    except (ZoneInfoNotFoundError, ValueError) as error:
        raise QuestionRefused(f"zone: {question.zone[:64]!r} is not a time zone such as Europe/Berlin") from error
    begin = question.since
    while begin < question.until:
        local = begin.astimezone(zone)
        midnight = datetime.combine(local.date() + timedelta(days=1), datetime.min.time(), zone).astimezone(UTC)
        end = min(midnight, question.until)
        yield local.date().isoformat(), begin, end
        begin = end


class _Period:
    """The sums of one period, each by one statement, collected by group."""

    def __init__(
        self, database: Database, question: UsageQuestion, groups: list[str], begin: datetime, end: datetime
    ) -> None:
        self._database, self._groups = database, groups
        self._where = Conditions()
        self._where.see('j."namespace"', question.visible)
        for column in ("namespace", "queue", "user"):
            self._where.equal(f'j."{column}"', column, getattr(question, column))
        self._where.values |= {"begin": milliseconds(begin), "until": milliseconds(end)}
        self._found: dict[tuple[str, ...], dict[str, Any]] = {}

    def rows(self, day: str) -> list[UsageRow]:
        self._add_held()
        self._add_measured()
        self._add_waited()
        self._add_submitted()
        for key, row in self._found.items():
            row.update(zip(self._groups, key, strict=True), day=day)
        return [UsageRow(**row) for row in self._found.values()]

    def _sums(self, sums: str, tables: str, period: str) -> Iterator[tuple[dict[str, Any], Any]]:
        keys = ", ".join(f'j."{name}"' for name in self._groups)
        lead, by = (f"{keys}, ", f" GROUP BY {keys}") if keys else ("", "")
        statement = f"SELECT {lead}COUNT(*), {sums} FROM {tables} WHERE {period} AND {self._where.text}{by}"
        for row in self._database.query(statement, self._where.values):
            key, count, values = tuple(row[: len(self._groups)]), int(row[len(self._groups)]), row[len(self._groups) :]
            if count:
                yield self._found.setdefault(key, {}), [int(value) for value in values]

    def _add_held(self) -> None:
        sums = f'SUM({_HELD} * p."cpu_milli"), SUM({_HELD} * {_MIB} / 1000), SUM({_HELD} * p."gpu_milli")'
        period = 'p."bound" < :until AND (p."ended" IS NULL OR p."ended" > :begin)'
        for row, (count, cpu, memory, gpu) in self._sums(sums, _PODS, period):
            row.update(
                pods=count,
                cpu_hours=cpu / 1000 / _HOUR_MILLISECONDS,
                memory_gib_hours=memory / 1024 / 3600,
                gpu_hours=gpu / 1000 / _HOUR_MILLISECONDS,
            )

    def _add_measured(self) -> None:
        """Of the pods that began in this period: how their use is spread over days is not kept."""
        sums = (
            f'SUM(u."milliseconds" * p."cpu_milli"), SUM(u."cpu_milli_seconds"), '
            f'SUM(u."milliseconds" * {_MIB} / 1000), SUM(u."memory_mib_seconds")'
        )
        tables = f'{_PODS} JOIN measured u ON u."pod_uid" = p."uid"'
        period = 'p."bound" >= :begin AND p."bound" < :until'
        for row, (_, cpu, used_cpu, memory, used_memory) in self._sums(sums, tables, period):
            row.update(
                measured_cpu_hours=cpu / 1000 / _HOUR_MILLISECONDS,
                used_cpu_hours=used_cpu / 1000 / 3600,
                measured_memory_gib_hours=memory / 1024 / 3600,
                used_memory_gib_hours=used_memory / 1024 / 3600,
            )

    def _add_waited(self) -> None:
        sums = 'SUM(j."started" - j."created"), MAX(j."started" - j."created")'
        period = 'j."started" >= :begin AND j."started" < :until'
        for row, (count, total, longest) in self._sums(sums, "jobs j", period):
            row.update(started_jobs=count, mean_wait_seconds=total / count / 1000, longest_wait_seconds=longest / 1000)

    def _add_submitted(self) -> None:
        for row, (count, _) in self._sums("0", "jobs j", 'j."created" >= :begin AND j."created" < :until'):
            row.update(jobs=count)
