"""cronjob: make a Job at each time of a schedule, as the concurrency policy and the starting deadline allow.

A Job's name contains its time, so two reconciles create it once. The Job is created first and entered in the status
when it is seen, so a crash between the two is repaired by the next reconcile.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import ClassVar, Final

import msgspec

from volcano.api.batch import Job
from volcano.api.cron.due import BadSchedule, Due, Timetable, most_recent, timetable
from volcano.api.jobs.estimates import submitter, without_submitter
from volcano.api.jobs.sources import CronJobSource
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import resource_type
from volcano.api.times import zoned_timestamp
from volcano.controllers.cronjob.history import SCHEDULED_AT, StatusUpdate, is_finished, is_owned, pruned, reconciled
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

CLOCK_SKEW_MARGIN: Final = timedelta(milliseconds=100)


@dataclass(frozen=True, slots=True)
class Appeared:
    """A Job of a CronJob was seen for the first time."""

    name: str


class CronJobController(Controller):
    """Makes the Jobs of CronJobs."""

    name: ClassVar = "cronjob"

    def __init__(self, *, local_zone: tzinfo = UTC) -> None:
        self._local_zone = local_zone

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {CronJobSource: self_key, Job: _jobs}

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        cron = world.get(CronJobSource, key)
        if cron is None or cron.is_deleting:
            return NOTHING
        jobs = [job for job in world.where(Job, "owner", cron.uid) if is_owned(job, cron)]
        update = reconciled(cron, jobs, [cause.name for cause in causes if isinstance(cause, Appeared)])
        prunes = tuple(pruned(cron, jobs))
        run = () if cron.spec.suspend else tuple(self._run(cron, update, world))
        written: Plan = (patch_status(cron, update.status),) if update.status != cron.status else ()
        # The status comes before the new Job: what it replaces must not count as active when it is seen.
        return (*written, *update.steps, *run, *prunes)

    def _run(self, cron: CronJobSource, update: StatusUpdate, world: World) -> Iterable[Step]:
        times = timetable(cron.spec.schedule, cron.spec.time_zone, self._local_zone)
        if isinstance(times, BadSchedule):
            yield _warning(cron, times.reason, times.message)
            return
        if times.complaint is not None:
            yield _warning(cron, times.complaint.reason, times.complaint.message)
        since = _since(cron, world.now)
        upcoming = times.schedule.next(world.now)
        if upcoming is None and times.schedule.next(since) is None:
            yield _warning(cron, "InvalidSchedule", f"the schedule {cron.spec.schedule!r} never comes")
            return
        due = most_recent(times.schedule, since, world.now, not_before=_deadline(cron, world.now))
        if due is not None:
            yield from self._serve(cron, update, world, due=due, times=times)
        following = _following(times, since, due, world.now)
        if following is not None:
            yield Later(following - world.now + CLOCK_SKEW_MARGIN)

    def _serve(
        self, cron: CronJobSource, update: StatusUpdate, world: World, *, due: Due, times: Timetable
    ) -> Iterable[Step]:
        """Create the Job of a time, unless it exists or the concurrency policy forbids it."""
        name = job_name(cron, due.time)
        found = world.get(Job, Key(cron.namespace, name))
        if found is not None:
            yield from _take(cron, update, found, due)
            return
        if due.missed_many:
            yield _warning(
                cron, "TooManyMissedTimes", "more than 100 times were missed; only the last one is made good"
            )
        active = [job for entry in update.active if (job := _active(entry.uid, world, cron)) is not None]
        if active and cron.spec.concurrency_policy == "Forbid":
            yield _warning(cron, "ForbidConcurrent", f"{active[0].name} still runs; {name} is not made now")
            return
        if active and cron.spec.concurrency_policy == "Replace":
            for job in active:
                yield _warning(cron, "ReplaceConcurrent", f"{job.name} is deleted to make room for {name}")
                yield Delete(ref(job), propagation="Background")
            update.set_active([])
        yield Create(resource_type(Job), job_at(cron, due.time, times.shown_in))
        yield Record(ref(cron), "SuccessfulCreate", f"Job {name} is created")


def _take(cron: CronJobSource, update: StatusUpdate, job: Job, due: Due) -> Iterable[Step]:
    """The Job of this time exists: record it if this CronJob owns it, else warn and leave it alone."""
    if not is_owned(job, cron):
        yield _warning(cron, "ForeignJob", f"the name {job.name} is taken by a Job that is not of this CronJob")
        return
    last = update.status.last_schedule_time
    if last is None or last < due.time:
        update.status = msgspec.structs.replace(update.status, last_schedule_time=due.time)


def _active(uid: str, world: World, cron: CronJobSource) -> Job | None:
    jobs = world.where(Job, "owner", cron.uid)
    return next((job for job in jobs if job.uid == uid and not is_finished(job)), None)


def _since(cron: CronJobSource, now: datetime) -> datetime:
    """Times up to this one were handled, or lie before the creation of the CronJob."""
    return cron.status.last_schedule_time or cron.metadata.creation_timestamp or now


def _deadline(cron: CronJobSource, now: datetime) -> datetime | None:
    """Times before this are skipped."""
    seconds = cron.spec.starting_deadline_seconds
    return now - timedelta(seconds=min(seconds, 10**9)) if seconds is not None else None


def _following(times: Timetable, since: datetime, due: Due | None, now: datetime) -> datetime | None:
    """The next time after now. Times of an interval count from the last one."""
    following = times.schedule.next(due.time if due is not None else since)
    return following if following is None or following > now else times.schedule.next(now)


def job_name(cron: CronJobSource, time: datetime) -> str:
    return f"{cron.name}-{int(time.timestamp()) // 60}"


def job_at(cron: CronJobSource, time: datetime, zone: tzinfo) -> JSON:
    """The Job of one time of the schedule."""
    template = cron.spec.job_template
    metadata = template.get("metadata") or {}
    stamp = zoned_timestamp(time, zone)
    return {
        "metadata": {
            "name": job_name(cron, time),
            "namespace": cron.namespace,
            "labels": dict(metadata.get("labels") or {}),
            "annotations": {**without_submitter(metadata.get("annotations")), SCHEDULED_AT: stamp, **submitter(cron)},
            "ownerReferences": [owner_reference(cron)],
        },
        "spec": template.get("spec") or {},
    }


def _warning(cron: CronJobSource, reason: str, message: str) -> Record:
    return Record(ref(cron), reason, message, "Warning")


def _jobs(change: Change[Job]) -> Iterable[Wake]:
    owner = change.object.controller
    if owner is not None and owner.kind == "CronJob":
        cause = Appeared(change.object.name) if change.old is None else None
        yield Wake(Key(change.object.namespace, owner.name), cause)
