"""Place a sub-job exactly where an earlier eviction made room for it."""

from __future__ import annotations

from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Job, Node, SubJob, Task
from volcano.scheduler.solve.backlog import TaskBacklog


def place_as_nominated(session: Session, job: Job, sub_job: SubJob, line: TaskBacklog) -> Statement | None:
    """All tasks on their nominated nodes, or none and the nomination is forgotten."""
    statement = Statement(session)
    homes = [(task, _home(session, job, sub_job, task)) for task in line]
    placed = all(home is not None and _put(session, statement, task, home) for task, home in homes)
    if placed and homes:
        sub_job.allocated_domain = session.domains.common(sub_job.allocated_domain, sub_job.nominated_domain)
        line.clear()
        return statement
    statement.discard()
    sub_job.nominated_domain = ""
    for task, _ in homes:
        task.nominated_node = ""
    return None


def _home(session: Session, job: Job, sub_job: SubJob, task: Task) -> Node | None:
    domain = session.domains.by_name.get(sub_job.nominated_domain)
    row = session.table.index.get(task.nominated_node)
    if domain is None or row is None or task.nominated_node not in domain.nodes:
        return None
    if not session.ask.allocatable(session.queues[job.queue], task) or session.ask.pre_filter(task) is not None:
        return None
    fits = session.nodes.passes(task, row) and bool(session.nodes.room(task).future[row])
    return session.table.nodes[row] if fits else None


def _put(session: Session, statement: Statement, task: Task, node: Node) -> bool:
    room = session.nodes.room(task)
    if room.idle[node.row]:
        return statement.allocate(task, node) is None
    return bool(room.future[node.row]) and statement.pipeline(task, node) is None
