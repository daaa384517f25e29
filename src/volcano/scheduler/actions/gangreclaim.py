"""gangreclaim: a queue below its share takes back, for whole gangs, from queues that may be reclaimed from."""

from __future__ import annotations

from typing import Final

from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Job, Queue, Status, Task
from volcano.scheduler.solve.gang_room import Exposed, GangRoom, Purpose
from volcano.scheduler.solve.starving import may_be_evicted_for_gangs, queues_with_starving, waits_for_leavers

RECLAIM: Final = Purpose("gangreclaim", "GangReclaim", (Status.RUNNING,), between_queues=True)


def gangreclaim(session: Session) -> None:
    for queue, jobs in queues_with_starving(session):
        if not jobs or session.ask.overused(queue):
            continue
        exposed = Exposed(session, _of_others(session, queue))
        while jobs:
            _reclaim_for(session, queue, jobs.pop(), exposed)


def _reclaim_for(session: Session, queue: Queue, job: Job, exposed: Exposed) -> None:
    room, statement = GangRoom(session, job, RECLAIM, exposed), Statement(session)
    if not room.waiting or waits_for_leavers(session, room.waiting):
        return
    if not session.ask.preemptive(queue, room.waiting) or not room.make(statement):
        return
    session.record.counters[("eviction_transactions_total", (RECLAIM.action,))] += 1
    statement.commit()


def _of_others(session: Session, queue: Queue) -> list[Task]:
    victims = (
        job
        for job in session.jobs.values()
        if job.queue != queue.name and session.queues[job.queue].reclaimable and may_be_evicted_for_gangs(job)
    )
    return [task for job in victims for task in job.with_status(Status.RUNNING) if task.preemptable]
