"""When running tasks are expected to end: their start plus the estimate, doubled as often as it proved too short."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from volcano.scheduler.core.node_table import Column, NodeTable, Rows
from volcano.scheduler.model import Job, Status, Task

RUNNING_STATUSES = (Status.RUNNING, Status.BOUND, Status.BINDING, Status.ALLOCATED)
MAX_DOUBLINGS = 40


@dataclass(slots=True, frozen=True, eq=False)
class Releases:
    """Resources that running tasks will release, in the order of their expected ends."""

    seconds: Column  # expected end, in seconds after `now`; ascending
    rows: Rows  # the node's row
    amounts: Column  # one row for each release, one column for each resource of the table

    def __len__(self) -> int:
        return len(self.seconds)


def expected_end(started: datetime, estimate: timedelta, now: datetime) -> datetime:
    """An estimate that has run out is doubled until the end lies in the future."""
    end = started + estimate
    for _ in range(MAX_DOUBLINGS):
        if end > now:
            return end
        estimate = max(estimate * 2, timedelta(seconds=1))
        end = started + estimate
    return now


def started_at(task: Task, now: datetime) -> datetime:
    return task.pod.status.start_time or now


def releases(jobs: Iterable[Job], table: NodeTable, *, now: datetime, default: timedelta) -> Releases:
    """What every running task of these jobs will release, and when."""
    seconds: list[float] = []
    rows: list[int] = []
    amounts: list[Column] = []
    for job in jobs:
        if not job.tasks:
            continue
        estimate = job.estimate or default
        ends: dict[datetime, float] = {}  # pods of a gang mostly start at one time
        for status in RUNNING_STATUSES:
            for task in job.by_status[status].values():
                row = table.index.get(task.node)
                if row is None:
                    continue
                started = started_at(task, now)
                if started not in ends:
                    ends[started] = (expected_end(started, estimate, now) - now).total_seconds()
                seconds.append(ends[started])
                rows.append(row)
                amounts.append(table.vector(task.request))
    if not seconds:
        return Releases(np.zeros(0), np.zeros(0, dtype=np.intp), np.zeros((0, len(table.resources))))
    order = np.argsort(np.array(seconds), kind="stable")
    return Releases(np.array(seconds)[order], np.array(rows, dtype=np.intp)[order], np.array(amounts)[order])
