"""A Job's status: counting pods, and the patch of what changed, rate-limited to few writes in a job's life."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.batch import JobCondition, JobState, JobStatus, Phase, TaskState
from volcano.api.durations import format_duration
from volcano.api.times import is_recent
from volcano.controllers.job.states import JobTally
from volcano.controllers.job.view import JobPod, JobView, task_name
from volcano.controllers.job.wakes import WakeCause
from volcano.machinery.plan import Later, Plan, patch_status

COUNTERS_INTERVAL: Final = timedelta(seconds=1)
"""A change of counters alone is written at most once per interval; a change of phase is written immediately."""
FIRST_STATUS_DELAY: Final = timedelta(seconds=20)
"""The first status of a new job (Pending, no pods) has low priority: it is written when the queue is idle, or after
this delay. When a thousand jobs are created at once, their pods are created before these statuses are written."""
MESSAGE_INTERVAL: Final = timedelta(seconds=60)
"""A message in which only numbers change is written at most once per interval; a new reason is written immediately."""


@dataclass(slots=True)
class JobPodCounts:
    """The pods of a job by phase. A pod that the controller itself ends counts as terminating only."""

    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    unknown: int = 0
    terminating: int = 0
    unplaced: int = 0  # pending pods without a node
    alive: dict[str, Counter[str]] = field(default_factory=dict)  # per task, without terminating pods
    present: dict[str, Counter[str]] = field(default_factory=dict)
    """Per task, every pod that the controller does not end itself, including pods that are being deleted by others: a
    restarted controller detects an eviction by a recorded pod that is missing."""


def count(view: JobView, is_victim: Callable[[JobPod], bool] = lambda _member: False) -> JobPodCounts:
    """Count the pods; victims count as terminating."""
    counts, phases = JobPodCounts(), Counter[str]()
    wanted = view.wanted
    present: defaultdict[str, Counter[str]] = defaultdict(Counter)
    alive: defaultdict[str, Counter[str]] = defaultdict(Counter)
    for member in view.members:
        ours = member.marked or is_victim(member)
        if not ours:
            present[member.task][member.phase] += 1
        if ours or member.is_deleting:
            counts.terminating += 1
        elif member.name in wanted:
            phases[member.phase] += 1
            counts.unplaced += member.phase == "Pending" and not member.pod.spec.node_name
            alive[member.task][member.phase] += 1
    counts.present, counts.alive = dict(present), dict(alive)
    counts.pending, counts.running = phases["Pending"], phases["Running"]
    counts.succeeded, counts.failed = phases["Succeeded"], phases["Failed"]
    counts.unknown = phases.total() - counts.pending - counts.running - counts.succeeded - counts.failed
    return counts


def tally(view: JobView, counts: JobPodCounts, *, awaits_policy: bool = False) -> JobTally:
    spec, status = view.job.spec, view.job.status
    return JobTally(
        total=view.total,
        min_available=spec.min_available,
        known_min_available=status.min_available or spec.min_available,
        min_success=spec.min_success,
        max_retry=spec.max_retry,
        retries=status.retry_count,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        terminating=counts.terminating,
        unplaced=counts.unplaced,
        gang_is_short=_gang_is_short(view, counts),
        awaits_policy=awaits_policy,
        a_task_fell_short=_a_task_fell_short(view, counts),
    )


def _gang_covers_tasks(view: JobView) -> bool:
    tasks = view.job.spec.tasks
    needed = sum(task.replicas if task.min_available is None else task.min_available for task in tasks)
    return view.job.spec.min_available >= needed


def _gang_is_short(view: JobView, counts: JobPodCounts) -> bool:
    """As the gang plugin of the scheduler judges it, which does not count failed pods."""
    if not counts.failed:
        return False
    if view.total - counts.failed < view.job.spec.min_available:
        return True
    return _gang_covers_tasks(view) and any(
        task.replicas - counts.alive.get(task_name(task), Counter())["Failed"]
        < (task.replicas if task.min_available is None else task.min_available)
        for task in view.job.spec.tasks
    )


def _a_task_fell_short(view: JobView, counts: JobPodCounts) -> bool:
    if not _gang_covers_tasks(view):
        return False
    return any(
        task.min_available is not None
        and task_name(task) in counts.alive
        and counts.alive[task_name(task)]["Succeeded"] < task.min_available
        for task in view.job.spec.tasks
    )


def with_counts(status: JobStatus, counts: JobPodCounts, **changes: Any) -> JobStatus:
    tasks = {task: TaskState(phase=dict(sorted(phases.items()))) for task, phases in sorted(counts.present.items())}
    return msgspec.structs.replace(
        status,
        pending=counts.pending,
        running=counts.running,
        succeeded=counts.succeeded,
        failed=counts.failed,
        unknown=counts.unknown,
        terminating=counts.terminating,
        task_status_count=tasks,
        **changes,
    )


def with_final_counts(view: JobView, status: JobStatus, counts: JobPodCounts, succeeded: int) -> JobStatus:
    """The counts of a job that is ending. Pods that succeeded stay counted when they are gone; `succeeded` are new."""
    known = max(view.job.status.succeeded, counts.succeeded) + succeeded
    return msgspec.structs.replace(with_counts(status, counts), succeeded=known)


def entering(view: JobView, status: JobStatus, phase: Phase, *, reason: str = "", message: str = "") -> JobStatus:
    """The same status in another phase, with the history of phases kept."""
    state = JobState(phase=phase, reason=reason, message=message, last_transition_time=view.moment)
    return msgspec.structs.replace(status, state=state, conditions=_history(view, status, phase))


def _history(view: JobView, status: JobStatus, phase: Phase) -> list[JobCondition]:
    others = [condition for condition in status.conditions if condition.status != phase]
    return [*others, JobCondition(status=phase, last_transition_time=view.moment)]


def lasting(view: JobView, status: JobStatus) -> JobStatus:
    """With `runningDuration`: from the job's creation to its last transition."""
    created, last = view.job.metadata.creation_timestamp, status.state.last_transition_time
    spent = max(last - created, timedelta(0)) if created is not None and last is not None else timedelta(0)
    return msgspec.structs.replace(status, running_duration=format_duration(spent))


