"""`vcctl usage`: CPU-, memory- and GPU-hours, waits and efficiency by queue, user, namespace, day, as sreport does."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.history_records import UsageRow
from volcano.cli.command_line import Called, say
from volcano.cli.failures import Failed
from volcano.cli.formats import NONE_FOUND
from volcano.cli.past import csv_text, elapsed, moment, past_connection, present, table
from volcano.machinery.local_zone import local_zone

GROUPS: Final = ("day", "queue", "user", "namespace")
OUTPUTS: Final = ("", "csv", "json")
FIGURES: Final = (
    "JOBS",
    "PODS",
    "CPU HOURS",
    "MEMORY GIB HOURS",
    "GPU HOURS",
    "MEAN WAIT",
    "LONGEST WAIT",
    "CPU USED",
    "MEMORY USED",
)


def usage(called: Called) -> None:
    values, now = called.values, present()
    by = asked_groups(str(values.get("by") or "queue"))
    form = str(values.get("output") or "")
    if form not in OUTPUTS:
        raise Failed(f"unable to match a printer for the output format {form!r}, allowed: csv, json")
    rows = past_connection(called).usage(
        by=",".join(by),
        since=moment(str(values.get("since") or "1d"), now),
        until=moment(str(values.get("until") or "now"), now),
        namespace=str(values.get("namespace") or ""),
        queue=str(values.get("queue") or ""),
        user=str(values.get("user") or ""),
        zone=report_zone(str(values.get("zone") or "")),
    )
    if form == "json":
        say(msgspec.json.format(msgspec.json.encode(rows), indent=2).decode())
    elif form == "csv":
        say(csv_text(usage_rows(rows, by, exact=True)))
    else:
        say(table(usage_rows(rows, by)) if rows else NONE_FOUND)


def asked_groups(text: str) -> list[str]:
    by = [name.strip() for name in text.split(",") if name.strip()]
    unknown = [name for name in by if name not in GROUPS]
    if unknown or not by:
        raise Failed(f"by: {', '.join(unknown) or 'nothing'} is not one of {', '.join(GROUPS)}")
    return by


def report_zone(asked: str) -> str:
    """The zone in which days begin: as asked, or this machine's."""
    return asked or str(getattr(local_zone(), "key", "")) or "UTC"


def usage_rows(rows: list[UsageRow], by: list[str], *, exact: bool = False) -> list[list[Any]]:
    """`exact`: plain numbers for programs; otherwise rounded and with units."""
    return [[*(name.upper() for name in by), *FIGURES], *([*_keys(row, by), *_figures(row, exact)] for row in rows)]


def _keys(row: UsageRow, by: list[str]) -> list[str]:
    return [getattr(row, name) or "-" for name in by]


def _figures(row: UsageRow, exact: bool) -> list[Any]:
    hours = (row.cpu_hours, row.memory_gib_hours, row.gpu_hours)
    waits = (row.mean_wait_seconds, row.longest_wait_seconds)
    shares = (row.cpu_efficiency, row.memory_efficiency)
    if exact:
        return [row.jobs, row.pods, *hours, *waits, *("" if share is None else share for share in shares)]
    return [
        row.jobs,
        row.pods,
        *(f"{each:.3f}" for each in hours),
        *(elapsed(timedelta(seconds=each)) for each in waits),
        *("-" if share is None else f"{share:.0%}" for share in shares),
    ]
