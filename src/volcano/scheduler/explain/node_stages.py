"""The nodes left for each task after each condition, and the place of a job in its queue: details beside the reason.

Everything is read from a session of the scheduler itself: the plugins' filters, the room on the nodes, the order of
jobs. Nothing is decided here, and the snapshot is left as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Final

import numpy as np

from volcano.api.jobs.explanation import NodeStage, QueueStanding, TaskNodes
from volcano.scheduler.core.fit import fits_in, short_of
from volcano.scheduler.core.heap import Heap
from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import AmountView, NodeView
from volcano.scheduler.core.taints import untolerated
from volcano.scheduler.explain.amounts_text import amount_text, request_text
from volcano.scheduler.explain.causes_queues import owner_name
from volcano.scheduler.explain.waiting_case import Planned
from volcano.scheduler.framework.answers import ABORTS
from volcano.scheduler.framework.decisions import queue_allocated
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, Job, Queue, Resources, Task
from volcano.scheduler.plugins.predicates import CLOSED, MISMATCH, NO_LABEL, TAINTED

CONDITIONS: Final = {
    CLOSED: "are schedulable",
    MISMATCH: "match the selector and affinity",
    TAINTED: "have only tolerated taints",
    NO_LABEL: "have the labels of the spread constraints",
}
"""What the nodes have that do not refuse for this reason; for reasons of other plugins a general text is used."""
MAX_HOLDERS: Final = 5
MAX_NAMES_AHEAD: Final = 100


def task_nodes(session: Session, job: Job, planned: Planned) -> list[TaskNodes]:
    """For every task with pods to place, the nodes left after each condition."""
    return [task for role in _roles(job, planned) if (task := _task_nodes(session, job, role, planned)) is not None]


# -- nodes ----------------------------------------------------------------------------------------------------------
def _roles(job: Job, planned: Planned) -> list[str]:
    return list(dict.fromkeys([*planned.replicas, *sorted(job.roles)]))


def _task_nodes(session: Session, job: Job, role: str, planned: Planned) -> TaskNodes | None:
    """None when every pod of the task is placed."""
    pods = [task for task in job.tasks.values() if task.role == role]
    replicas = planned.replicas.get(role, len(pods))
    pending = max(0, replicas - sum(bool(task.node) for task in pods))
    waiting = sorted((task for task in pods if not task.node), key=lambda task: task.uid)
    if not pending or not waiting:
        return None
    task, view = waiting[0], NodeView(session.table, task=waiting[0])
    stages, suitable = _suitable(session, task, view)
    free = _free(session, task, view, suitable)
    return TaskNodes(
        role,
        replicas,
        pending,
        _needed(job, role, replicas, sum(planned.replicas.values()) or len(job.tasks)),
        [*stages, free[0]],
        _copies(task, view.allocatable, view.max_pods, suitable),
        _copies(task, view.idle, view.max_pods - view.pod_count, free[1]),
    )


def _suitable(session: Session, task: Task, view: NodeView) -> tuple[list[NodeStage], Mask]:
    """Conditions that no waiting changes: refusals that are final, and the size of the nodes."""
    left, total = view.all(), len(view)
    stages = [NodeStage("node" if total == 1 else "nodes", total)]
    refusal = session.ask.pre_filter(task)
    if refusal is not None:
        left = view.none()
        stages.append(NodeStage("pass the checks of the pod itself", 0, {refusal.message: total}))
    for (code, reason), refused in session.nodes.filtered(task).causes.items():
        if code in ABORTS and (refused & left).any():
            causes = _taints(session, task, refused & left) if reason == TAINTED else {}
            ruled_out = int((refused & left).sum())
            left = left & ~refused
            condition = CONDITIONS.get(reason, "remain")
            stages.append(NodeStage(condition, int(left.sum()), causes or {reason: ruled_out}))
    short = _shortages(task, view.allocatable, left)
    left = left & fits_in(task.request, view.allocatable)
    stages.append(NodeStage(f"have {request_text(task.request)}", int(left.sum()), short))
    return stages, left


def _free(session: Session, task: Task, view: NodeView, suitable: Mask) -> tuple[NodeStage, Mask]:
    """Nodes with room at this moment; other pods leaving may change the answer."""
    filtered = session.nodes.filtered(task)
    causes: Counter[str] = Counter(_shortages(task, view.idle, suitable))
    for (code, reason), refused in filtered.causes.items():
        if code not in ABORTS:
            causes[reason] += int((refused & suitable).sum())
    left = suitable & filtered.ok & session.nodes.room(task).idle
    return NodeStage("have it free", int(left.sum()), _largest_first(causes)), left


def _shortages(task: Task, room: AmountView, among: Mask) -> dict[str, int]:
    counts = {f"Insufficient {name}": int((rows & among).sum()) for name, rows in short_of(task.request, room)}
    return _largest_first(counts)


def _taints(session: Session, task: Task, refused: Mask) -> dict[str, int]:
    """Nodes by the first taint of theirs that the pod does not tolerate."""
    table = session.table
    first = [untolerated(taints, task.pod.spec.tolerations) for taints in table.taint_sets]
    groups = Counter(int(group) for group in table.taint_group[refused])
    counts: Counter[str] = Counter()
    for group, nodes in groups.items():
        taint = first[group]
        if taint is not None:
            counts[f"untolerated taint {taint.key}"] += nodes
    return _largest_first(counts)


def _copies(task: Task, room: AmountView, pods: Column, among: Mask) -> int:
    """How many such pods the room of these nodes holds, node by node."""
    each = pods.copy()
    for name, amount in task.request.amounts.items():
        if amount >= EPSILON:
            each = np.minimum(each, np.floor((room[name] + EPSILON) / amount))
    return int(np.maximum(each, 0.0)[among].sum())


def _largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(((cause, n) for cause, n in counts.items() if n), key=lambda item: (-item[1], item[0])))


def _needed(job: Job, role: str, replicas: int, total: int) -> int:
    """Pods of a task that must run together."""
    if job.checks_roles and role in job.role_minimums:
        return min(job.role_minimums[role], replicas)
    return replicas if job.min_available >= total else min(1, replicas)


# -- the queue ------------------------------------------------------------------------------------------------------
def queue_standing(session: Session, job: Job) -> QueueStanding:
    queue = session.queues.get(job.queue)
    if queue is None:
        return QueueStanding(job.queue, "")
    order = Heap[Job](session.ask.job_before)
    for other in session.waiting:
        if other.queue == job.queue and other.phase in ("", "Pending", "Inqueue"):
            order.push(other)
    waiting, ahead, position = len(order), list[str](), 0
    while order and not position:
        first = order.pop()
        if first is job:
            position = len(ahead) + 1
        else:
            ahead.append(owner_name(first))
    return QueueStanding(
        queue.name,
        queue.state or "Open",
        position,
        waiting,
        ahead[:MAX_NAMES_AHEAD] if position else [],
        _queue_amounts(session, queue, job),
        _holders(session, queue),
    )


def _queue_amounts(session: Session, queue: Queue, job: Job) -> dict[str, str]:
    """Of the limits that exist and the job asks for, what is free: capability, else deserved."""
    limits = queue.capability or queue.deserved
    if limits is None:
        return {}
    asked = job.min_resources or job.total_request
    allocated = queue_allocated(session).get(queue.name, Resources())
    return {
        name: f"{amount_text(limit - allocated[name], name)} of {amount_text(limit, name)} free"
        for name, limit in sorted(limits.amounts.items())
        if limit >= EPSILON and (asked.is_empty or asked[name] >= EPSILON)
    }


def _holders(session: Session, queue: Queue) -> list[str]:
    names = sorted(
        owner_name(job) for job in session.jobs.values() if job.queue == queue.name and job.phase in _HOLDING_PHASES
    )
    return names[:MAX_HOLDERS] + ([f"{len(names) - MAX_HOLDERS} more"] if len(names) > MAX_HOLDERS else [])


_HOLDING_PHASES: Final = ("Running", "Unknown")
