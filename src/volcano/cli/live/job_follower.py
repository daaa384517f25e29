"""Follow submitted jobs until all have ended: their phases, their pods and the pods' logs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final, NamedTuple

from volcano.api.batch import JOB_NAME_KEY, STOPPED_PHASES, CronJob, Job
from volcano.api.core import FINISHED_POD_PHASES, BatchJob, Pod
from volcano.api.errors import ApiError, NotFound
from volcano.api.flow import JobFlow
from volcano.api.jobs.sources import BatchCronJobSource
from volcano.api.meta import Key, Resource
from volcano.api.scheme import ResourceType, resource_type
from volcano.cli.live.batch_jobs import (
    BATCH_JOBS,
    PODS_BY_SHOWN_JOB,
    owner_of,
    real_key,
    shown_job,
    shown_key,
    shown_pod,
)
from volcano.cli.live.endings import ending
from volcano.cli.live.run_view import RunView
from volcano.cli.live.stuck_jobs import Advise, StuckJobs
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.transport import Request
from volcano.machinery.world import Change, Mirror

PODS: Final = resource_type(Pod)
JOBS, FLOWS, CRON_JOBS = resource_type(Job), resource_type(JobFlow), resource_type(CronJob)
BATCH_CRON_JOBS: Final = resource_type(BatchCronJobSource)
SCHEDULES: Final = (CRON_JOBS, BATCH_CRON_JOBS)
SUCCEEDED_FLOW: Final = "Succeed"
ENDED_FLOWS: Final = (SUCCEEDED_FLOW, "Failed")
MAX_LOG_LINE_BYTES: Final = 16 * 1024
LOG_DRAIN_TIMEOUT: Final = timedelta(seconds=2)
"""How long to wait, after all jobs have ended, for log lines still on their way."""


class JobMaker(NamedTuple):
    """A JobFlow or a CronJob, Kubernetes' own too, whose Jobs are followed as they are made."""

    resource: ResourceType
    key: Key


