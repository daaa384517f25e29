"""Usage: who used what in a time, from the history, as a table, a chart and CSV; the same figures as `vcctl usage`."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec

from volcano.api.history_records import UsageRow
from volcano.api.quantity import parse_quantity
from volcano.api.times import parse_timestamp
from volcano.cli.past import csv_text
from volcano.cli.usage_report import usage_rows
from volcano.dashboard.charts import Plot, plot
from volcano.dashboard.past_reads import past_queue, past_usage
from volcano.machinery.client import Client

PERIODS: Final = {"1d": 1, "7d": 7, "30d": 30, "90d": 90}
GROUPS: Final = ("queue", "user", "namespace", "day")
MEASURES: Final = ("cpu_hours", "memory_gib_hours", "gpu_hours")
MAX_LINES: Final = 6


class UsagePage(msgspec.Struct, frozen=True, rename="camel"):
    at: datetime
    since: datetime
    until: datetime
    period: str
    by: list[str]
    rows: list[UsageRow]
    header: list[str]
    table: list[list[str]]


def asked_for(query: Mapping[str, str], now: datetime) -> tuple[datetime, datetime, list[str], str]:
    period = query.get("period", "7d") if query.get("period") in PERIODS else "7d"
    until = _moment(query.get("until", "")) or now
    since = _moment(query.get("since", "")) or until - timedelta(days=PERIODS[period])
    by = [name for name in query.get("by", "queue").split(",") if name in GROUPS] or ["queue"]
    return since, until, by, period


def _moment(text: str) -> datetime | None:
    try:
        return parse_timestamp(text) if text else None
    except ValueError:
        return None


async def usage_page(client: Client, query: Mapping[str, str], now: datetime) -> UsagePage:
    since, until, by, period = asked_for(query, now)
    chosen = {name: query.get(name, "") for name in ("namespace", "queue", "user")}
    rows = await past_usage(client, since=since, until=until, by=tuple(by), zone=query.get("zone", "UTC"), **chosen)
    table = usage_rows(rows, by) if rows else [[]]
    return UsagePage(now, since, until, period, by, rows, table[0], [[str(cell) for cell in row] for row in table[1:]])


def usage_csv(page: UsagePage) -> str:
    return csv_text(usage_rows(page.rows, page.by, exact=True))


class UsageChart(msgspec.Struct, frozen=True):
    chart: Plot | None
    label: str


async def usage_chart(client: Client, query: Mapping[str, str], now: datetime) -> UsageChart:
    """CPU hours by day of the largest groups."""
    since, until, by, _ = asked_for(query, now)
    field = next((name for name in by if name != "day"), "queue")
    chosen = {name: query.get(name, "") for name in ("zone", "namespace", "queue", "user")}
    rows = await past_usage(client, since=since, until=until, by=("day", field), **chosen)
    totals: dict[str, float] = {}
    series: dict[str, list[tuple[datetime, float]]] = {}
    for row in rows:
        name = str(getattr(row, field)) or "–"
        totals[name] = totals.get(name, 0.0) + row.cpu_hours
        day = datetime.strptime(row.day, "%Y-%m-%d").replace(tzinfo=UTC)
        series.setdefault(name, []).append((day, row.cpu_hours))
    largest = sorted(totals, key=lambda name: -totals[name])[:MAX_LINES]
    days = [moment for points in series.values() for moment, _ in points]
    if not days:
        return UsageChart(None, "")
    begin, end = min(days), max(days) + timedelta(days=1)
    filled = {name: _filled(dict(series[name]), begin, end) for name in largest}
    return UsageChart(plot(filled, begin, end), f"CPU hours by day and {field}")


def _filled(values: Mapping[datetime, float], begin: datetime, end: datetime) -> list[tuple[datetime, float]]:
    """Days without use count as zero; each day is drawn as a step."""
    points: list[tuple[datetime, float]] = []
    day = begin
    while day < end:
        used = values.get(day, 0.0)
        points += [(day, used), (day + timedelta(days=1), used)]
        day += timedelta(days=1)
    return points


# -- a queue's share -------------------------------------------------------------------------------------------------
class QueueChart(msgspec.Struct, frozen=True):
    name: str
    chart: Plot | None
    label: str


SHARE_PERIOD: Final = timedelta(days=1)


async def queue_chart(client: Client, name: str, resource: str, now: datetime) -> QueueChart:
    """What a queue held and deserved of a resource during the last day; each sample counts until the next."""
    since = now - SHARE_PERIOD
    samples = await past_queue(client, name, since, now)
    series: dict[str, list[tuple[datetime, float]]] = {"allocated": [], "deserved": []}
    for sample in samples:
        for label, amounts in (("allocated", sample.allocated), ("deserved", sample.deserved)):
            if label == "deserved" and resource not in amounts:
                continue
            value = float(parse_quantity(amounts.get(resource, 0))) / (2**30 if resource == "memory" else 1)
            points, at = series[label], max(sample.at, since)
            if points:
                points.append((at, points[-1][1]))
            points.append((at, value))
    for points in series.values():
        if points:
            points.append((now, points[-1][1]))
    unit = "GiB of memory" if resource == "memory" else resource
    drawn = {label: points for label, points in series.items() if points}
    begin = min((points[0][0] for points in drawn.values()), default=since)
    return QueueChart(name, plot(drawn, begin, now) if drawn else None, f"{unit} during the last day")
