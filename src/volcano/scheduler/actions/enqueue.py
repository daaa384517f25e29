"""enqueue: let pending jobs into their queues, as far as the plugins permit."""

from __future__ import annotations

from typing import Final

from volcano.api.jobs.why import ENQUEUE, Why
from volcano.scheduler.core.heap import Heap
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Queue

BEHIND: Final = Why(ENQUEUE, "waits behind jobs that come first")


def enqueue(session: Session) -> None:
    """Queue by queue in turn, one job each turn; a job refused is not tried again and blocks no other."""
    ask = session.ask
    queues = Heap[Queue](ask.queue_before)
    waiting: dict[str, Heap[Job]] = {}
    for job in session.waiting:
        if job.queue not in waiting:
            waiting[job.queue] = Heap(ask.job_before)
            queues.push(session.queues[job.queue])
        if job.is_pending:
            waiting[job.queue].push(job)
    while queues:
        queue = queues.pop()
        jobs = waiting[queue.name]
        if not jobs:
            continue
        job = jobs.pop()
        if ask.enqueue_ends_at(job):
            for behind in (job, *jobs.items()):
                session.record.refuse(behind.id, BEHIND)
            continue
        if job.min_resources is None or ask.job_enqueueable(job):
            ask.job_enqueued(job)
            session.moves.set_phase(job, "Inqueue")
        queues.push(queue)
