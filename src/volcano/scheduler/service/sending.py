"""Send what was decided: binds and evictions side by side, each for itself; statuses one at a time for each object.

What fails is forgotten by the cache (the pod counts again as the world shows it) and said again by the next cycle.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

from volcano.api.core import PersistentVolumeClaim, Pod
from volcano.api.scheme import resource_type
from volcano.machinery.apply import Applier, Outcome, show_answers_in
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.events import EventRecorder
from volcano.machinery.plan import Patch, Plan, Together
from volcano.machinery.world import Mirror
from volcano.scheduler.cache import FOLLOWED, Cache
from volcano.scheduler.commit import Binding, Commitment, Evicting, bind_failed
from volcano.scheduler.service.cycle_metrics import SchedulerMetrics

log = logging.getLogger(__name__)
VOLUME_PATIENCE: Final = timedelta(seconds=600)
LONGEST_PAUSE: Final = timedelta(seconds=1)


class Sending:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        mirror: Mirror,
        cache: Cache,
        metrics: SchedulerMetrics,
        unsay: Callable[[str, str], None],
    ) -> None:
        """`unsay` is told of a job or a pod (by uid) about which something could not be done."""
        self._clock, self._mirror, self._cache = clock, mirror, cache
        self._metrics, self._unsay = metrics, unsay
        self.recorder = EventRecorder(client, clock, "volcano")
        observe = show_answers_in(mirror, {resource_type(kind): (kind,) for kind in FOLLOWED})
        self._applier = Applier(client, clock, recorder=self.recorder, observe=observe)
        self._tasks: set[asyncio.Task[None]] = set()
        self._once: set[str] = set()
        self.in_flight: set[str] = set()  # jobs whose PodGroup is being written

    def send(self, commitment: Commitment) -> None:
        """Begin to do everything; nothing is waited for."""
        for binding in commitment.binds:
            self._begin(self._bind(binding))
        for evicting in commitment.evictions:
            self._begin(self._evict(evicting))
        for job, patch in commitment.groups.items():
            self.in_flight.add(job)
            self._begin(self._write_group(job, patch))
        if commitment.others:
            self._begin(self._write((Together(commitment.others),)))
        for record in commitment.records:
            self.recorder.record(record)

    @property
    def backlog(self) -> int:
        """How much of what was decided is still being sent."""
        return len(self._tasks)

    def write_once(self, name: str, patch: Patch) -> None:
        """Unless something of this name is just being written."""
        if name not in self._once:
            self._once.add(name)
            self._begin(self._write_named(name, patch))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def settled(self) -> None:
        """Returns when everything decided so far has been sent."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _begin(self, sending: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(sending)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- pods ----------------------------------------------------------------------------------------------------
    async def _bind(self, binding: Binding) -> None:
        begun = self._clock.monotonic()
        reason = _reason(await self._applier.apply(binding.prepare))
        if not reason and binding.volumes:
            reason = await self._volumes_bound(binding)
        if reason:
            message = f"execute preBind for pod {binding.pod.key} failed: {reason}, resync the task"
        else:
            reason = _reason(await self._applier.apply(binding.bind))
            message = f"failed to bind to node {binding.node}: {reason}"
        if not reason:
            self._metrics.bound(binding.pod, self._clock.now(), self._clock.monotonic() - begun)
            return
        log.warning("%s: %s", binding.pod.key, message)
        self._give_up(binding.pod, binding.uid)
        await self._applier.apply(bind_failed(binding.pod, message, self._clock.now()))

    async def _volumes_bound(self, binding: Binding) -> str:
        """Wait until the volume controller has bound every claim; what went wrong otherwise."""
        waited, pause = timedelta(0), timedelta(milliseconds=100)
        for choice in binding.volumes:
            while True:
                claim = self._mirror.get(PersistentVolumeClaim, choice.claim)
                if claim is None:
                    return f"persistentvolumeclaim {choice.claim} is gone"
                if claim.spec.volume_name and claim.status.phase == "Bound":
                    break
                if waited >= VOLUME_PATIENCE:
                    return f"timed out waiting for persistentvolumeclaim {choice.claim} to be bound"
                await self._clock.sleep(pause)
                waited, pause = waited + pause, min(pause * 2, LONGEST_PAUSE)
        return ""

    async def _evict(self, evicting: Evicting) -> None:
        outcome = await self._applier.apply(evicting.plan)
        if not outcome.ok:
            log.warning("evicting %s: %s", evicting.pod.key, outcome.failures[0])
            self._give_up(evicting.pod, evicting.uid)

    def _give_up(self, pod: Pod, uid: str) -> None:
        self._cache.forget(uid, self._mirror.get(Pod, pod.key))
        self._unsay("", uid)

    # -- statuses ------------------------------------------------------------------------------------------------
    async def _write_group(self, job: str, patch: Patch) -> None:
        try:
            outcome = await self._applier.apply((patch,))
            if not outcome.ok:
                log.warning("%s", outcome.failures[0])
                self._unsay(job, "")
        finally:
            self.in_flight.discard(job)

    async def _write_named(self, name: str, patch: Patch) -> None:
        try:
            await self._write((patch,))
        finally:
            self._once.discard(name)

    async def _write(self, plan: Plan) -> None:
        outcome = await self._applier.apply(plan)
        for failure in outcome.failures:
            log.warning("%s", failure)
            self._unsay("", failure.step.target.uid if isinstance(failure.step, Patch) else "")


def _reason(outcome: Outcome) -> str:
    return "" if outcome.ok else str(outcome.failures[0].error)
