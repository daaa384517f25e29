"""batch/v1 CronJobs (Kubernetes' own; Volcano's are controllers.cronjob's): a Job at each time of a schedule.

A Job's name contains its time, so deciding twice creates it once; the status is derived from the Jobs that exist.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import UTC, datetime, timedelta
from typing import ClassVar, Final

import msgspec

from volcano.api.batch import CronJobStatus
from volcano.api.core import BatchJob
from volcano.api.cron.due import BadSchedule, Due, Timetable, most_recent, timetable
from volcano.api.cron.history import beyond_history
from volcano.api.jobs.sources import BatchCronJobSource
from volcano.api.meta import JSON, Key, ObjectReference, Resource, creation_order
from volcano.api.scheme import resource_type
from volcano.api.times import parse_timestamp, zoned_timestamp
from volcano.machinery.controller import Controller, Wake, Waker, self_key
from volcano.machinery.plan import (
    NOTHING,
    Create,
    Delete,
    Later,
    Plan,
    Record,
    Step,
    owner_reference,
    patch_status,
    ref,
)
from volcano.machinery.world import Change, World

SCHEDULED_AT: Final = "batch.kubernetes.io/cronjob-scheduled-timestamp"
CLOCK_SKEW_MARGIN: Final = timedelta(milliseconds=100)  # waited after each time, in case clocks differ


class BatchCronJobController(Controller):
    """Creates the Jobs of Kubernetes' CronJobs."""

    name: ClassVar = "batch-cronjob"

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {BatchCronJobSource: self_key, BatchJob: _batch_owner}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        cron = world.get(BatchCronJobSource, key)
        if cron is None or cron.is_deleting:
            return NOTHING
        jobs = [job for job in world.where(BatchJob, "owner", cron.uid) if not job.is_deleting]
        notes = tuple(_ended(cron, jobs))
        status = _status(cron, jobs)
        run: Plan = () if cron.spec.suspend else tuple(_run(cron, jobs, world))
        written: Plan = (patch_status(cron, status),) if status != cron.status else ()
        return (*written, *notes, *run, *_pruned(cron, jobs))


def _batch_owner(change: Change[BatchJob]) -> Iterable[Wake]:
    owner = change.object.controller
    if owner is not None and owner.kind == "CronJob" and owner.api_version.startswith("batch/"):
        yield Wake(Key(change.object.namespace, owner.name))


# -- the next one -----------------------------------------------------------------------------------------------
def _run(cron: BatchCronJobSource, jobs: list[BatchJob], world: World) -> Iterable[Step]:
    times = timetable(cron.spec.schedule, cron.spec.time_zone, UTC)
    if isinstance(times, BadSchedule):
        yield _note(cron, times.reason, times.message, warning=True)
        return
    since = cron.status.last_schedule_time or cron.metadata.creation_timestamp or world.now
    deadline_seconds = cron.spec.starting_deadline_seconds
    not_before = world.now - timedelta(seconds=min(deadline_seconds, 10**9)) if deadline_seconds is not None else None
    due = most_recent(times.schedule, since, world.now, not_before=not_before)
    if due is not None and world.get(BatchJob, Key(cron.namespace, job_name(cron, due.time))) is None:
        yield from _made(cron, jobs, due, times)
    following = times.schedule.next(max(world.now, since))
    if following is not None:
        yield Later(following - world.now + CLOCK_SKEW_MARGIN)


def _made(cron: BatchCronJobSource, jobs: list[BatchJob], due: Due, times: Timetable) -> Iterable[Step]:
    name = job_name(cron, due.time)
    active = [job for job in jobs if _is_active(job)]
    if due.missed_many:
        yield _note(
            cron, "TooManyMissedTimes", "more than 100 times were missed; only the last is made good", warning=True
        )
    if active and cron.spec.concurrency_policy == "Forbid":
        message = "Not starting job because prior execution is running and concurrency policy is Forbid"
        yield _note(cron, "JobAlreadyActive", message)
        return
    if cron.spec.concurrency_policy == "Replace":
        for job in active:
            yield Delete(ref(job), propagation="Background")
            yield _note(cron, "SuccessfulDelete", f"Deleted job {job.name}")
    yield Create(resource_type(BatchJob), _job_at(cron, due, times), exists_ok=True)
    yield _note(cron, "SuccessfulCreate", f"Created job {name}")


def job_name(cron: BatchCronJobSource, time: datetime) -> str:
    return f"{cron.name}-{int(time.timestamp()) // 60}"


def _job_at(cron: BatchCronJobSource, due: Due, times: Timetable) -> JSON:
    template = cron.spec.job_template
    metadata = template.get("metadata") or {}
    stamp = zoned_timestamp(due.time, times.shown_in)
    return {
        "metadata": {
            "name": job_name(cron, due.time),
            "namespace": cron.namespace,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": {**(metadata.get("annotations") or {}), SCHEDULED_AT: stamp},
            "ownerReferences": [owner_reference(cron)],
        },
        "spec": template.get("spec") or {},
    }


# -- those that are there ---------------------------------------------------------------------------------------
def _outcome(job: BatchJob) -> tuple[str, datetime] | None:
    """`Complete` or `Failed`, and since when; None while the Job runs."""
    condition = job.end_condition
    return (condition["type"], parse_timestamp(condition["lastTransitionTime"])) if condition is not None else None


def _is_active(job: BatchJob) -> bool:
    """Jobs that a user created from a CronJob belong to it, but do not count as runs of its schedule."""
    return SCHEDULED_AT in job.annotations and _outcome(job) is None


def _status(cron: BatchCronJobSource, jobs: list[BatchJob]) -> CronJobStatus:
    ended = [outcome for job in jobs if (outcome := _outcome(job)) is not None]
    stamps = [job.annotations.get(SCHEDULED_AT) for job in jobs]
    scheduled = [parse_timestamp(stamp) for stamp in stamps if stamp]
    succeeded = [since for kind, since in ended if kind == "Complete"]
    return msgspec.structs.replace(
        cron.status,
        active=[_reference(job) for job in sorted(jobs, key=creation_order) if _is_active(job)],
        last_schedule_time=_latest(cron.status.last_schedule_time, scheduled),
        last_successful_time=_latest(cron.status.last_successful_time, succeeded),
    )


def _latest(known: datetime | None, times: list[datetime]) -> datetime | None:
    return max([*times, *([known] if known is not None else [])], default=None)


def _reference(job: BatchJob) -> ObjectReference:
    return ObjectReference(api_version="batch/v1", kind="Job", namespace=job.namespace, name=job.name, uid=job.uid)


def _ended(cron: BatchCronJobSource, jobs: list[BatchJob]) -> Iterable[Step]:
    """Record the end of Jobs that were active when the status was last written."""
    active = {entry.uid for entry in cron.status.active}
    for job in jobs:
        outcome = _outcome(job)
        if job.uid in active and outcome is not None:
            yield _note(cron, "SawCompletedJob", f"Saw completed job: {job.name}, condition: {outcome[0]}")


def _pruned(cron: BatchCronJobSource, jobs: list[BatchJob]) -> Iterable[Step]:
    limits = {"Complete": cron.spec.successful_jobs_history_limit, "Failed": cron.spec.failed_jobs_history_limit}
    for job in beyond_history(jobs, lambda job: (_outcome(job) or ("",))[0], limits):
        yield Delete(ref(job), propagation="Background")
        yield _note(cron, "SuccessfulDelete", f"Deleted job {job.name}")


def _note(cron: BatchCronJobSource, reason: str, message: str, *, warning: bool = False) -> Record:
    return Record(ref(cron), reason, message, "Warning" if warning else "Normal")
