"""When running tasks are expected to end: their start plus the estimate, doubled as often as it proved too short."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column, NodeTable, Rows
from volcano.scheduler.model import Job, Status, Task

RUNNING_STATUSES: Final = (Status.RUNNING, Status.BOUND, Status.BINDING, Status.ALLOCATED, Status.PIPELINED)
"""Also tasks that have only been promised room: they start soon, and will end."""
MAX_DOUBLINGS: Final = 40


@dataclass(slots=True, frozen=True, eq=False)
class Releases:
    """Resources that running tasks will release, in the order of their expected ends."""

    seconds: Column  # expected end, in seconds after `now`; ascending
    rows: Rows  # the node's row
    amounts: Column  # one row for each release, one column for each resource of the table
    owners: Rows  # whose it is: an index into `jobs`
    jobs: Sequence[Job] = ()
    extensions: Mapping[str, int] = field(default_factory=dict)  # job → how often its estimate proved too short

    def __len__(self) -> int:
        return len(self.seconds)

    def among(self, rows: Rows, nodes: int) -> Releases:
        """Those on some nodes, whose rows are then counted anew; `nodes` is how many there are in all."""
        places = np.full(nodes, -1, dtype=np.intp)
        places[rows] = np.arange(len(rows))
        kept = np.flatnonzero(places[self.rows] >= 0)
        return Releases(self.seconds[kept], places[self.rows[kept]], self.amounts[kept], self.owners[kept], self.jobs)

    def node_empties(self, nodes: int) -> Column:
        """For each node, when the last of these tasks has left it; infinite for a node that has none of them."""
        last = np.full(nodes, -np.inf)
        np.maximum.at(last, self.rows, self.seconds)
        return np.where(np.isneginf(last), np.inf, last)

    def jobs_before(self, seconds: float, rows: Rows) -> list[str]:
        """The jobs that leave these nodes until then, the last to end first."""
        until = int(np.searchsorted(self.seconds, seconds, side="right"))
        on_nodes = np.isin(self.rows[:until], rows)
        return list(dict.fromkeys(self.jobs[owner].id for owner in self.owners[:until][on_nodes][::-1]))


def expected_end(started: datetime, estimate: timedelta, now: datetime) -> datetime:
    """An estimate that has run out is doubled until the end lies in the future."""
    return _doubled(started, estimate, now)[0]


def _doubled(started: datetime, estimate: timedelta, now: datetime) -> tuple[datetime, int]:
    """The expected end, and how often the estimate was doubled for it."""
    end = started + estimate
    for doublings in range(MAX_DOUBLINGS):
        if end > now:
            return end, doublings
        estimate = max(estimate * 2, timedelta(seconds=1))
        end = started + estimate
    return now, MAX_DOUBLINGS


def started_at(task: Task, now: datetime) -> datetime:
    return task.pod.status.start_time or now


def releases(jobs: Iterable[Job], table: NodeTable, *, now: datetime, default: timedelta) -> Releases:
    """What every running task of these jobs will release, and when."""
    seconds: list[float] = []
    rows: list[int] = []
    amounts: list[Column] = []
    owners: list[int] = []
    known: list[Job] = []
    extensions: dict[str, int] = {}
    for job in jobs:
        if not job.tasks:
            continue
        estimate = job.expected_run_time(default)
        ends: dict[datetime, float] = {}  # pods of a gang mostly start at one time
        for status in RUNNING_STATUSES:
            for task in job.by_status[status].values():
                row = table.index.get(task.node)
                if row is None:
                    continue
                started = started_at(task, now)
                if started not in ends:
                    end, doublings = _doubled(started, estimate, now)
                    ends[started] = (end - now).total_seconds()
                    if doublings:
                        extensions[job.id] = max(doublings, extensions.get(job.id, 0))
                seconds.append(ends[started])
                rows.append(row)
                amounts.append(table.vector(task.request))
                owners.append(len(known))
        if ends:
            known.append(job)
    if not seconds:
        none = np.zeros(0, dtype=np.intp)
        return Releases(np.zeros(0), none, np.zeros((0, len(table.resources))), none)
    order = np.argsort(np.array(seconds), kind="stable")
    return Releases(
        np.array(seconds)[order],
        np.array(rows, dtype=np.intp)[order],
        np.array(amounts)[order],
        np.array(owners, dtype=np.intp)[order],
        known,
        extensions,
    )
