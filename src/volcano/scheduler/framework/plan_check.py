"""The plan check: decisions that would break a promise are not committed, whoever proposed them.

It recomputes from the session as it stands at the end of the cycle, without asking any plugin that decided.
"""

from __future__ import annotations

from volcano.scheduler.core.node_table import NodeTable
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, EPSILON, MEMORY, Job, Queue, Resources, Status, Task
from volcano.scheduler.model.status import READY


def check_plan(session: Session) -> dict[str, str]:
    """Tasks whose decision must be dropped, with the reason."""
    dropped: dict[str, str] = {}
    _check_gangs(session, dropped)
    _check_nodes(session, dropped)
    _check_queues(session, dropped)
    _check_evictions(session, dropped)
    return dropped


def _check_gangs(session: Session, dropped: dict[str, str]) -> None:
    """With a plugin that keeps gangs whole, nobody is bound while the gang is not."""
    if "gang" not in session.config.plugin_names or not session.ask.methods("job_ready"):
        return
    for job in {bind.job: session.jobs[bind.job] for bind in session.record.binds.values()}.values():
        whole = job.counts.of(READY) + len(job.by_status[Status.PENDING]) * 0 + job.counts.pending_best_effort
        if whole < job.min_available:
            for bind in session.record.binds.values():
                if bind.job == job.id:
                    dropped[bind.task] = f"{whole} of at least {job.min_available} tasks of {job.id} would run"


def _check_nodes(session: Session, dropped: dict[str, str]) -> None:
    """No node gives more than it has free now: what is leaving has not left."""
    table = session.table
    for bind in session.record.binds.values():
        row = table.index.get(bind.node)
        task = session.snapshot.tasks.get(bind.uid)
        if row is None or task is None:
            dropped[bind.task] = f"node {bind.node} is gone"
        elif not task.best_effort and (short := _short(table, row, task)):
            dropped[bind.task] = f"node {bind.node} has not enough {short} free"


def _short(table: NodeTable, row: int, task: Task) -> str:
    for name, asked in task.request.amounts.items():
        if asked >= EPSILON and table.idle[table.resources[name], row] <= -EPSILON:
            return name
    return ""


def _check_queues(session: Session, dropped: dict[str, str]) -> None:
    """With a plugin that bounds queues, no queue goes beyond its stated capability through this plan."""
    if not {"proportion", "capacity"} & set(session.config.plugin_names) or not session.ask.methods("allocatable"):
        return
    held: dict[str, Resources] = {}
    for job in session.jobs.values():
        held.setdefault(job.queue, Resources()).add(job.allocated)
    for bind in session.record.binds.values():
        task, job = session.snapshot.tasks[bind.uid], session.jobs[bind.job]
        if not task.best_effort and (over := _over(session.queues[job.queue], held[job.queue], task)):
            dropped[bind.task] = f"queue {job.queue} would hold more {over} than its capability"


def _over(queue: Queue, held: Resources, task: Task) -> str:
    for name, limit in queue.capability.amounts.items() if queue.capability else ():
        stated = limit > 0.0 or name not in (CPU, MEMORY)
        if stated and task.request[name] > 0.0 and held[name] - limit >= EPSILON:
            return name
    return ""


def _check_evictions(session: Session, dropped: dict[str, str]) -> None:
    """Nobody is evicted for a task that has no place afterwards."""
    by_key = {task.key: task for job in session.jobs.values() for task in job.tasks.values()}
    for eviction in session.record.evictions.values():
        if not eviction.preemptor:
            continue
        preemptor = by_key.get(eviction.preemptor)
        if preemptor is None or not _is_placed(session, preemptor):
            dropped[eviction.task] = f"{eviction.preemptor} would have no place even so"


def _is_placed(session: Session, task: Task) -> bool:
    if task.status not in (Status.PIPELINED, Status.ALLOCATED, Status.BINDING):
        return False
    row = session.table.index.get(task.node)
    room = None if row is None else session.table.future_idle[:, row]
    return room is not None and not any(
        asked >= EPSILON and room[session.table.resources[name]] <= -EPSILON
        for name, asked in task.request.amounts.items()
    )


def waits_for(job: Job) -> int:
    return max(job.min_available - job.counts.ready_or_free, 0)
