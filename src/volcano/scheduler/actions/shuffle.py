"""shuffle: evict the tasks that plugins name, so that they run elsewhere."""

from __future__ import annotations

from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Status


def shuffle(session: Session) -> None:
    running = [task for job in session.jobs.values() for task in job.by_status[Status.RUNNING].values()]
    statement = Statement(session)
    for task in session.ask.victim_tasks(running):
        statement.evict(task, "shuffle")
    statement.commit()
