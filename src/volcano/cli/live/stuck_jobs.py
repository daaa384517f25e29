"""StuckJobs: asks the scheduler about followed jobs that stand still, and shows what no waiting will change.

The scheduler finds the reason and the changes (cli.explain); a job is asked about only when it has not changed for some
seconds and something of it does not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import timedelta
from typing import Any, Final

import msgspec

from volcano.api.batch import Job
from volcano.api.core import FINISHED_POD_PHASES, Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.why.answers import WhyAnswer
from volcano.cli.explain import PATH
from volcano.cli.explain_facts import gather
from volcano.cli.live.batch_jobs import real_key
from volcano.cli.permitted_changes import with_permitted_changes
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request

LOOK_INTERVAL: Final = timedelta(seconds=2)
MAX_CHANGES_SHOWN: Final = 2

Advise = Callable[[Job, list[str]], None]
Followed = Callable[[], Iterable[tuple[Job, list[Pod]]]]


class StuckJobs:
    """`followed` gives the jobs that have not ended, each with its pods."""

    def __init__(self, client: Client, clock: Clock, followed: Followed, advise: Advise) -> None:
        self._client, self._clock, self._followed, self._advise = client, clock, followed, advise
        self._seen: dict[Key, Any] = {}
        self._asked: dict[Key, Any] = {}

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._clock.sleep(LOOK_INTERVAL)
            for job, pods in list(self._followed()):
                state = _state(job, pods)
                stands_still = self._seen.get(job.key) == state
                self._seen[job.key] = state
                if stands_still and self._asked.get(job.key) != state and _something_waits(job, pods):
                    self._asked[job.key] = state
                    self._advise(job, await self._advice(job))

    async def _advice(self, job: Job) -> list[str]:
        """Nothing when waiting helps, or when the scheduler cannot be asked."""
        real = real_key(job.key)
        kind, key = ("vcjob", job.key) if real is None else ("job", real)
        try:
            question = await gather(self._client, kind, key.namespace, key.name)
            body = msgspec.json.encode(question)
            request = Request("POST", PATH, headers={"content-type": "application/json"}, body=body)
            found = msgspec.json.decode((await self._client.raw(request)).body, type=WhyAnswer)
            found = await with_permitted_changes(self._client, found, question.get("object"))
        except (ApiError, OSError, TimeoutError, msgspec.MsgspecError, RecursionError):
            return []
        return advice_lines(found, f"{kind}/{key.name}")


def advice_lines(found: WhyAnswer, about: str) -> list[str]:
    """The reason, whose change it needs, and the first changes; empty when waiting helps."""
    if found.waiting_helps:
        return []
    lines = [found.text, f"{found.tier}; waiting alone does not help"]
    for number, change in enumerate(found.changes[:MAX_CHANGES_SHOWN], 1):
        lines.append(f"{number}. {change.sentence}: vcctl explain {about} --apply {number}")
    return lines


def _state(job: Job, pods: list[Pod]) -> Any:
    versions = sorted((pod.name, pod.metadata.resource_version) for pod in pods)
    return job.metadata.resource_version, versions


def _something_waits(job: Job, pods: list[Pod]) -> bool:
    if job.status.state.phase in ("", "Pending", "Restarting"):
        return True
    going_on = [pod for pod in pods if pod.status.phase not in FINISHED_POD_PHASES]
    return any(
        pod.status.phase != "Running" or any(s.state.waiting is not None for s in pod.status.container_statuses)
        for pod in going_on
    )
