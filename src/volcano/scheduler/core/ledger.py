"""Ledger: what the jobs of each queue hold and wait for, summed, and kept between cycles.

Only jobs that changed are counted anew. Amounts are whole numbers, so adding and withdrawing leaves no trace.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from volcano.scheduler.core.shares import elastic, inqueue_minimum, spoken_for
from volcano.scheduler.model import Job, Resources, Status


@dataclass(slots=True)
class Sums:
    """Of one job, or of all jobs of a queue."""

    jobs: int = 0
    allocated: Resources = field(default_factory=Resources)
    request: Resources = field(default_factory=Resources)
    inqueue: Resources = field(default_factory=Resources)  # what jobs let in still wait for
    elastic: Resources = field(default_factory=Resources)  # what jobs hold beyond their minimum
    minimum: Resources = field(default_factory=Resources)  # the minimums of jobs let in, as overcommit counts them
    leaving: Resources = field(default_factory=Resources)  # what tasks that are being ended still use

    def add(self, other: Sums) -> None:
        self.jobs += other.jobs
        self.allocated.add(other.allocated)
        self.request.add(other.request)
        self.inqueue.add(other.inqueue)
        self.elastic.add(other.elastic)
        self.minimum.add(other.minimum)
        self.leaving.add(other.leaving)

    def copy(self) -> Sums:
        return Sums(
            self.jobs,
            self.allocated.copy(),
            self.request.copy(),
            self.inqueue.copy(),
            self.elastic.copy(),
            self.minimum.copy(),
            self.leaving.copy(),
        )

    def withdraw(self, other: Sums) -> None:
        self.jobs -= other.jobs
        self.allocated.withdraw(other.allocated)
        self.request.withdraw(other.request)
        self.inqueue.withdraw(other.inqueue)
        self.elastic.withdraw(other.elastic)
        self.minimum.withdraw(other.minimum)
        self.leaving.withdraw(other.leaving)


@dataclass(slots=True)
class Entry:
    job: Job
    version: int
    phase: str
    queue: str
    sums: Sums


class Ledger:
    """The sums of a queue are replaced when they change: decisions of earlier cycles may still hold them."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self.queues: dict[str, Sums] = {}
        self._replaced: set[str] = set()  # queues whose sums are new since the last update began

    def allocated_of(self, job: str) -> Resources:
        """What a job held when it was last counted."""
        return self._entries[job].sums.allocated

    def update(self, jobs: Mapping[str, Job], changed: Iterable[str]) -> None:
        """Take in the jobs that came, changed or went since the last time."""
        entries = self._entries
        self._replaced.clear()
        for id in changed:
            job, entry = jobs.get(id), entries.get(id)
            if job is None:
                if entry is not None:
                    del entries[id]
                    self._sums_of(entry.queue).withdraw(entry.sums)
                continue
            if entry is not None:
                if entry.job is job and entry.version == job.version and entry.phase == job.phase:
                    continue
                self._sums_of(entry.queue).withdraw(entry.sums)
            entries[id] = entry = Entry(job, job.version, job.phase, job.queue, sums_of(job))
            self._sums_of(job.queue).add(entry.sums)

    def _sums_of(self, queue: str) -> Sums:
        """To be changed."""
        if queue not in self._replaced:
            self._replaced.add(queue)
            known = self.queues.get(queue)
            self.queues[queue] = Sums() if known is None else known.copy()
        return self.queues[queue]


def sums_of(job: Job) -> Sums:
    request = job.allocated.copy()
    for task in job.by_status[Status.PENDING].values():
        request.add(task.request)
    leaving = Resources()
    for task in job.by_status[Status.RELEASING].values():
        if task.node:
            leaving.add(task.request)
    return Sums(1, job.allocated.copy(), request, spoken_for(job), elastic(job), inqueue_minimum(job), leaving)
