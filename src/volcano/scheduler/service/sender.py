"""Sender: write what was decided to the API server.

Binds and evictions run concurrently and fail independently; an object's status has one write at a time. When a bind or
eviction fails, its assumption is dropped, so that the pod counts again as the API server shows it; when a status write
fails, the next cycle writes it again.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Final

from volcano.api.core import PersistentVolumeClaim, Pod
from volcano.api.errors import ApiError, Conflict
from volcano.api.scheme import resource_type
from volcano.machinery.apply import Applier, Outcome, show_answers_in
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.events import EventRecorder
from volcano.machinery.plan import Delete, Patch, Plan, Together, ref
from volcano.machinery.world import Mirror
from volcano.scheduler.cache import FOLLOWED, PendingChanges
from volcano.scheduler.commit import BindPlan, Commitment, EvictionPlan, Unwritten, bind_failed
from volcano.scheduler.service.cycle_metrics import SchedulerMetrics
from volcano.scheduler.service.node_lock_taking import NodeLockTaking

log = logging.getLogger(__name__)
VOLUME_BINDING_TIMEOUT: Final = timedelta(seconds=600)
MIN_VOLUME_POLL_INTERVAL: Final = timedelta(milliseconds=100)
MAX_VOLUME_POLL_INTERVAL: Final = timedelta(seconds=1)
MAX_EVICTION_ATTEMPTS: Final = 4
"""Of deleting a pod only as it was last seen; the last attempt deletes it however it has changed."""


class Sender:
    def __init__(
        self,
        client: Client,
        clock: Clock,
        *,
        mirror: Mirror,
        pending: PendingChanges,
        metrics: SchedulerMetrics,
        on_failure: Callable[[Unwritten], None],
    ) -> None:
        """`on_failure` is called for every write that failed."""
        self._client, self._clock, self._mirror, self._pending = client, clock, mirror, pending
        self._metrics, self._on_failure = metrics, on_failure
        self.recorder = EventRecorder(client, clock, "volcano")
        observe = show_answers_in(mirror, {resource_type(kind): (kind,) for kind in FOLLOWED})
        self._applier = Applier(client, clock, recorder=self.recorder, observe=observe)
        self._locks = NodeLockTaking(self._applier, clock, mirror)
        self._tasks: set[asyncio.Task[None]] = set()
        self._names_in_flight: set[str] = set()
        self.groups_in_flight: set[str] = set()  # jobs whose PodGroup is being written

    def send(self, commitment: Commitment) -> None:
        """Start all writes without waiting for them."""
        for bind in commitment.binds:
            self._start(self._bind(bind))
        for eviction in commitment.evictions:
            self._start(self._evict(eviction))
        for job, patch in commitment.groups.items():
            self.groups_in_flight.add(job)
            self._start(self._write_group(job, patch))
        if commitment.others:
            self._start(self._write((Together(commitment.others),)))
        for record in commitment.records:
            self.recorder.record(record)

    @property
    def unsent_writes(self) -> int:
        """How many writes are not answered yet."""
        return len(self._tasks)

    def write_named(self, name: str, patch: Patch) -> None:
        """Does nothing while the last write of this name is in flight."""
        if name not in self._names_in_flight:
            self._names_in_flight.add(name)
            self._start(self._write_and_release(name, patch))

    def stop(self) -> None:
        for task in self._tasks:
            task.cancel()

    async def idle(self) -> None:
        """Returns when no write is in flight."""
        while self._tasks:
            await asyncio.wait(set(self._tasks))

    def _start(self, write: Coroutine[Any, Any, None]) -> None:
        task = asyncio.ensure_future(write)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # -- pods ----------------------------------------------------------------------------------------------------
    async def _bind(self, plan: BindPlan) -> None:
        begun = self._clock.monotonic()
        locked, reason = await self._locks.take(plan.node, plan.lock) if plan.lock else ("", "")
        if not reason:
            reason = _reason(await self._applier.apply(plan.prepare))
        if not reason and plan.volumes:
            reason = await self._volumes_bound(plan)
        if reason:
            message = f"execute preBind for pod {plan.pod.key} failed: {reason}, resync the task"
        else:
            reason = _reason(await self._applier.apply(plan.bind))
            message = f"failed to bind to node {plan.node}: {reason}"
        if not reason:
            self._metrics.bound(plan.pod, self._clock.now(), self._clock.monotonic() - begun)
            return
        log.warning("%s: %s", plan.pod.key, message)
        pod = await self._pod_now(plan.pod)
        is_bound = pod is not None and bool(pod.spec.node_name)
        if plan.undo and not is_bound:
            await self._applier.apply(plan.undo)
        if locked and not is_bound:
            await self._locks.release(plan.node, plan.lock, locked)
        self._drop_assumption(plan.pod, plan.uid)
        if pod is not None and not pod.spec.node_name:
            await self._applier.apply(bind_failed(pod, message, self._clock.now()))

    async def _pod_now(self, pod: Pod) -> Pod | None:
        """As the API server has it: a bind whose answer was lost may have been done, or the pod may be gone.

        It is read by a list of one, since the scheduler may list pods and needs no right to get them.
        """
        try:
            listed = await self._client.list(Pod, pod.namespace, fields=f"metadata.name={pod.name}")
        except (ApiError, OSError, TimeoutError):
            return self._mirror.get(Pod, pod.key)
        for found in listed.items:
            self._mirror.put(found)
        return next((found for found in listed.items if found.uid == pod.uid), None)

    async def _volumes_bound(self, plan: BindPlan) -> str:
        """Wait until the volume controller has bound every claim. Returns what went wrong, empty if nothing did."""
        waited, pause = timedelta(0), MIN_VOLUME_POLL_INTERVAL
        for choice in plan.volumes:
            while True:
                claim = self._mirror.get(PersistentVolumeClaim, choice.claim)
                if claim is None:
                    return f"persistentvolumeclaim {choice.claim} is gone"
                if claim.spec.volume_name and claim.status.phase == "Bound":
                    break
                if waited >= VOLUME_BINDING_TIMEOUT:
                    return f"timed out waiting for persistentvolumeclaim {choice.claim} to be bound"
                await self._clock.sleep(pause)
                waited, pause = waited + pause, min(pause * 2, MAX_VOLUME_POLL_INTERVAL)
        return ""

    async def _evict(self, plan: EvictionPlan) -> None:
        outcome = await self._applier.apply(plan.announce)
        pod = self._mirror.get(Pod, plan.pod.key)
        if outcome.ok and pod is not None and pod.uid == plan.uid:
            outcome, is_deleted = await self._delete_unfinished(pod)
        else:
            is_deleted = False
        if not outcome.ok:
            log.warning("evicting %s failed: %s", plan.pod.key, outcome.failures[0])
        if not is_deleted:
            self._drop_assumption(plan.pod, plan.uid)

    async def _delete_unfinished(self, pod: Pod) -> tuple[Outcome, bool]:
        """Delete the pod as it was last seen to be unfinished: its job would run a finished one again.

        A pod that changes meanwhile is read again. Its start or another report must not prevent the eviction.
        """
        outcome = Outcome()
        for attempt in range(MAX_EVICTION_ATTEMPTS):
            if pod.is_finished or pod.is_deleting:
                return Outcome(), pod.is_deleting
            is_last = attempt == MAX_EVICTION_ATTEMPTS - 1
            outcome = await self._applier.apply((Delete(ref(pod, fresh=not is_last)),))
            if outcome.ok or not isinstance(outcome.failures[0].error, Conflict):
                break
            found = await self._pod_now(pod)
            if found is None:
                return Outcome(), True
            pod = found
        return outcome, outcome.ok

    def _drop_assumption(self, pod: Pod, uid: str) -> None:
        self._pending.forget(uid, self._mirror.get(Pod, pod.key))
        self._on_failure(Unwritten(pod_uid=uid))

    # -- statuses ------------------------------------------------------------------------------------------------
    async def _write_group(self, job: str, patch: Patch) -> None:
        try:
            outcome = await self._applier.apply((patch,))
            if not outcome.ok:
                log.warning("%s", outcome.failures[0])
                self._on_failure(Unwritten(job=job))
        finally:
            self.groups_in_flight.discard(job)

    async def _write_and_release(self, name: str, patch: Patch) -> None:
        try:
            await self._write((patch,))
        finally:
            self._names_in_flight.discard(name)

    async def _write(self, plan: Plan) -> None:
        outcome = await self._applier.apply(plan)
        for failure in outcome.failures:
            log.warning("%s", failure)
            pod_uid = failure.step.target.uid if isinstance(failure.step, Patch) else ""
            self._on_failure(Unwritten(pod_uid=pod_uid))


def _reason(outcome: Outcome) -> str:
    return "" if outcome.ok else str(outcome.failures[0].error)
