"""The plan check: decisions that would break a guarantee are dropped, whichever plugin or action made them.

It recomputes from tasks, nodes and queues as they stand at the end of the cycle, asking no plugin that decided.
"""

from __future__ import annotations

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.framework.queue_usage import held_by_queues
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, EPSILON, MEMORY, Node, Queue, Resources, Status, Task
from volcano.scheduler.model.status import READY


def check_plan(session: Session) -> dict[str, str]:
    """Tasks whose decision must be dropped, with the reason."""
    dropped: dict[str, str] = {}
    if session.record.binds:
        _check_gangs(session, dropped)
        _check_nodes(session, dropped)
        _check_queues(session, dropped)
    if session.record.evictions:
        _check_evictions(session, dropped)
    return dropped


def _check_gangs(session: Session, dropped: dict[str, str]) -> None:
    """With the gang plugin, no task is bound while its gang is not whole."""
    if not any(plugin.name == "gang" for plugin in session.ask.plugins("job_ready")):
        return
    for bind in session.record.binds.values():
        job = session.jobs[bind.job]
        whole = job.counts.of(READY) + job.counts.pending_best_effort
        if whole < job.min_available:
            dropped[bind.task] = f"{whole} of at least {job.min_available} tasks of {job.id} would run"


def _check_nodes(session: Session, dropped: dict[str, str]) -> None:
    """No node is over-committed; tasks being evicted still count."""
    rooms: dict[str, Column | None] = {}
    for bind in session.record.binds.values():
        if bind.node not in rooms:
            row = session.table.index.get(bind.node)
            rooms[bind.node] = None if row is None else _room(session, session.table.nodes[row], session.table.idle)
        room = rooms[bind.node]
        if room is None:
            dropped[bind.task] = f"node {bind.node} is gone"
        elif short := _short(session, session.snapshot.tasks[bind.uid], room):
            dropped[bind.task] = f"node {bind.node} has not enough {short} free"


def _room(session: Session, node: Node, kind: Column) -> Column:
    """What remains on a node, without placements that were tried but not decided."""
    room: Column = kind[:, node.row].copy()
    for task in node.tasks.values():
        if task.status == Status.ALLOCATED:
            room += session.table.vector(task.request)
    return room


def _short(session: Session, task: Task, room: Column) -> str:
    for name, asked in task.request.amounts.items():
        if asked >= EPSILON and room[session.table.resources[name]] <= -EPSILON:
            return name
    return ""


def _check_queues(session: Session, dropped: dict[str, str]) -> None:
    """With a plugin that bounds queues, no queue goes beyond its stated capability through this plan."""
    if not session.ask.is_answered("allocatable"):
        return
    bound_jobs = {bind.job for bind in session.record.binds.values()}
    if all(session.queues[session.jobs[job].queue].capability is None for job in bound_jobs):
        return
    held = held_by_queues(session)
    for bind in session.record.binds.values():
        queue = session.queues[session.jobs[bind.job].queue]
        task = session.snapshot.tasks[bind.uid]
        if queue.capability is not None and not task.best_effort and (over := _over(queue, held[queue.name], task)):
            dropped[bind.task] = f"queue {queue.name} would hold more {over} than its capability"


def _over(queue: Queue, held: Resources, task: Task) -> str:
    for name, limit in queue.capability.amounts.items() if queue.capability else ():
        is_stated = limit > 0.0 or name not in (CPU, MEMORY)
        if is_stated and task.request[name] > 0.0 and held[name] - limit >= EPSILON:
            return name
    return ""


def _check_evictions(session: Session, dropped: dict[str, str]) -> None:
    """No task is evicted for a task that has no place afterwards."""
    evictions = [eviction for eviction in session.record.evictions.values() if eviction.preemptor]
    if not evictions:
        return
    preemptors = {eviction.preemptor for eviction in evictions}
    jobs = session.snapshot.jobs
    placed = {
        task.key
        for id in session.moves.touched_jobs  # a task that this session placed is of one of them
        if id in jobs
        for status in (Status.PIPELINED, Status.BINDING)
        for task in jobs[id].by_status[status].values()
        if task.key in preemptors and _has_room(session, task)
    }
    for eviction in evictions:
        if eviction.preemptor not in placed:
            dropped[eviction.task] = f"{eviction.preemptor} would have no place even so"


def _has_room(session: Session, task: Task) -> bool:
    node = session.snapshot.node_of(task)
    return node is not None and not _short(session, task, _room(session, node, session.table.future_idle))
