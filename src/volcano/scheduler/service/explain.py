"""Explain a PodGroup that waits: nodes left after each condition, its place in the queue, whether waiting helps.

Everything is read from a session of the scheduler itself: the plugins' filters, the room on the nodes, the order of
jobs. Nothing is decided here, and the snapshot is left as it was.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import msgspec
import numpy as np

from volcano.api.jobs.explanation import Explanation, NodeStage, QueueStanding, TaskNodes
from volcano.api.jobs.why import ENQUEUE, GANG, QUEUE, QUOTA, Why, decode_why
from volcano.api.scheduling import WHY_ANNOTATION
from volcano.scheduler.commit.queues import quantities_from
from volcano.scheduler.core.fit import fits_in, short_of
from volcano.scheduler.core.heap import Heap
from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import AmountView, NodeView
from volcano.scheduler.core.taints import untolerated
from volcano.scheduler.framework.answers import ABORTS
from volcano.scheduler.framework.decisions import Decisions, queue_allocated
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, PODS, Job, Queue, Resources, Status, Task
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


@dataclass(slots=True, frozen=True)
class Planned:
    """What the Job behind a PodGroup plans: replicas per task, and the tasks that start only after others."""

    replicas: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, Sequence[str]] = field(default_factory=dict)


def explain_job(session: Session, job: Job, decisions: Decisions, planned: Planned) -> Explanation:
    """`decisions` are those of a cycle on the same snapshot, which show what would happen next."""
    tasks = [task for role in _roles(job, planned) if (task := _task_nodes(session, job, role, planned)) is not None]
    queue = _queue_standing(session, job)
    reason = _reason(job, decisions, queue)
    return Explanation(
        reason,
        _never_because(session, job, tasks, planned, reason.stage) if reason is not None else "",
        tasks,
        queue,
        _waits_for(session, job, decisions),
    )


# -- the reason -----------------------------------------------------------------------------------------------------
def _reason(job: Job, decisions: Decisions, queue: QueueStanding) -> Why | None:
    if not queue.state:
        return Why(QUEUE, "QueueNotFound", message=f"there is no queue {queue.name}")
    if job.is_pending and queue.state in ("Closed", "Closing"):
        return Why(QUEUE, "QueueClosed", message=f"queue {queue.name} is {queue.state}")
    # A recorded reason also covers what only the last real cycle saw, such as a bind that failed.
    recorded = decode_why(job.group.annotations.get(WHY_ANNOTATION) or "") if job.group is not None else None
    why = recorded or decisions.why.get(job.id)
    return None if why is None else _with_queue_amounts(why, queue)


def _with_queue_amounts(why: Why, queue: QueueStanding) -> Why:
    """A refusal by the queue names what is left of the queue, and the jobs that hold the rest."""
    if why.stage not in (QUOTA, ENQUEUE) or not queue.amounts:
        return why
    amounts = "; ".join(f"{text} {resource}" for resource, text in queue.amounts.items())
    held = f", held by {' and '.join(queue.holders)}" if queue.holders else ""
    return msgspec.structs.replace(why, message=f"{why.message or why.cause}; queue {queue.name} has {amounts}{held}")


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
    stages.append(NodeStage(f"have {_amounts_text(task.request)}", int(left.sum()), short))
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


def _amounts_text(request: Resources) -> str:
    amounts = sorted(quantities_from(request).items())
    asked = [f"{text} {name}" for name, text in amounts if name != PODS and request[name] >= EPSILON]
    return ", ".join(asked) or "room for a pod"


def _largest_first(counts: Mapping[str, int]) -> dict[str, int]:
    return dict(sorted(((cause, n) for cause, n in counts.items() if n), key=lambda item: (-item[1], item[0])))


# -- never, or only not now -----------------------------------------------------------------------------------------
def _needed(job: Job, role: str, replicas: int, total: int) -> int:
    """Pods of a task that must run together."""
    if job.checks_roles and role in job.role_minimums:
        return min(job.role_minimums[role], replicas)
    return replicas if job.min_available >= total else min(1, replicas)


def _never_because(session: Session, job: Job, tasks: list[TaskNodes], planned: Planned, stage: str) -> str:
    """Why no waiting will help as nodes, queue limits and the job are now; empty when it may."""
    if stage == QUEUE:
        return ""
    if stage == GANG and (held := _gang_needs_later_task(job, planned)):
        return held
    for task in tasks:
        if not task.needed:
            continue
        if any(each.nodes == 0 for each in task.stages[:-1]):
            return f"task {task.task}: no node would do even if all were free ({task})"
        if task.holds < task.needed:
            return f"task {task.task} needs {task.needed} pods at once, all suitable nodes together hold {task.holds}"
    return _beyond_capability(session, job, tasks)


def _gang_needs_later_task(job: Job, planned: Planned) -> str:
    """A task that starts after another has no pods while the gang is placed, so the gang must not need them."""
    at_once = sum(replicas for task, replicas in planned.replicas.items() if task not in planned.after)
    if not planned.after or job.min_available <= at_once:
        return ""
    names = " and ".join(f"{task} (after {', '.join(others)})" for task, others in planned.after.items())
    return (
        f"minAvailable {job.min_available} needs {names} from the start, "
        f"but only {at_once} pods come before; lower minAvailable"
    )


def _beyond_capability(session: Session, job: Job, tasks: list[TaskNodes]) -> str:
    wanted = Resources(job.allocated.amounts)
    requests = {task.role: task.request for task in job.tasks.values()}
    for task in tasks:
        placed = task.replicas - task.pending
        wanted.add(requests[task.task] * max(0, task.needed - placed))
    for queue in _line(session, job.queue):
        for resource, limit in (queue.capability.amounts if queue.capability is not None else {}).items():
            if limit and wanted[resource] > limit + EPSILON:
                amount, most = _text(wanted[resource], resource), _text(limit, resource)
                return f"it needs {amount} {resource} at once; queue {queue.name} may never have more than {most}"
    return ""


def _line(session: Session, name: str) -> Iterable[Queue]:
    """A queue and its ancestors."""
    seen: set[str] = set()
    while name in session.queues and name not in seen:
        seen.add(name)
        yield session.queues[name]
        name = session.queues[name].parent or "root"


# -- the queue ------------------------------------------------------------------------------------------------------
def _queue_standing(session: Session, job: Job) -> QueueStanding:
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
            ahead.append(_owner_name(first))
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
        name: f"{_text(limit - allocated[name], name)} of {_text(limit, name)} free"
        for name, limit in sorted(limits.amounts.items())
        if limit >= EPSILON and (asked.is_empty or asked[name] >= EPSILON)
    }


def _holders(session: Session, queue: Queue) -> list[str]:
    names = sorted(
        _owner_name(job) for job in session.jobs.values() if job.queue == queue.name and job.phase in _HOLDING_PHASES
    )
    return names[:MAX_HOLDERS] + ([f"{len(names) - MAX_HOLDERS} more"] if len(names) > MAX_HOLDERS else [])


_HOLDING_PHASES: Final = ("Running", "Unknown")


def _owner_name(job: Job) -> str:
    owners = job.group.metadata.owner_references if job.group is not None else []
    return owners[0].name if owners else job.name


def _text(amount: float, resource: str) -> str:
    return quantities_from(Resources({resource: amount})).get(resource, "0")


# -- promised room --------------------------------------------------------------------------------------------------
def _waits_for(session: Session, job: Job, decisions: Decisions) -> dict[str, list[str]]:
    """For every node whose room is promised to the job, the pods that have to leave it first."""
    promised = {decisions.pipelined[task.key] for task in job.tasks.values() if task.key in decisions.pipelined}
    evicted = {eviction.task for eviction in decisions.evictions if eviction.task not in decisions.dropped}
    leaving = {}
    for name in sorted(promised):
        row = session.table.index.get(name)
        tasks = session.table.nodes[row].tasks.values() if row is not None else ()
        leaving[name] = sorted(t.key for t in tasks if t.status == Status.RELEASING or t.key in evicted)
    return leaving
