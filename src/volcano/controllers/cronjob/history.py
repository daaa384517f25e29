"""A CronJob's status with its active Jobs, and which finished Jobs are kept."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

import msgspec

from volcano.api.batch import FINISHED_PHASES, CronJobStatus, Job, Phase
from volcano.api.cron.history import beyond_history
from volcano.api.jobs.sources import CronJobSource
from volcano.api.meta import ObjectReference
from volcano.api.scheme import resource_type
from volcano.machinery.plan import Delete, Record, Step, ref

SCHEDULED_AT: Final = "volcano.sh/cronjob-scheduled-timestamp"


@dataclass(slots=True)
class StatusUpdate:
    """The next status of a CronJob, and the events and steps that go with it."""

    status: CronJobStatus
    steps: list[Step] = field(default_factory=list)

    @property
    def active(self) -> list[ObjectReference]:
        return self.status.active

    def set_active(self, active: list[ObjectReference]) -> None:
        self.status = msgspec.structs.replace(self.status, active=active)


def is_finished(job: Job) -> bool:
    return job.status.state.phase in FINISHED_PHASES


def is_owned(job: Job, cron: CronJobSource) -> bool:
    owner = job.controller
    return owner is not None and owner.uid == cron.uid and owner.kind == "CronJob"


def reference_to(job: Job) -> ObjectReference:
    row = resource_type(Job)
    return ObjectReference(
        api_version=row.api_version,
        kind=row.kind,
        namespace=job.namespace,
        name=job.name,
        uid=job.uid,
        resource_version=job.metadata.resource_version,
    )


def reconciled(cron: CronJobSource, jobs: list[Job], appeared: Iterable[str]) -> StatusUpdate:
    """Remove finished and deleted Jobs from `active`, and add Jobs that a crash kept from being recorded."""
    update = StatusUpdate(cron.status)
    by_uid = {job.uid: job for job in jobs}
    active: list[ObjectReference] = []
    for entry in cron.status.active:
        job = by_uid.get(entry.uid)
        if job is None:
            update.steps.append(_note(cron, "StaleReference", f"Job {entry.name} is gone", warning=True))
        elif is_finished(job):
            update.steps.append(_note(cron, "SawCompletedJob", f"Job {job.name} is {job.status.state.phase}"))
        else:
            active.append(entry)
    known = {entry.uid for entry in active}
    for job in jobs:
        if is_finished(job) or job.is_deleting or job.uid in known:
            continue
        if SCHEDULED_AT in job.annotations:
            active.append(reference_to(job))
        elif job.name in appeared:
            update.steps.append(_note(cron, "OrphanedJob", f"Job {job.name} is not of the schedule", warning=True))
    if active != cron.status.active:
        update.set_active(active)
    _record_successes(update, jobs)
    return update


def _record_successes(update: StatusUpdate, jobs: Iterable[Job]) -> None:
    times = [update.status.last_successful_time] if update.status.last_successful_time is not None else []
    for job in jobs:
        state = job.status.state
        if state.phase == Phase.COMPLETED and state.last_transition_time is not None:
            times.append(state.last_transition_time)
    if times and max(times) != update.status.last_successful_time:
        update.status = msgspec.structs.replace(update.status, last_successful_time=max(times))


def pruned(cron: CronJobSource, jobs: Iterable[Job]) -> Iterable[Step]:
    """Finished Jobs beyond the limits go, the oldest first. Terminated and Aborted ones always stay."""
    limits: dict[str, int | None] = {
        Phase.COMPLETED: cron.spec.successful_jobs_history_limit,
        Phase.FAILED: cron.spec.failed_jobs_history_limit,
    }
    for job in beyond_history(jobs, lambda job: job.status.state.phase, limits):
        yield Delete(ref(job), propagation="Background")
        yield _note(cron, "SuccessfulDelete", f"Job {job.name} is deleted")


def _note(cron: CronJobSource, reason: str, message: str, *, warning: bool = False) -> Record:
    return Record(ref(cron), reason, message, "Warning" if warning else "Normal")