def written(view: JobView, wanted: JobStatus, *, now_idle: bool = True) -> Plan:
    """The patch to the wanted status: immediate, or requeued by the rate limits above when only counters changed."""
    known = view.job.status
    if _timeless(wanted) == _timeless(known):
        return ()
    if not now_idle and _is_first_status(known, wanted):
        created = view.job.metadata.creation_timestamp or view.now
        if is_recent(created, view.now, FIRST_STATUS_DELAY):
            return (Later(created + FIRST_STATUS_DELAY - view.now, WakeCause.WHEN_IDLE, when_idle=True),)
    last = known.state.last_transition_time
    interval = _interval(known, wanted)
    if interval and last is not None and is_recent(last, view.now, interval):
        return (Later(last + interval - view.now),)
    phase = wanted.state.phase
    if phase == known.state.phase:
        state = msgspec.structs.replace(wanted.state, last_transition_time=view.moment)
        wanted = msgspec.structs.replace(wanted, state=state, conditions=_history(view, wanted, Phase(phase)))
    return (patch_status(view.job, wanted),)


def _is_first_status(known: JobStatus, wanted: JobStatus) -> bool:
    """The job has no status yet, and the new one only says Pending."""
    waits = wanted.state.phase == Phase.PENDING and not wanted.state.reason
    return waits and not known.state.phase and not wanted.controlled_resources


def written_as_is(view: JobView, wanted: JobStatus) -> Plan:
    """The patch to the wanted status, whose times are already right."""
    return (patch_status(view.job, wanted),) if wanted != view.job.status else ()


def _timeless(status: JobStatus) -> JobStatus:
    state = msgspec.structs.replace(status.state, last_transition_time=None)
    return msgspec.structs.replace(status, state=state, conditions=[])


def _interval(known: JobStatus, wanted: JobStatus) -> timedelta | None:
    """The rate limit for this change; None: write immediately."""
    if _without_counters(wanted) != _without_counters(known) or wanted.state.reason != known.state.reason:
        return None
    if recorded(wanted) < recorded(known) or _lost(known, wanted):
        return None  # or the next reconcile would take the missing pod for a new loss
    counters_moved = _counters(wanted) != _counters(known)
    return COUNTERS_INTERVAL if counters_moved else MESSAGE_INTERVAL


def recorded(status: JobStatus) -> int:
    """How many pods the status knows of."""
    return sum(sum(task.phase.values()) for task in status.task_status_count.values())


def _lost(known: JobStatus, wanted: JobStatus) -> bool:
    after = wanted.task_status_count
    return any(
        sum(state.phase.values()) > sum(after.get(task, TaskState()).phase.values())
        for task, state in known.task_status_count.items()
    )


def _counters(status: JobStatus) -> tuple[Any, ...]:
    counters = (status.pending, status.running, status.succeeded, status.failed, status.unknown, status.terminating)
    return (*counters, status.task_status_count)


def _without_counters(status: JobStatus) -> JobStatus:
    state = JobState(phase=status.state.phase)
    return with_counts(status, JobPodCounts(), state=state, conditions=[])
