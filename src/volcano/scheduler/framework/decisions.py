"""Decisions: what a cycle wants changed, as plain values; and how they are read from a session."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeVar

from volcano.api.jobs.reservations import StartReservation
from volcano.api.jobs.why import GANG, WAIT, Why
from volcano.api.scheduling import ROOT_QUEUE, PodGroupCondition
from volcano.scheduler.framework.queue_usage import held_by_queues
from volcano.scheduler.framework.reasons import job_reason, task_reason
from volcano.scheduler.framework.record import (
    BindDecision,
    ClaimRelease,
    DeviceChoice,
    EvictionDecision,
    KeptStatus,
    Note,
    VolumeChoice,
)
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.settled_jobs import forget_gone, settle
from volcano.scheduler.model import Job, Resources, Status
from volcano.scheduler.model.status import COMPLETED, SCHEDULED

T = TypeVar("T")


@dataclass(slots=True, frozen=True)
class GroupStatus:
    """The status that a PodGroup should have."""

    phase: str
    running: int
    succeeded: int
    failed: int
    conditions: tuple[PodGroupCondition, ...] = ()


@dataclass(slots=True, frozen=True)
class PodNotice:
    """Why a pod is not scheduled (its PodScheduled condition), and the node nominated for it, if any."""

    task: str
    uid: str
    reason: str
    message: str
    nominated_node: str = ""
    job: str = ""


@dataclass(slots=True, frozen=True)
class Decisions:
    binds: tuple[BindDecision, ...] = ()
    evictions: tuple[EvictionDecision, ...] = ()
    pipelined: Mapping[str, str] = field(default_factory=dict)  # task → node, promised
    groups: Mapping[str, GroupStatus] = field(default_factory=dict)  # job → its PodGroup's status
    status_counts: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # job → status → tasks
    why: Mapping[str, Why] = field(default_factory=dict)  # job → what it waits for
    pods: tuple[PodNotice, ...] = ()
    notes: tuple[Note, ...] = ()
    gauges: Mapping[tuple[str, tuple[str, ...]], float] = field(default_factory=dict)
    counters: Mapping[tuple[str, tuple[str, ...]], int] = field(default_factory=dict)
    queue_allocated: Mapping[str, Resources] = field(default_factory=dict)
    gates_to_remove: tuple[str, ...] = ()
    allocated_domains: Mapping[str, str] = field(default_factory=dict)
    volumes: Mapping[str, tuple[VolumeChoice, ...]] = field(default_factory=dict)  # uid of a bound task →
    devices: Mapping[str, tuple[DeviceChoice, ...]] = field(default_factory=dict)  # uid of a bound task →
    node_locks: Mapping[str, str] = field(default_factory=dict)  # uid → annotation to take on its node first
    claim_releases: tuple[ClaimRelease, ...] = ()
    set_aside: Mapping[str, str] = field(default_factory=dict)
    dropped: Mapping[str, str] = field(default_factory=dict)  # task → why the plan check refuses its decision
    reservations: Mapping[str, StartReservation] = field(default_factory=dict)  # by job
    kept: Mapping[str, KeptStatus] = field(default_factory=dict)  # by Reservation with a window to come
    estimate_extensions: Mapping[str, int] = field(default_factory=dict)  # job → how often its estimate was doubled
    needs_another_cycle: bool = False  # even if no object changes
    seconds: Mapping[str, float] = field(default_factory=dict)


def decisions_from(session: Session, dropped: Mapping[str, str], *, messages: bool = True) -> Decisions:
    record = session.record
    if messages:
        _explain_waiting(session)
    unsettled = session.unsettled
    groups: dict[str, GroupStatus] = {job.id: _group_status(session, job) for job in unsettled}
    counts: dict[str, Mapping[str, int]] = {job.id: _status_counts(job) for job in unsettled}
    forget_gone(session)
    groups |= _of_others(session.snapshot.settled_groups, groups)
    counts |= _of_others(session.snapshot.settled_counts, counts)
    settle(session, groups, counts)
    return Decisions(
        binds=tuple(record.binds.values()),
        evictions=tuple(record.evictions.values()),
        pipelined={task.key: task.node for job in unsettled for task in job.by_status[Status.PIPELINED].values()},
        groups=groups,
        status_counts=counts,
        why=dict(record.why),
        pods=_pod_notices(session) if messages else (),
        notes=(*record.notes, *_group_notes(session, groups)) if messages else (),
        gauges=record.gauges,
        counters=record.counters,
        queue_allocated=queue_allocated(session),
        gates_to_remove=tuple(record.gates_to_remove),
        allocated_domains=record.allocated_domains,
        volumes=record.volumes,
        devices=record.devices,
        node_locks=record.node_locks,
        claim_releases=tuple(record.claim_releases),
        set_aside=dict(session.snapshot.set_aside),
        dropped=dropped,
        reservations=dict(record.reservations),
        kept=dict(record.kept),
        estimate_extensions=dict(record.estimate_extensions),
        needs_another_cycle=record.needs_another_cycle,
        seconds=record.seconds,
    )


def _of_others(settled: Mapping[str, T], decided: Mapping[str, T]) -> dict[str, T]:
    """What is known of the settled jobs that this session did not decide about."""
    others = dict(settled)
    for id in decided:
        others.pop(id, None)
    return others


def _status_counts(job: Job) -> dict[str, int]:
    return {Status(number).label: len(tasks) for number, tasks in enumerate(job.by_status) if tasks}


# -- PodGroups ------------------------------------------------------------------------------------------------------
def _group_status(session: Session, job: Job) -> GroupStatus:
    before = job.group.status.conditions if job.group else []
    conditions = {condition.type: condition for condition in before}
    conditions.update({condition.type: condition for condition in session.record.conditions.get(job.id, ())})
    counts = job.counts.by_status
    return GroupStatus(
        _phase(job, is_unschedulable=_is_unschedulable(session, job)),
        counts[Status.RUNNING],
        counts[Status.SUCCEEDED],
        counts[Status.FAILED],
        tuple(conditions.values()),
    )


def _is_unschedulable(session: Session, job: Job) -> bool:
    return any(condition.type == "Unschedulable" for condition in session.record.conditions.get(job.id, ()))


def _phase(job: Job, *, is_unschedulable: bool) -> str:
    if job.by_status[Status.RUNNING] and is_unschedulable:
        return "Unknown"
    leaving = sum(bool(task.node) for task in job.by_status[Status.RELEASING].values())
    scheduled = job.counts.of(SCHEDULED) + leaving
    if job.group is not None and scheduled >= job.group.spec.min_member:
        return "Completed" if scheduled == job.counts.of(COMPLETED) else "Running"
    return "Inqueue" if job.phase == "Inqueue" else "Pending"


def _group_notes(session: Session, groups: Mapping[str, GroupStatus]) -> list[Note]:
    notes = []
    for job in session.unsettled:
        if groups[job.id].phase in ("Unknown", "Pending", "Inqueue"):
            counted = f"{len(job.by_status[Status.PENDING])}/{len(job.tasks)}"
            message = f"{counted} tasks in gang unschedulable: {job_reason(session, job)}"
            notes.append(Note(job.id, "Unschedulable", message, "Warning"))
        elif job.group is not None and groups[job.id].phase != job.group.status.phase:
            notes.append(Note(job.id, "Scheduled", "pod group is ready"))
    return notes


# -- pods -----------------------------------------------------------------------------------------------------------
def _pod_notices(session: Session) -> tuple[PodNotice, ...]:
    notices = []
    for job in session.unsettled:
        of_job = ""  # computed once for all pods, since it counts them
        for status in (Status.ALLOCATED, Status.PENDING, Status.PIPELINED):
            for task in job.by_status[status].values():
                if task.is_gated:
                    continue
                reason, message, nominated = task_reason(session, task)
                if not message:
                    message = of_job = of_job or job_reason(session, job) or "all nodes are unavailable"
                notices.append(PodNotice(task.key, task.uid, reason, message, nominated, job.id))
    return tuple(notices)


# -- queues ---------------------------------------------------------------------------------------------------------
def queue_allocated(session: Session) -> dict[str, Resources]:
    """What each queue holds; with a queue `root`, ancestors count their descendants' too."""
    held, nothing = held_by_queues(session), Resources()
    sums = {name: held.get(name, nothing) for name, queue in session.queues.items() if queue.is_charged}
    if ROOT_QUEUE in session.queues:
        sums = {name: Resources() for name in sums}
        for name in sums.keys() & held.keys():
            for member in _line(session, name):
                sums[member].add(held[name])
    for name, more in session.record.queue_allocated.items():
        if name in sums:
            sums[name] = sums[name] + more
    return sums


def _line(session: Session, name: str) -> list[str]:
    line = [name]
    while line[-1] != ROOT_QUEUE:
        parent = session.queues[line[-1]].parent or ROOT_QUEUE
        if parent in line or parent not in session.queues:
            break
        line.append(parent)
    return line


# -- why ------------------------------------------------------------------------------------------------------------
def _explain_waiting(session: Session) -> None:
    """Remove the reason of jobs that got what they need; jobs with promised room wait until it is released."""
    why = session.record.why
    for job in session.unsettled:
        waiting, promised = job.by_status[Status.PENDING], job.by_status[Status.PIPELINED]
        if job.is_pending and job.id in why:
            continue  # it was not admitted to its queue and may have no pods yet: the refusal is the reason
        if (job.is_ready and not promised) or not (waiting or promised):
            why.pop(job.id, None)
        elif promised and job.is_pipelined:
            nodes = Counter(task.node for task in promised.values())
            message = f"{len(promised)} of {len(job.tasks)} tasks wait for room that others are leaving"
            why[job.id] = Why(WAIT, "resources are being released", "", message, dict(nodes.most_common(8)))
        elif job.id not in why:
            why[job.id] = Why(GANG, "not enough tasks fit", "", job_reason(session, job))
