"""backfill: tasks that ask for nothing need no room, only a node that takes them."""

from __future__ import annotations

from collections import Counter

import numpy as np

from volcano.scheduler.core.heap import Heap
from volcano.scheduler.framework.record import FitErrors
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import allocate_directly
from volcano.scheduler.model import Job, Queue, Status, Task
from volcano.scheduler.solve.backlog import TaskBacklog
from volcano.scheduler.solve.choose import best_node, shard_groups


def backfill(session: Session) -> None:
    queues: dict[str, list[tuple[Job, list[Task]]]] = {}
    for job in session.waiting:
        if not job.is_pending and session.ask.job_valid(job) is None:
            tasks = _tasks_without_requests(session, job)
            if tasks:
                queues.setdefault(job.queue, []).append((job, tasks))
    order = Heap[Queue](session.ask.queue_before, (session.queues[name] for name in queues))
    while order:
        waiting = {job.id: tasks for job, tasks in queues[order.pop().name]}
        jobs = Heap[Job](session.ask.job_before, (session.jobs[id] for id in waiting))
        while jobs:
            for task in TaskBacklog(session, waiting[jobs.pop().id]):
                _place(session, task)


def _tasks_without_requests(session: Session, job: Job) -> list[Task]:
    """Those pending, and those promised room they never needed: these wait again first."""
    promised = [task for task in job.by_status[Status.PIPELINED].values() if task.best_effort]
    for task in promised:
        session.moves.lift(task)
    return [task for task in job.by_status[Status.PENDING].values() if task.best_effort and not task.is_gated]


def _place(session: Session, task: Task) -> None:
    count = len(session.table)
    refusal = session.ask.pre_filter(task)
    if refusal is not None:
        _note(session, task, FitErrors(count, Counter({refusal.message: count})))
        return
    filtered = session.nodes.filtered(task)
    for group in shard_groups(session, filtered.ok):
        node = best_node(session, task, group)
        if node is not None:
            allocate_directly(session, task, node)
            return
    unresolvable = np.zeros(count, dtype=bool)
    _note(session, task, FitErrors(count, filtered.histogram(), unresolvable=unresolvable))


def _note(session: Session, task: Task, errors: FitErrors) -> None:
    session.record.cannot_fit(task.job_id, task.uid, errors, sub_job=task.sub_job_id, role=task.role)
