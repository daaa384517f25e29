"""gangpreempt: make room for starving gangs as a whole by evicting less important jobs of the same queue."""

from __future__ import annotations

from typing import Final

from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Job, Status, Task
from volcano.scheduler.solve.gang_room import Exposed, GangRoom, Purpose
from volcano.scheduler.solve.starving import may_be_evicted_for_gangs, queues_with_starving, waits_for_leavers

PREEMPT: Final = Purpose("gangpreempt", "GangPreempt", (Status.BOUND, Status.RUNNING), between_queues=False)


def gangpreempt(session: Session) -> None:
    exposed: dict[tuple[str, int], Exposed] = {}
    for queue, jobs in queues_with_starving(session):
        while jobs:
            job = jobs.pop()
            if (queue.name, job.priority) not in exposed:
                exposed[queue.name, job.priority] = Exposed(session, _less_important(session, job))
            _preempt_for(session, job, exposed[queue.name, job.priority])


def _preempt_for(session: Session, job: Job, exposed: Exposed) -> None:
    room, statement = GangRoom(session, job, PREEMPT, exposed), Statement(session)
    if not room.waiting or waits_for_leavers(session, room.waiting) or not room.make(statement):
        return
    session.record.counters[("eviction_transactions_total", (PREEMPT.action,))] += 1
    statement.commit()


def _less_important(session: Session, job: Job) -> list[Task]:
    victims = (
        other
        for other in session.jobs.values()
        if other.queue == job.queue and other.priority < job.priority and may_be_evicted_for_gangs(other)
    )
    return [
        task
        for other in victims
        for status in PREEMPT.statuses
        for task in other.with_status(status)
        if task.preemptable
    ]
