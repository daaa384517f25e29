"""Which changes of Jobs, pods, PodGroups and Commands requeue a job, and with which cause."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from volcano.api.batch import JOB_NAME_KEY, OUT_OF_SYNC_KEY, PARTITION_KEY, TASK_SPEC_KEY, Job
from volcano.api.bus import Command
from volcano.api.core import Pod
from volcano.api.jobs.dependencies import array_of
from volcano.api.meta import Key
from volcano.api.scheduling import WHY_ANNOTATION, PodGroup
from volcano.controllers.job.occurrences import PodBecame, PodGone, restart_count
from volcano.controllers.job.reasons import waiting_condition
from volcano.controllers.job.view import DEFAULT_TASK, version_of
from volcano.machinery.controller import Wake
from volcano.machinery.world import Change

API_VERSION: Final = "batch.volcano.sh/v1alpha1"


class WakeCause(Enum):
    """AT_ONCE: an object changed, reconcile immediately. WHEN_IDLE: the queue is idle, write what was postponed."""

    AT_ONCE = "at once"
    WHEN_IDLE = "when idle"


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """The PodGroup has a condition that blocks it; the job gets an Event about it."""

    condition: str
    message: str


@dataclass(frozen=True, slots=True)
class ArrayMemberGone:
    """The job was deleted; others of its array may have their turn."""

    array: str


def targets_of(command: Command) -> Iterable[str]:
    target = command.target
    if target is not None and (target.api_version, target.kind) == (API_VERSION, "Job"):
        yield str(Key(command.namespace, target.name))


def job_changes(change: Change[Job]) -> Iterable[Wake]:
    old, new = change.old, change.new
    if new is None:
        yield Wake(change.object.key, ArrayMemberGone(array_of(change.object)))  # others may wait for it
    elif old is None or _relevant(old) != _relevant(new):
        yield Wake(new.key, WakeCause.AT_ONCE)


def _relevant(job: Job) -> tuple[object, ...]:
    """The fields whose change needs a reconcile; counters are written by the controller itself."""
    status = job.status
    records = (status.state.phase, status.version, status.retry_count, status.controlled_resources)
    return (job.spec, job.annotations, job.labels, job.is_deleting, *records)


def pod_changes(change: Change[Pod]) -> Iterable[Wake]:
    pod, owner = change.object, change.object.controller
    name = pod.annotations.get(JOB_NAME_KEY, "")
    if owner is None or owner.kind != "Job" or owner.api_version != API_VERSION or not name:
        return
    key, old, new = Key(pod.namespace, name), change.old, change.new
    if new is None:
        gone = PodGone(
            pod=pod.name,
            uid=pod.uid,
            job_uid=owner.uid,
            task=pod.annotations.get(TASK_SPEC_KEY) or DEFAULT_TASK,
            partition=pod.labels.get(PARTITION_KEY, ""),
            version=version_of(pod),
            marked=OUT_OF_SYNC_KEY in pod.annotations,
            phase=pod.status.phase,
        )
        yield Wake(key, gone)
    elif old is None or old.status.phase != new.status.phase:
        yield Wake(key, PodBecame(new.name, new.status.phase or "Pending"))
    elif _pod_fields(old) != _pod_fields(new):
        yield Wake(key, WakeCause.AT_ONCE)


def _pod_fields(pod: Pod) -> tuple[object, ...]:
    """Besides the phase: deletion, the out-of-sync mark, readiness, restarts, and what hinders a start."""
    statuses = pod.status.container_statuses
    ready = all(status.ready for status in statuses)
    hindrances = [s.state.waiting.reason for s in statuses if s.state.waiting is not None and s.state.waiting.message]
    return (pod.is_deleting, OUT_OF_SYNC_KEY in pod.annotations, ready, restart_count(pod), hindrances)


def group_changes(change: Change[PodGroup]) -> Iterable[Wake]:
    owners = [owner for owner in change.object.metadata.owner_references if owner.kind == "Job"]
    name = owners[-1].name if owners else change.object.name
    key, old, new = Key(change.object.namespace, name), change.old, change.new
    if owners and owners[-1].api_version != API_VERSION:
        return
    if new is None:
        yield Wake(key, WakeCause.AT_ONCE)
        return
    before, now = waiting_condition(old) if old is not None else None, waiting_condition(new)
    if now is not None and (before is None or (before.type, before.message) != (now.type, now.message)):
        yield Wake(key, GroupWaits(now.type, now.message))
    elif old is None or _group_fields(old) != _group_fields(new):
        yield Wake(key, WakeCause.AT_ONCE)


def _group_fields(group: PodGroup) -> tuple[object, ...]:
    return (group.spec, group.status.phase, group.is_deleting, group.annotations.get(WHY_ANNOTATION))


def command_changes(change: Change[Command]) -> Iterable[Wake]:
    """A new Command is carried out; once its deletion is seen, the job continues with postponed work."""
    if change.old is None or change.new is None:
        for target in targets_of(change.object):
            yield Wake(Key.parse(target), WakeCause.AT_ONCE)
