"""Jobs from an export of a system's own history: JSON lines, one finished or running job each (docs/simulator.md).

`{"name", "submit", "start", "end", "queue", "user", "priority", "minAvailable", "estimate", "roles": [{"name",
"count", "requests"}]}`; times are RFC 3339 texts or seconds. The first submission is the time 0 of a simulation.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

import msgspec

from volcano.api.quantity import QuantityError, parse_quantity
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.workloads.swf import UnreadableLines, WorkloadTrace

MAX_LINE_BYTES: Final = 1024 * 1024


class HistoryRole(msgspec.Struct, rename="camel"):
    name: str
    count: int
    requests: dict[str, str] = {}
    node_selector: dict[str, str] = {}


class HistoryJob(msgspec.Struct, rename="camel"):
    """One line. `end` is missing while the job runs, `start` while it waits."""

    name: str
    submit: datetime | float
    roles: list[HistoryRole]
    start: datetime | float | None = None
    end: datetime | float | None = None
    namespace: str = ""
    queue: str = "default"
    user: str = ""
    priority_class_name: str = ""
    min_available: int = 0
    estimate: float | None = None  # seconds


def read_history(path: Path, *, first: int = 0, count: int | None = None) -> WorkloadTrace:
    unreadable = UnreadableLines()
    with path.open("rb") as lines:
        found = list(_jobs(lines, unreadable))
    begin = min((_seconds(line.submit) for line in found), default=0.0)
    chosen = found[first:] if count is None else found[first : first + count]
    return WorkloadTrace([_job(line, begin) for line in chosen], unreadable)


def _jobs(lines: Iterable[bytes], unreadable: UnreadableLines) -> Iterator[HistoryJob]:
    names: set[str] = set()
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found = _line(line)
        except (ValueError, msgspec.MsgspecError, RecursionError) as error:
            unreadable.add(number, str(error))
            continue
        if found.name in names:
            unreadable.add(number, f"{found.name} is already there")
            continue
        names.add(found.name)
        yield found


def _line(line: bytes) -> HistoryJob:
    if len(line) > MAX_LINE_BYTES:
        raise ValueError(f"longer than {MAX_LINE_BYTES} bytes")
    found = msgspec.json.decode(line, type=HistoryJob)
    if found.start is None or found.end is None:
        raise ValueError("start or end is not given: how long the job runs is not known")
    if not _seconds(found.submit) <= _seconds(found.start) <= _seconds(found.end):
        raise ValueError("submit, start and end are not in this order")
    if not found.roles or any(role.count < 1 for role in found.roles):
        raise ValueError("roles: every job has at least one, of at least one pod")
    for role in found.roles:
        for name, text in role.requests.items():
            try:
                parse_quantity(text)
            except QuantityError as error:
                raise ValueError(f"roles: {role.name}: {name}: {error}") from error
    return found


def _job(line: HistoryJob, begin: float) -> WorkloadJob:
    assert line.start is not None
    assert line.end is not None
    return WorkloadJob(
        name=line.name,
        submit=_seconds(line.submit) - begin,
        run_time=_seconds(line.end) - _seconds(line.start),
        roles=tuple(Role(role.name, role.count, role.requests, spec=_selector(role)) for role in line.roles),
        estimate=line.estimate,
        queue=line.queue or "default",
        user=line.user,
        priority_class=line.priority_class_name,
        min_available=line.min_available,
    )


def _selector(role: HistoryRole) -> dict[str, Any]:
    return {"nodeSelector": role.node_selector} if role.node_selector else {}


def _seconds(moment: datetime | float | None) -> float:
    if isinstance(moment, datetime):
        return moment.timestamp()
    return float(moment or 0.0)
