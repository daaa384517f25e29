"""The events of a job that policies can match, read from its objects rather than kept in memory.

A failed pod of the job's version is PodFailed until a policy has handled it, so a restarted controller sees what it
missed. A deleted pod leaves no object: the change itself is the event (`PodGone`), or after a restart, a pod that the
status recorded and that no longer exists.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from volcano.api.batch import BusEvent, TaskSpec
from volcano.api.core import Pod
from volcano.controllers.job.view import JobPod, JobView, partition_of, pod_name, task_name

DEFAULT_MAX_RETRY: Final = 3
NEVER: Final = -1


@dataclass(frozen=True, slots=True)
class PodGone:
    """A pod was removed: the cause of a decision."""

    pod: str
    uid: str
    job_uid: str
    task: str
    partition: str
    version: int
    marked: bool  # by us, as one to end
    phase: str = ""  # as it was last seen


@dataclass(frozen=True, slots=True)
class PodBecame:
    """A pod was added or entered a phase: the cause of a decision."""

    pod: str
    phase: str


@dataclass(frozen=True, slots=True)
class Armed:
    """A policy with a timeout began to wait: the cause of the decision when the time is over."""

    event: BusEvent
    task: str
    pod: str
    since: datetime


@dataclass(frozen=True, slots=True)
class Occurrence:
    """One event that a policy may answer."""

    event: BusEvent
    task: str = ""
    pod: str = ""
    partition: str = ""
    exit_code: int = 0
    since: datetime | None = None

    def __str__(self) -> str:
        about = f" of pod {self.pod}" if self.pod else f" of task {self.task}" if self.task else ""
        code = f" with exit code {self.exit_code}" if self.exit_code else ""
        return f"{self.event}{about}{code}"


def succeeded_while_ended(view: JobView, causes: Sequence[Hashable]) -> int:
    """How many pods that the controller deleted had succeeded by themselves before they were removed."""
    gone = (cause for cause in causes if isinstance(cause, PodGone) and cause.job_uid == view.job.uid)
    return sum(cause.marked and cause.phase == "Succeeded" for cause in gone)


def occurrences(view: JobView, causes: Sequence[Hashable], *, spared: frozenset[str]) -> list[Occurrence]:
    """Everything outstanding, oldest first. `spared` are pods about which something is being done already."""
    gone = [cause for cause in causes if isinstance(cause, PodGone) and cause.job_uid == view.job.uid]
    found = [*_of_tasks(view, spared), *_evicted(view, gone), *_unknown(view)]
    armed = {(c.event, c.task, c.pod): c.since for c in causes if isinstance(c, Armed)}
    known = [_since(occurrence, armed, view.now) for occurrence in found]
    return sorted(known, key=lambda each: each.since or view.now)  # stable: task order, then index order


def _since(occurrence: Occurrence, armed: dict[tuple[BusEvent, str, str], datetime], now: datetime) -> Occurrence:
    """With the time from which its policy counts. A time to come, of a node whose clock is wrong, is ignored."""
    stated = occurrence.since if occurrence.since is not None and occurrence.since <= now else None
    since = stated or armed.get((occurrence.event, occurrence.task, occurrence.pod))
    return Occurrence(
        occurrence.event, occurrence.task, occurrence.pod, occurrence.partition, occurrence.exit_code, since
    )


def _of_tasks(view: JobView, spared: frozenset[str]) -> Iterator[Occurrence]:
    for task in view.job.spec.tasks:
        members = view.by_task[task_name(task)]
        current = [m for m in members if not (m.marked or m.name in spared or view.is_old(m))]
        for member in current:
            if member.phase == "Failed":
                yield _of(BusEvent.POD_FAILED, member, finished_at(member.pod), exit_code(member.pod))
            elif member.phase == "Pending" and not member.is_deleting:
                yield _of(BusEvent.POD_PENDING, member, member.pod.metadata.creation_timestamp)
        yield from _completed(task, members, current)
        yield from _retried_too_often(task, current)


def _of(event: BusEvent, member: JobPod, since: datetime | None, code: int = 0) -> Occurrence:
    return Occurrence(event, member.task, member.name, member.partition, code, since)


def _completed(task: TaskSpec, members: list[JobPod], current: list[JobPod]) -> Iterator[Occurrence]:
    succeeded = [member for member in current if member.phase == "Succeeded"]
    if succeeded and 0 < task.replicas <= sum(member.phase == "Succeeded" for member in members):
        last = max(succeeded, key=lambda member: (str(finished_at(member.pod) or ""), member.name))
        yield _of(BusEvent.TASK_COMPLETED, last, finished_at(last.pod))


def _retried_too_often(task: TaskSpec, current: list[JobPod]) -> Iterator[Occurrence]:
    limit = task.max_retry or DEFAULT_MAX_RETRY
    if limit == NEVER or task.replicas == 0:
        return
    restarts = {m.name: restart_count(m.pod) for m in current if m.phase in ("Running", "Pending")}
    if restarts and sum(restarts.values()) >= limit:
        worst = max((m for m in current if m.name in restarts), key=lambda member: restarts[member.name])
        yield _of(BusEvent.TASK_FAILED, worst, None)


def _evicted(view: JobView, gone: list[PodGone]) -> Iterator[Occurrence]:
    seen = [each for each in gone if _is_news(view, each)]
    for each in seen:
        yield Occurrence(BusEvent.POD_EVICTED, each.task, each.pod, each.partition)
    names = {each.pod for each in seen}
    for pod, moment in view.records.evicted.items():
        if not has_run_again(view, pod) and pod not in names:
            slot = next(((task, index) for task, index, name in view.slots() if name == pod), None)
            task, partition = (task_name(slot[0]), partition_of(*slot)) if slot is not None else ("", "")
            yield Occurrence(BusEvent.POD_EVICTED, task, pod, partition, since=moment)
    yield from _missed(view, Counter(each.task for each in gone if not each.marked))


def _is_news(view: JobView, gone: PodGone) -> bool:
    """Not our own doing, and not answered yet: neither made again nor about to be restarted."""
    if gone.marked or gone.version < view.job.status.version or gone.pod in view.by_name:
        return False
    targets = view.records.targets
    return not any(t.covers(task=gone.task, pod=gone.pod, partition=gone.partition) for t in targets)


def _missed(view: JobView, seen: Counter[str]) -> Iterator[Occurrence]:
    """Pods that were deleted while the controller did not run: by number, so the first missing ones are taken."""
    for task in view.job.spec.tasks:
        name = task_name(task)
        state = view.job.status.task_status_count.get(name)
        if state is None:
            continue
        present = sum(not member.marked for member in view.by_task[name])
        lost = sum(state.phase.values()) - present - seen[name]
        if lost <= 0:
            continue
        names = (pod_name(view.job, task, index) for index in range(task.replicas))
        missing = [(index, pod) for index, pod in enumerate(names) if pod not in view.by_name]
        for index, pod in missing[:lost]:
            yield Occurrence(BusEvent.POD_EVICTED, name, pod, partition_of(task, index))


def has_run_again(view: JobView, pod: str) -> bool:
    """A pod of that name runs or has run since."""
    member = view.by_name.get(pod)
    return member is not None and not member.marked and member.phase != "Pending"


def _unknown(view: JobView) -> Iterator[Occurrence]:
    group = view.group
    if group is not None and group.status.phase == "Unknown" and not group.is_deleting:
        times = [condition.last_transition_time for condition in group.status.conditions]
        yield Occurrence(BusEvent.JOB_UNKNOWN, since=max((time for time in times if time is not None), default=None))


def exit_code(pod: Pod) -> int:
    """Only the first container is asked."""
    statuses = pod.status.container_statuses
    terminated = statuses[0].state.terminated if statuses else None
    return terminated.exit_code if terminated is not None else 0


def restart_count(pod: Pod) -> int:
    statuses = (*pod.status.init_container_statuses, *pod.status.container_statuses)
    return sum(status.restart_count for status in statuses)


def finished_at(pod: Pod) -> datetime | None:
    """When the last container ended, or failing that when the pod's conditions last changed."""
    ends = [s.state.terminated.finished_at for s in pod.status.container_statuses if s.state.terminated is not None]
    known = [end for end in ends if end is not None]
    if known:
        return max(known)
    changes = (condition.last_transition_time for condition in pod.status.conditions)
    return max((change for change in changes if change is not None), default=None)
