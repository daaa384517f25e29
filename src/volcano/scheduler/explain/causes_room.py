"""What is missing at this moment, where an empty cluster would do: room on one node, room in all, ports, neighbours."""

from __future__ import annotations

from collections import Counter

import numpy as np

from volcano.api.why.reasons import Finding, finding, named
from volcano.scheduler.core.fit import fits_in
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.explain.amounts_text import amount_text
from volcano.scheduler.explain.causes_devices import device_cause
from volcano.scheduler.explain.causes_nodes import node_masks
from volcano.scheduler.explain.causes_queues import needed_of, owner_name
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, PODS, Job, Task
from volcano.scheduler.plugins.predicates import (
    CLOSED,
    FULL,
    HOSTILE,
    MISMATCH,
    NO_PORTS,
    SKEWED,
    TAINTED,
    UNWELCOME,
)
from volcano.scheduler.plugins.predicates.device_claims import UNALLOCATED
from volcano.scheduler.plugins.predicates.ports import host_ports


def no_room_cause(session: Session, job: Job, task: Task, most: int, needed_pods: int) -> Finding:
    """`most`: how many of the pods that the job still needs have room now; the session has placed none of them."""
    table = session.table
    masks = node_masks(table, task)  # `large` says where it fits now
    suitable = masks.labelled & ~masks.cordoned & ~masks.tainted & ~masks.not_ready & _large_when_empty(session, task)
    roomy = suitable & masks.large
    filtered = session.nodes.filtered(task)
    if most == 0 and roomy.any() and not (roomy & filtered.ok).any():
        return _refused_now(session, task, roomy, filtered.causes)
    if most == 0 and suitable.any() and not roomy.any():
        return _on_one_node(session, job, task, suitable)
    return _in_all(session, job, task, suitable, most, needed_pods)


def _large_when_empty(session: Session, task: Task) -> Mask:
    return fits_in(task.request, NodeView(session.table).allocatable)


def _on_one_node(session: Session, job: Job, task: Task, suitable: Mask) -> Finding:
    view = NodeView(session.table)
    short = {
        name: int((view.idle[name][suitable] <= task.request[name] - EPSILON).sum())
        for name in task.request.names
        if name != PODS
    }
    scarce = max(short, key=lambda name: short[name], default=PODS)
    if not short.get(scarce):
        return finding("PodNumberReached", holders=holders_text(session, job, suitable, PODS))
    room = view.idle[scarce][suitable]
    return finding(
        "NoRoomOnOneNode",
        of_task=f" of task {task.role}" if task.role and len(job.roles) > 1 else "",
        needed=amount_text(task.request[scarce], scarce),
        resource=scarce,
        most=amount_text(float(room.max(initial=0.0)), scarce),
        total=amount_text(float(np.maximum(room, 0.0).sum()), scarce),
        holders=holders_text(session, job, suitable, scarce),
    )


def _in_all(session: Session, job: Job, task: Task, suitable: Mask, most: int, needed_pods: int) -> Finding:
    view, needed = NodeView(session.table), needed_of(job)
    scarcity = {}
    for name in needed.names:
        if name != PODS:
            free = float(np.maximum(view.idle[name][suitable], 0.0).sum())
            scarcity[name] = (free / needed[name], free)
    scarce = min(scarcity, key=lambda name: scarcity[name][0], default="")
    if scarce and scarcity[scarce][0] < 1.0:
        return finding(
            "NotEnoughRoom",
            needed=amount_text(needed[scarce], scarce),
            resource=scarce,
            pods=needed_pods,
            total=amount_text(scarcity[scarce][1], scarce),
            holders=holders_text(session, job, suitable, scarce),
        )
    devices = device_cause(session, job, job.min_available) if task.claims else None
    return devices or finding(
        "RoomForSome",
        most=most,
        needed=needed_pods,
        holders=holders_text(session, job, suitable, scarce or "cpu"),
    )


def _refused_now(session: Session, task: Task, roomy: Mask, causes: object) -> Finding:
    assert isinstance(causes, dict)
    counts: Counter[str] = Counter()
    for (_, reason), refused in causes.items():
        if reason not in (CLOSED, MISMATCH, TAINTED):
            counts[reason] += int((refused & roomy).sum())
    reason = counts.most_common(1)[0][0] if counts else "no node takes it"
    pod, job = task.pod, session.jobs[task.job_id]
    if reason == UNALLOCATED and (missing := device_cause(session, job, 1)) is not None:
        return missing
    if reason == NO_PORTS:
        wanted = host_ports(pod)
        users = [
            _holder_name(session, other)
            for shape, tasks in session.table.notable.items()
            if any(mine.collides(theirs) for mine in wanted for theirs in host_ports(shape.pod))
            for other in tasks.values()
        ]
        ports = named([str(port.port) for port in wanted])
        return finding("HostPortsInUse", port=ports, holders=f" by {named(users)}" if users else "")
    if reason in (HOSTILE, UNWELCOME):
        near = [
            _holder_name(session, other)
            for row in np.flatnonzero(roomy)
            for other in session.table.nodes[row].tasks.values()
        ]
        own = reason == HOSTILE
        return finding("NeighboursForbid", pods="the job itself" if own else named(near) or "others")
    if reason == SKEWED:
        constraint = next(c for c in pod.spec.topology_spread_constraints if c.when_unsatisfiable == "DoNotSchedule")
        return finding("SpreadForbids", skew=constraint.max_skew, key=constraint.topology_key)
    if reason == FULL:
        return finding("PodNumberReached", holders=holders_text(session, job, roomy, PODS))
    return finding("RefusedNow", message=reason)


def holders_text(session: Session, job: Job, among: Mask, resource: str) -> str:
    """`; held by a, b and 4 more`: the jobs that hold most of a resource on these nodes."""
    by_job: Counter[str] = Counter()
    held: Counter[str] = Counter()
    table = session.table
    for row in np.flatnonzero(among & (table.pod_count > 0)):
        for task in table.nodes[row].tasks.values():
            if task.job_id != job.id:
                amount = int(task.request[resource] if resource != PODS else 1.0)
                if task.job_id in session.jobs:
                    by_job[task.job_id] += amount
                else:
                    held[task.name] += amount
    for id, amount in by_job.items():
        held[owner_name(session.jobs[id])] += amount
    names = [name for name, amount in sorted(held.items(), key=lambda item: (-item[1], item[0])) if amount]
    return f"; held by {named(names)}" if names else ""


def _holder_name(session: Session, task: Task) -> str:
    job = session.jobs.get(task.job_id)
    return owner_name(job) if job is not None else task.name
