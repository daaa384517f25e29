"""The list of jobs: filters, order, groups and pages, all of them in the address."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from volcano.api.quantity import Quantity, parse_quantity
from volcano.dashboard.job_rows import STATES, JobRow
from volcano.dashboard.view import CallerView

PAGE_SIZES: Final = (25, 50, 100)
DEFAULT_SIZE: Final = 50
MAX_GROUPS: Final = 200
MAX_CHOICES: Final = 200
MAX_TEXT_CHARACTERS: Final = 200
LABEL_GROUP: Final = "label:"
NONE: Final = "(none)"
NEVER: Final = timedelta(0)
FILTERS: Final = ("q", "state", "namespace", "queue", "user", "cause", "label")

ORDERS: Final[Mapping[str, Callable[[JobRow, datetime], Any]]] = {
    "created": lambda row, now: row.created.timestamp() if row.created else 0.0,
    "name": lambda row, now: (row.name, row.namespace),
    "namespace": lambda row, now: (row.namespace, row.name),
    "queue": lambda row, now: (row.queue, row.name),
    "user": lambda row, now: (row.user, row.name),
    "state": lambda row, now: (STATES.index(row.state), row.name),
    "pods": lambda row, now: row.replicas,
    "waited": lambda row, now: row.waited(now) or NEVER,
    "ran": lambda row, now: row.ran(now) or NEVER,
    "cpu": lambda row, now: amount(row, "cpu"),
}


class JobGroup(msgspec.Struct, frozen=True, rename="camel"):
    value: str
    jobs: int
    states: dict[str, int]


class JobsPage(msgspec.Struct, frozen=True, rename="camel"):
    """`states` counts what all other filters leave; `total` what all filters leave."""

    at: datetime
    rows: list[JobRow]
    total: int
    page: int
    pages: int
    size: int
    sort: str
    descending: bool
    states: dict[str, int]
    groups: list[JobGroup]
    group: str
    choices: dict[str, list[str]]


async def jobs_page(view: CallerView, query: Mapping[str, str]) -> JobsPage:
    return select(await view.job_rows(), query, view.now)


def select(rows: list[JobRow], query: Mapping[str, str], now: datetime) -> JobsPage:
    """The rows that the filters leave, ordered, and the page of them that is asked for."""
    choices = {
        "namespace": _choices(row.namespace for row in rows),
        "queue": _choices(row.queue for row in rows),
        "user": _choices(row.user for row in rows),
    }
    found = [row for row in rows if _matches(row, query)]
    states = Counter(row.state for row in found)
    if query.get("state"):
        wanted = query["state"]
        found = [row for row in found if wanted in (row.state, row.phase)]
    sort = query.get("sort", "-created")
    order, descending = ORDERS.get(sort.lstrip("-"), ORDERS["created"]), sort.startswith("-")
    found.sort(key=lambda row: order(row, now), reverse=descending)
    size = _number(query.get("size"), DEFAULT_SIZE, max(PAGE_SIZES))
    pages = max(1, -(-len(found) // size))
    page = min(_number(query.get("page"), 1, pages), pages)
    group = query.get("group", "")
    return JobsPage(
        now,
        found[(page - 1) * size : page * size],
        len(found),
        page,
        pages,
        size,
        sort.lstrip("-"),
        descending,
        {state: states[state] for state in STATES},
        grouped(found, group) if group else [],
        group,
        choices,
    )


def grouped(rows: Iterable[JobRow], by: str) -> list[JobGroup]:
    """Largest first."""
    counts: dict[str, Counter[str]] = {}
    for row in rows:
        counts.setdefault(group_value(row, by), Counter())[row.state] += 1
    found = [JobGroup(value, each.total(), dict(each)) for value, each in counts.items()]
    return sorted(found, key=lambda each: (-each.jobs, each.value))[:MAX_GROUPS]


def group_value(row: JobRow, by: str) -> str:
    if by.startswith(LABEL_GROUP):
        return row.labels.get(by.removeprefix(LABEL_GROUP)) or NONE
    known = {"queue": row.queue, "user": row.user, "state": row.state, "namespace": row.namespace, "cause": row.cause}
    return known.get(by) or NONE


def amount(row: JobRow, resource: str) -> Quantity:
    return parse_quantity(row.requests.get(resource, 0))


def _matches(row: JobRow, query: Mapping[str, str]) -> bool:
    for field in ("namespace", "queue", "user", "cause"):
        wanted = query.get(field)
        if wanted and wanted != (getattr(row, field) or NONE):
            return False
    text = query.get("q", "")[:MAX_TEXT_CHARACTERS].strip().lower()
    if text and text not in row.name.lower() and text not in row.reason.lower() and text not in row.user.lower():
        return False
    label = query.get("label", "")
    if label:
        name, equals, value = label.partition("=")
        if name not in row.labels or (equals and row.labels[name] != value):
            return False
    return True


def _choices(values: Iterable[str]) -> list[str]:
    return sorted({*values} - {""})[:MAX_CHOICES]


def _number(text: str | None, default: int, largest: int) -> int:
    return min(max(1, int(text)), largest) if text and text.isascii() and text.isdigit() else min(default, largest)
