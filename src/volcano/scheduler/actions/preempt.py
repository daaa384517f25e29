"""preempt: make room for starving jobs by evicting less important tasks of the same queue, or of the job itself."""

from __future__ import annotations

from collections.abc import Callable

from volcano.scheduler.core.heap import Heap
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Job, Queue, Status, Task
from volcano.scheduler.solve.backlog import TaskBacklog
from volcano.scheduler.solve.candidates import Candidates
from volcano.scheduler.solve.make_room import Preemption


def preempt(session: Session) -> None:
    queues: dict[str, list[Job]] = {}
    for job in session.waiting:
        if _may_preempt(session, job):
            queues.setdefault(job.queue, []).append(job)
    candidates = Candidates(session, "preempt")
    order = Heap[Queue](session.ask.queue_before, (session.queues[name] for name in queues))
    while order:
        jobs = queues[order.pop().name]
        waiting = Heap[Job](session.ask.job_before, jobs)
        while waiting:
            _between_jobs(session, waiting.pop(), candidates)
        for job in jobs:
            _within_job(session, job, candidates)


def _may_preempt(session: Session, job: Job) -> bool:
    if job.is_pending or job.needs_topology or session.ask.job_valid(job) is not None:
        return False
    return session.ask.job_starving(job)


def _waiting(session: Session, job: Job) -> TaskBacklog:
    return TaskBacklog(session, (task for task in job.by_status[Status.PENDING].values() if not task.is_gated))


def _between_jobs(session: Session, job: Job, candidates: Candidates) -> None:
    """Evict for the whole gang, or not at all."""
    statement, line = Statement(session), _waiting(session, job)
    preemption = Preemption(session, job, candidates, _of_others(session, job))
    while line and session.ask.job_starving(job):
        preemption.make_room(line.pop(), statement)
    if session.ask.job_pipelined(job):
        _commit(session, statement)
    else:
        statement.discard()


def _within_job(session: Session, job: Job, candidates: Candidates) -> None:
    """More important tasks of a job take the place of less important ones, each on its own."""
    line = _waiting(session, job)
    preemption = Preemption(session, job, candidates, _of_the_job(job))
    while line:
        statement = Statement(session)
        if not preemption.make_room(line.pop(), statement):
            statement.discard()
            return
        _commit(session, statement)


def _commit(session: Session, statement: Statement) -> None:
    if statement.has_evictions:
        session.record.counters[("eviction_transactions_total", ("preempt",))] += 1
    statement.commit()


def _of_others(session: Session, job: Job) -> Callable[[Task, Task], bool]:
    def is_victim(preemptor: Task, task: Task) -> bool:
        theirs = session.jobs.get(task.job_id)
        return theirs is not None and theirs is not job and theirs.queue == job.queue and _is_exposed(preemptor, task)

    return is_victim


def _of_the_job(job: Job) -> Callable[[Task, Task], bool]:
    def is_victim(preemptor: Task, task: Task) -> bool:
        return task.job_id == job.id and _is_exposed(preemptor, task)

    return is_victim


def _is_exposed(preemptor: Task, task: Task) -> bool:
    if task.status not in (Status.BOUND, Status.RUNNING) or not task.preemptable:
        return False
    return task.best_effort or not preemptor.best_effort
