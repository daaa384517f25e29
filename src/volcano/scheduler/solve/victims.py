"""In which order victims go: the least important first."""

from __future__ import annotations

from collections.abc import Iterable

from volcano.scheduler.core.heap import Heap
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Task


class VictimOrder:
    """Compares two candidates for eviction on behalf of a preemptor."""

    def __init__(self, session: Session, preemptor: Task) -> None:
        self._session = session
        self._ask = session.ask
        job = session.jobs.get(preemptor.job_id)
        self._queue = session.queues.get(job.queue) if job else None

    def __call__(self, one: Task, other: Task) -> bool:
        jobs = self._session.jobs
        mine, theirs = jobs.get(one.job_id), jobs.get(other.job_id)
        if one.job_id == other.job_id or (mine is None and theirs is None):
            return not self._ask.task_before(one, other)
        if mine is None or theirs is None:
            return mine is None
        if self._queue is None or mine.queue == theirs.queue:
            difference = self._ask.compare_jobs(mine, theirs)
            return difference > 0 if difference else not self._ask.task_before(one, other)
        queues = self._session.queues
        return self._ask.victim_queue_before(queues[mine.queue], queues[theirs.queue], self._queue)


def victims_first(session: Session, preemptor: Task, victims: Iterable[Task]) -> Heap[Task]:
    """A heap that gives the next one to evict."""
    return Heap(VictimOrder(session, preemptor), victims)
