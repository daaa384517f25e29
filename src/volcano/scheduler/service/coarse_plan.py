"""A coarse plan of starts: waiting jobs placed by amounts alone, in the order in which they would be served.

It is used for what is too far away, or too much, to be played with the real cycle. With the plugin `easy`, a job
behind the first one starts early only if it ends in time or needs what the first leaves, in sums over all nodes.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Collection, Mapping
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.opening import open_session
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, SeededChance, Status, StoppedTimer, Task

MAX_EVENTS: Final = 50_000
MAX_TRIED_AT_ONE_INSTANT: Final = 32
TOLERANCE: Final = 1e-6


def coarse_starts(
    snapshot: Snapshot,
    config: SchedulerConfig,
    plugins: Mapping[str, type[Plugin]],
    waiting: Collection[str],
    ends: Mapping[str, datetime],
    end_of: Callable[[Job, datetime, datetime], datetime],
) -> dict[str, datetime]:
    """When each waiting job would start, by id; jobs that never fit are left out."""
    session, _ = open_session(snapshot, config, known=plugins, chance=SeededChance(0), timer=StoppedTimer())
    try:
        jobs = [session.jobs[id] for id in waiting if id in session.jobs]
        jobs.sort(key=cmp_to_key(lambda one, other: -1 if session.ask.job_before(one, other) else 1))
        plan = CoarsePlan(session, jobs, ends, end_of, keeps_order="easy" in config.plugin_names)
        plan.run()
        return plan.starts
    finally:
        session.restore()


class GangNeeds:
    """What a waiting gang takes: one row of counts and requests for each kind of task."""

    def __init__(self, session: Session, job: Job) -> None:
        table = session.table
        kinds: dict[int, list[Task]] = {}
        for task in job.with_status(Status.PENDING)[: max(job.min_available - job.counts.ready, 1)]:
            kinds.setdefault(task.shape.number, []).append(task)
        self.parts = [
            (len(tasks), table.vector(tasks[0].request), ~session.nodes.filtered(tasks[0]).aborted)
            for tasks in kinds.values()
        ]
        if not self.parts and job.min_resources is not None:
            count = max(job.min_available, 1)
            self.parts = [(count, table.vector(job.min_resources) / count, np.ones(len(table), dtype=bool))]
        self.total: Column = sum((request * count for count, request, _ in self.parts), np.zeros(len(table.resources)))


class CoarsePlan:
    def __init__(
        self,
        session: Session,
        jobs: list[Job],
        ends: Mapping[str, datetime],
        end_of: Callable[[Job, datetime, datetime], datetime],
        *,
        keeps_order: bool,
    ) -> None:
        self._session, self._keeps_order = session, keeps_order
        self._now = now = session.now
        self._run_seconds: Column = np.array([(end_of(job, now, now) - now).total_seconds() for job in jobs])
        self._free = np.maximum(session.table.future_idle, 0.0)
        self._ends: list[tuple[float, int, Column]] = []  # seconds from now, a number, what is released on each node
        self._jobs = jobs
        self._shapes = [GangNeeds(session, job) for job in jobs]
        self._totals = np.array([shape.total for shape in self._shapes]).reshape(len(jobs), -1)
        self._left = list(range(len(jobs)))
        self.starts: dict[str, datetime] = {}
        for id, end in ends.items():
            job = session.jobs.get(id)
            if job is not None:
                self._release_at((end - self._now).total_seconds(), self._held(job))

    def _held(self, job: Job) -> Column:
        table = self._session.table
        held: Column = np.zeros(self._free.shape)
        for task in job.tasks.values():
            row = table.index.get(task.node) if task.node else None
            if row is not None:
                held[:, row] += table.vector(task.request)
        return held

    def _release_at(self, seconds: float, amounts: Column) -> None:
        heapq.heappush(self._ends, (seconds, len(self._ends) + len(self.starts) * MAX_EVENTS, amounts))

    def run(self) -> None:
        seconds = 0.0
        for _ in range(MAX_EVENTS):
            self._start_what_fits(seconds)
            if not self._left or not self._ends:
                return
            seconds = self._ends[0][0]
            while self._ends and self._ends[0][0] <= seconds + TOLERANCE:
                self._free += heapq.heappop(self._ends)[2]

    def _start_what_fits(self, seconds: float) -> None:
        """The first job whenever it fits; those behind it, in order, if they do not delay it."""
        for _ in range(MAX_TRIED_AT_ONE_INSTANT):  # as long as the first ones start
            if not self._left or not self._start(self._left[0], seconds):
                break
            del self._left[0]
        if not self._left:
            return
        left = np.array(self._left[1:], dtype=np.intp)
        fits = np.all(self._totals[left] <= self._free.sum(axis=1) + TOLERANCE, axis=1)
        shadow, spare = self._shadow(self._left[0]) if self._keeps_order else (float("inf"), np.zeros(0))
        in_time = seconds + self._run_seconds[left] <= shadow + TOLERANCE
        if self._keeps_order:
            fits &= in_time | np.all(self._totals[left] <= spare + TOLERANCE, axis=1)
        started = set[int]()
        for place in np.flatnonzero(fits)[:MAX_TRIED_AT_ONE_INSTANT]:
            index = int(left[place])
            if not in_time[place] and np.any(self._totals[index] > spare + TOLERANCE):
                continue  # one before it took what was left
            if self._start(index, seconds):
                started.add(index)
                spare = spare if in_time[place] else spare - self._totals[index]
        self._left = [index for index in self._left if index not in started]

    def _shadow(self, head: int) -> tuple[float, Column]:
        """When the first job would fit, by sums, and what is then left beside it."""
        room, wanted = self._free.sum(axis=1), self._totals[head]
        if np.all(wanted <= room + TOLERANCE):  # it does not fit for its shape
            return (self._ends[0][0] if self._ends else float("inf")), room - wanted
        for end, _, amounts in sorted(self._ends, key=lambda each: each[:2]):
            room = room + amounts.sum(axis=1)
            if np.all(wanted <= room + TOLERANCE):
                return end, room - wanted
        return float("inf"), room

    def _start(self, index: int, seconds: float) -> bool:
        taken = np.zeros_like(self._free)
        for count, request, nodes in self._shapes[index].parts:
            asked = request > 0.0
            room = self._free - taken
            if asked.any():
                copies = np.floor((room[asked] + TOLERANCE) / request[asked][:, None]).min(axis=0)
            else:
                copies = np.full(room.shape[1], float(count))
            copies = np.where(nodes, np.clip(copies, 0.0, float(count)), 0.0)
            before = np.concatenate(([0.0], np.cumsum(copies)[:-1]))
            if before[-1] + copies[-1] < count:
                return False
            taken += request[:, None] * np.clip(count - before, 0.0, copies)[None, :]
        self._free -= taken
        self.starts[self._jobs[index].id] = self._now + timedelta(seconds=seconds)
        self._release_at(seconds + float(self._run_seconds[index]), taken)
        return True
