"""What wakes the job controller, and the causes it is handed: changes of Jobs, pods, PodGroups and Commands."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import Final

from volcano.api.batch import JOB_NAME_KEY, OUT_OF_SYNC_KEY, PARTITION_KEY, TASK_SPEC_KEY, Job
from volcano.api.bus import Command
from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.scheduling import WHY_ANNOTATION, PodGroup
from volcano.controllers.job.occurrences import PodBecame, PodGone, restart_count
from volcano.controllers.job.reasons import waiting_condition
from volcano.controllers.job.view import DEFAULT_TASK, version_of
from volcano.machinery.controller import Wake
from volcano.machinery.world import Change

API_VERSION: Final = "batch.volcano.sh/v1alpha1"


class WakeCause(Enum):
    """The cause of a decision: something changed that the objects themselves tell and that must not wait, or nothing
    did and there is time to say what has not been said."""

    AT_ONCE = "at once"
    WHEN_IDLE = "when idle"


@dataclass(frozen=True, slots=True)
class GroupWaits:
    """The PodGroup says that it cannot go on: the cause of a decision, told to people as an Event."""

    condition: str
    message: str


def targets_of(command: Command) -> Iterable[str]:
    target = command.target
    if target is not None and (target.api_version, target.kind) == (API_VERSION, "Job"):
        yield str(Key(command.namespace, target.name))


def job_changes(change: Change[Job]) -> Iterable[Wake]:
    old, new = change.old, change.new
    if new is None:
        return
    if old is None or _relevant(old) != _relevant(new):
        yield Wake(new.key, WakeCause.AT_ONCE)


def _relevant(job: Job) -> tuple[object, ...]:
    """Counters change by our own hand and are looked at anyway."""
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
        )
        yield Wake(key, gone)
    elif old is None or old.status.phase != new.status.phase:
        yield Wake(key, PodBecame(new.name, new.status.phase or "Pending"))
    elif _looks(old) != _looks(new):
        yield Wake(key, WakeCause.AT_ONCE)


def _looks(pod: Pod) -> tuple[object, ...]:
    """What of a pod matters besides its phase: that it goes, that it is ready, and how often it was restarted."""
    ready = all(status.ready for status in pod.status.container_statuses)
    return (pod.is_deleting, OUT_OF_SYNC_KEY in pod.annotations, ready, restart_count(pod))


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
    elif old is None or _group_looks(old) != _group_looks(new):
        yield Wake(key, WakeCause.AT_ONCE)


def _group_looks(group: PodGroup) -> tuple[object, ...]:
    return (group.spec, group.status.phase, group.is_deleting, group.annotations.get(WHY_ANNOTATION))


def command_changes(change: Change[Command]) -> Iterable[Wake]:
    """A Command that comes is obeyed; when it is seen to go, the job goes on with what it had to wait with."""
    if change.old is None or change.new is None:
        for target in targets_of(change.object):
            yield Wake(Key.parse(target), WakeCause.AT_ONCE)