class JobFollower:
    """Follows jobs and their pods to the end, and passes what changes to a view."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        view: RunView,
        jobs: list[Key],
        *,
        logs: bool = True,
        log_query: tuple[tuple[str, str], ...] = (),
        logs_of: Callable[[Pod], bool] = lambda _pod: True,
        makers: Iterable[JobMaker] = (),
        batch_jobs: Iterable[Key] = (),
        advise: Advise | None = None,
    ) -> None:
        """`batch_jobs` are Kubernetes' own; they are kept and shown in the form of Volcano's.

        `advise` is called with the reason and the changes for jobs that stand still.
        """
        self._stuck = StuckJobs(client, clock, self._going_on, advise) if advise is not None else None
        self._makers = dict.fromkeys(makers, "")
        self._client, self._clock, self._view, self._logs = client, clock, view, logs
        self._log_query, self._logs_of = log_query, logs_of
        self._jobs = dict.fromkeys([*jobs, *map(shown_key, batch_jobs)], "")
        self._mirror = Mirror(clock.now, PODS_BY_SHOWN_JOB)
        self._readers: dict[str, asyncio.Task[None]] = {}
        self._all_ended = asyncio.Event()
        self._begun = clock.monotonic()
        self._took: dict[Key, float] = {}

    async def follow(self) -> dict[Key, str]:
        """The phase each job ended in."""
        informers: list[Informer[Any]] = [
            Informer(self._client, self._mirror, self._clock, reader, namespace=namespace)
            for namespace in sorted({key.namespace for key in (*self._jobs, *(each.key for each in self._makers))})
            for reader in self._followed_kinds()
        ]
        self._mirror.listen(BatchJob, self._batch_job_changed)
        self._mirror.listen(JobFlow, self._flow_changed)
        self._mirror.listen(Job, self._job_changed)
        self._mirror.listen(Pod, self._pod_changed)
        following = [asyncio.ensure_future(informer.run()) for informer in informers]
        try:
            for informer in informers:
                await informer.synced()  # a job that has ended before is known before its pods are
            if self._stuck is not None:
                following.append(asyncio.ensure_future(self._stuck.run()))
            await self._all_ended.wait()
            await self._finish_logs()
        finally:
            for task in (*following, *self._readers.values()):
                task.cancel()
            await asyncio.gather(*following, *self._readers.values(), return_exceptions=True)
        return self._jobs

    def _going_on(self) -> list[tuple[Job, list[Pod]]]:
        going_on = ((self._job(key), self._pods_of(key)) for key, end in self._jobs.items() if not end)
        return [(job, pods) for job, pods in going_on if job is not None]

    def _followed_kinds(self) -> list[type[Resource]]:
        """Only what is needed: other kinds may be forbidden, or not there."""
        makers = {each.resource for each in self._makers}
        is_batch = BATCH_CRON_JOBS in makers or any(real_key(key) for key in self._jobs)
        is_volcano = makers - {BATCH_CRON_JOBS} or any(not real_key(key) for key in self._jobs)
        kinds: list[type[Resource]] = [*([Job] if is_volcano else []), *([BatchJob] if is_batch else [])]
        return [*kinds, *([JobFlow] if FLOWS in makers else []), Pod]

    def endings(self) -> list[str]:
        """How each job ended, in a line."""
        lines = []
        for key, phase in self._jobs.items():
            job = self._job(key)
            counted = f": {ending(job, self._pods_of(key))}" if job is not None else ""
            lines.append(f"{key.name} {phase} after {self._took.get(key, 0.0):.1f} s{counted}")
        return lines

    def _job(self, key: Key) -> Job | None:
        """As it is shown."""
        real = real_key(key)
        if real is None:
            return self._mirror.get(Job, key)
        found = self._mirror.get(BatchJob, real)
        return None if found is None else shown_job(found, self._pods_of(key))

    def _job_changed(self, change: Change[Job]) -> None:
        self._changed(change.object, JOBS, change.object, is_gone=change.new is None)

    def _batch_job_changed(self, change: Change[BatchJob]) -> None:
        found = change.object
        shown = shown_job(found, self._pods_of(shown_key(found.key)))
        self._changed(shown, BATCH_JOBS, found, is_gone=change.new is None)

    def _changed(self, job: Job, resource: ResourceType, found: Resource, *, is_gone: bool) -> None:
        maker = self._maker_of(found, resource)
        if job.key not in self._jobs:
            if maker is None:
                return
            self._jobs[job.key] = ""  # a followed flow or cron job has made it
        if is_gone:
            self._jobs[job.key] = self._jobs[job.key] or "Terminated"
            self._view.line(f"job/{job.name} was deleted")
        else:
            self._view.job_changed(job, self._pods_of(job.key))
            if job.status.state.phase in STOPPED_PHASES:
                self._jobs[job.key] = job.status.state.phase
        if self._jobs[job.key]:
            self._took.setdefault(job.key, self._clock.monotonic() - self._begun)
            if maker is not None and maker.resource in SCHEDULES:
                self._makers[maker] = self._jobs[job.key]  # a schedule has no end: its first run is followed
        self._end_when_all_have()

    def _end_when_all_have(self) -> None:
        if all(self._jobs.values()) and all(self._makers.values()):
            self._all_ended.set()

    def _maker_of(self, job: Resource, resource: ResourceType) -> JobMaker | None:
        makes = (BATCH_CRON_JOBS,) if resource is BATCH_JOBS else (FLOWS, CRON_JOBS)
        owned = {(owner.kind, Key(job.namespace, owner.name)) for owner in job.metadata.owner_references}
        found = (each for each in self._makers if each.resource in makes and (each.resource.kind, each.key) in owned)
        return next(found, None)

    def _flow_changed(self, change: Change[JobFlow]) -> None:
        flow, maker = change.object, JobMaker(FLOWS, change.object.key)
        if maker not in self._makers:
            return
        phase = flow.status.state.phase
        if change.new is None:
            self._makers[maker] = self._makers[maker] or "Terminated"
        elif phase and (change.old is None or change.old.status.state.phase != phase):
            self._view.line(f"jobflow/{flow.name} {phase}")
            self._makers[maker] = phase if phase in ENDED_FLOWS else ""
        self._end_when_all_have()

    @property
    def unfinished(self) -> list[str]:
        """What goes on, by kind and name."""
        jobs = [f"job {key.name}" for key, phase in self._jobs.items() if not phase]
        return [
            *(f"{each.resource.kind.lower()} {each.key.name}" for each, end in self._makers.items() if not end),
            *jobs,
        ]

    @property
    def all_succeeded(self) -> bool:
        ends = (*self._jobs.values(), *self._makers.values())
        return all(end in ("Completed", SUCCEEDED_FLOW) for end in ends)

    @property
    def objects(self) -> list[tuple[ResourceType, Key]]:
        """All that is followed; flows and cron jobs first."""
        jobs = [(BATCH_JOBS, real) if (real := real_key(key)) else (JOBS, key) for key in self._jobs]
        return [*((each.resource, each.key) for each in self._makers), *jobs]

    def _pod_changed(self, change: Change[Pod]) -> None:
        pod, batch_owner = change.object, owner_of(change.object)
        if batch_owner is not None:
            owner, pod = shown_key(batch_owner), shown_pod(pod)
        else:
            owner = Key(pod.namespace, pod.annotations.get(JOB_NAME_KEY, ""))
        if owner not in self._jobs:
            return
        job = self._job(owner)
        if change.new is not None:
            self._view.pod_changed(pod, job)
            wanted = self._logs and pod.uid not in self._readers and self._logs_of(pod)
            if wanted and pod.status.phase in ("Running", *FINISHED_POD_PHASES):
                self._readers[pod.uid] = asyncio.ensure_future(self._read_logs(pod))
        if job is not None:
            self._view.job_changed(job, self._pods_of(owner))

    def _pods_of(self, job: Key) -> list[Pod]:
        found = self._mirror.where(Pod, "job", str(job))
        return [shown_pod(pod) for pod in found] if real_key(job) else found

    async def _read_logs(self, pod: Pod) -> None:
        request = Request("GET", PODS.path(pod.namespace, pod.name, "log"), (("follow", "true"), *self._log_query))
        pending = b""
        try:
            async with self._client.stream(request) as chunks:
                async for chunk in chunks:
                    *lines, pending = (pending + chunk).split(b"\n")
                    for line in lines:
                        self._view.log_line(pod.name, line.decode(errors="replace")[:MAX_LOG_LINE_BYTES])
                    pending = pending[-MAX_LOG_LINE_BYTES:]
        except (ApiError, OSError) as error:
            if not isinstance(error, NotFound):
                self._view.line(f"the logs of {pod.name} cannot be read: {error}")
        if pending:
            self._view.log_line(pod.name, pending.decode(errors="replace"))

    async def _finish_logs(self) -> None:
        if self._readers:
            await asyncio.wait(self._readers.values(), timeout=LOG_DRAIN_TIMEOUT.total_seconds())
