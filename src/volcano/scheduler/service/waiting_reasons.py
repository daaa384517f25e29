"""WaitingReasons: finds why jobs wait, for what is written about them; it takes a bounded share of the time.

Every turn reports the jobs that wait. Their reasons are found one after the other by the Explainer, as for a user who
asks, and the next turn writes them. After each question it pauses for many times as long as the question took, so that
cycles are not delayed by more than SHARE_OF_TIME. While nothing changes, nothing is asked again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from volcano.api.batch import Job
from volcano.api.core import Event
from volcano.api.errors import ApiError
from volcano.api.jobs.why import Why
from volcano.api.meta import JSON, Key
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.api.why.reasons import REASONS, Finding
from volcano.api.why.tiers import Tier
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.world import Mirror
from volcano.scheduler.commit.told_reasons import ToldReasons
from volcano.scheduler.model.job import ADOPTED
from volcano.scheduler.service.explaining import Explainer
from volcano.scheduler.service.job_expansion import BadSimulation

log = logging.getLogger(__name__)
JOBS: Final = resource_type(Job)
EVENTS: Final = resource_type(Event)
MAX_EVENTS: Final = 100
SHARE_OF_TIME: Final = 0.04
MIN_PAUSE: Final = timedelta(milliseconds=10)
SETTLING_TIME: Final = timedelta(milliseconds=200)
"""A job that has waited for less is not asked about: most are placed by then."""
HOLDING_TIME: Final = timedelta(seconds=1)
"""For so long nothing is written about a job that begins to wait, if its reason is not found sooner."""
NEWS_INTERVAL: Final = timedelta(seconds=2)
"""Between two questions about a job that is now refused by something else."""
REFRESH_INTERVAL: Final = timedelta(seconds=30)
"""Between two questions about a job while objects change."""
MAX_RETRY_INTERVAL: Final = timedelta(minutes=5)
UNTOLD: Final = frozenset({Tier.STARTING, Tier.NOTHING})
"""What these say is over when it is written: the cycle knows better that the job waits."""
TOLD_ALTHOUGH_STARTING: Final = "WillPreempt"


@dataclass(slots=True)
class _WaitingJob:
    why: Why
    since: datetime
    due: datetime | None  # None: it is not asked about again unless something changes
    found: Finding | None = None
    asked: datetime | None = None
    retry_interval: timedelta = NEWS_INTERVAL


class WaitingReasons:
    """Only the event loop touches it."""

    def __init__(
        self, client: Client, clock: Clock, mirror: Mirror, explainer: Explainer, on_found: Callable[[], None]
    ) -> None:
        """`on_found` is called when there is something new to write."""
        self._client, self._clock, self._mirror = client, clock, mirror
        self._explainer, self._on_found = explainer, on_found
        self._jobs: dict[str, _WaitingJob] = {}
        self._changed = asyncio.Event()

    def told(self) -> ToldReasons:
        now = self._clock.now()
        return ToldReasons(
            {id: job.found for id, job in self._jobs.items() if job.found is not None},
            frozenset(id for id, job in self._jobs.items() if job.asked is not None or now - job.since >= HOLDING_TIME),
        )

    def report(self, waiting: Mapping[str, Why], *, has_changes: bool) -> None:
        """Which jobs wait after a turn; `has_changes`: whether objects had changed since the turn before."""
        now = self._clock.now()
        for id in [id for id in self._jobs if id not in waiting]:
            del self._jobs[id]
        for id, why in waiting.items():
            job = self._jobs.get(id)
            if job is None:
                self._jobs[id] = _WaitingJob(why, now, now + SETTLING_TIME)
            elif why.is_news(job.why):
                job.due = _earlier(job.due, (job.asked or now) + NEWS_INTERVAL)
                job.why, job.retry_interval = why, NEWS_INTERVAL
            elif has_changes or why != job.why:
                job.due = _earlier(job.due, (job.asked or now) + REFRESH_INTERVAL)
                job.why = why
        self._changed.set()

    # -- asking --------------------------------------------------------------------------------------------------
    async def run(self) -> None:
        """Until cancelled."""
        while True:
            id = await self._next()
            begun = self._clock.monotonic()
            try:
                await self._find(id)
            except BadSimulation as error:
                log.warning("no reason is looked for, for job %s: %s", id, error)
                self._settle(id, None)
            except Exception:
                # An explanation that fails must not end the others; the job keeps what the cycle recorded.
                log.exception("no reason was found for job %s", id)
                self._settle(id, None)
            took = timedelta(seconds=self._clock.monotonic() - begun)
            await self._clock.sleep(max(MIN_PAUSE, took * ((1 - SHARE_OF_TIME) / SHARE_OF_TIME)))

    async def _next(self) -> str:
        """The job that has been due for the longest time."""
        while True:
            self._changed.clear()
            id, due = min(
                ((id, job.due) for id, job in self._jobs.items() if job.due is not None),
                key=lambda item: (item[1], item[0]),
                default=("", None),
            )
            left = (due - self._clock.now()).total_seconds() if due is not None else None
            if left is not None and left <= 0:
                return id
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._changed.wait()

    async def _find(self, id: str) -> None:
        question = await self._question(id)
        answer = await self._explainer.answer(question)
        known = REASONS[answer.reason]
        override = answer.tier if answer.tier != known.tier else ""
        found = Finding(answer.reason, dict(answer.facts), override)
        is_told = found.tier not in UNTOLD or found.reason == TOLD_ALTHOUGH_STARTING
        self._settle(id, found if is_told else None)

    def _settle(self, id: str, found: Finding | None) -> None:
        job = self._jobs.get(id)
        if job is None:
            return  # it does not wait any more
        now = self._clock.now()
        is_news = job.asked is None or found != job.found
        job.asked, job.found, job.due = now, found, None
        if found is None:
            job.due, job.retry_interval = now + job.retry_interval, min(job.retry_interval * 2, MAX_RETRY_INTERVAL)
        if is_news:
            self._on_found()

    async def _question(self, id: str) -> JSON:
        """About the Job that a PodGroup belongs to, if it is Volcano's; else about the PodGroup or the pod itself."""
        namespace, _, name = id.partition("/")
        brief: JSON = {"namespace": namespace, "changes": False, "details": False}
        if name.startswith(ADOPTED):
            return {"kind": "Pod", "name": name.removeprefix(ADOPTED), **brief}
        group = self._mirror.get(PodGroup, Key(namespace, name))
        owners = group.metadata.owner_references if group is not None else []
        owner = next((each for each in owners if each.kind == "Job" and _is_volcanos(each.api_version)), None)
        if owner is not None:
            with contextlib.suppress(ApiError, OSError):
                body = await self._client.get_json(JOBS, Key(namespace, owner.name))
                events = await self._refusals(namespace, owner.name)
                return {"kind": "Job", "name": owner.name, "object": body, "events": events, **brief}
        return {"kind": "PodGroup", "name": name, **brief}

    async def _refusals(self, namespace: str, job: str) -> list[JSON]:
        """The API server's refusals of the job's pods, which its controller recorded."""
        selector = f"involvedObject.name={job},reason=FailedCreate"
        listed = await self._client.list_json(EVENTS, namespace, fieldSelector=selector, limit=str(MAX_EVENTS))
        return list(listed.get("items") or ())


def _is_volcanos(api_version: str) -> bool:
    return api_version.startswith("batch.volcano.sh/")


def _earlier(due: datetime | None, moment: datetime) -> datetime:
    return moment if due is None else min(due, moment)
