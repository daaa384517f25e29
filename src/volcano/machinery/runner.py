"""Run controllers: informers fill a Mirror, changes queue keys, workers decide and apply, failures are requeued."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final

from volcano.api.errors import ApiError
from volcano.api.meta import Resource
from volcano.api.partial import PartialObject
from volcano.api.scheme import ResourceType, resource_type
from volcano.machinery.apply import Applier, Failure, show_answers_in, target_of
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.controller import Controller, PlanFailed, Waker
from volcano.machinery.events import EventRecorder
from volcano.machinery.every_kind import EveryKind
from volcano.machinery.informer_set import InformerSet
from volcano.machinery.workqueue import WorkQueue
from volcano.machinery.world import Change

log = logging.getLogger(__name__)
WORKERS_PER_CONTROLLER: Final = 5
WARN_FROM_BACKOFF: Final = timedelta(seconds=1)  # failures with a shorter back-off are logged as debug


class Runner:
    """Some controllers on one Mirror, with one client. `workers` is how many objects each works on at a time."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        controllers: Iterable[Controller],
        *,
        component: str = "volcano-controllers",
        workers: int | Mapping[str, int] = WORKERS_PER_CONTROLLER,
        probe: Any = None,
        informers: InformerSet | None = None,
    ) -> None:
        """`informers` is given where other components of the process follow the same kinds."""
        self._client, self._clock = client, clock
        self._controllers = list(controllers)
        self._workers = workers
        self._informers = informers or InformerSet(client, clock)
        self.mirror = self._informers.mirror
        self.recorder = EventRecorder(client, clock, component)
        self.writes = 0
        self.queues = {controller.name: WorkQueue() for controller in self._controllers}
        self._readers = self._kinds_read()
        observe = show_answers_in(self.mirror, self._readers)
        self.applier = Applier(client, clock, recorder=self.recorder, observe=observe, probe=probe)
        self._synced = asyncio.Event()

    async def synced(self) -> None:
        """Returns once every kind has been listed and the controllers are at work."""
        await self._synced.wait()

    async def run(self) -> None:
        """Until cancelled."""
        everything = EveryKind(self._client, self.mirror, self._clock) if self._follows_every_kind() else None
        async with asyncio.TaskGroup() as group:
            group.create_task(self.recorder.run())
            kinds = [reader for readers in self._readers.values() for reader in readers]
            for informer in [self._informers.follow(group, reader) for reader in kinds]:
                await informer.synced()
            if everything is not None:
                group.create_task(everything.run())
                await everything.synced()
            for controller in self._controllers:
                self._subscribe(controller)
                for _ in range(self._workers_of(controller)):
                    group.create_task(self._work(controller))
            self._synced.set()

    def _kinds_read(self) -> dict[ResourceType, list[type[Resource]]]:
        kinds: dict[ResourceType, list[type[Resource]]] = {}
        for controller in self._controllers:
            for reader in (*controller.wakes_on, *controller.reads):
                if reader is PartialObject:
                    continue
                readers = kinds.setdefault(resource_type(reader), [])
                if reader not in readers:
                    readers.append(reader)
        return kinds

    def _workers_of(self, controller: Controller) -> int:
        workers = self._workers
        return workers if isinstance(workers, int) else workers.get(controller.name, WORKERS_PER_CONTROLLER)

    def _follows_every_kind(self) -> bool:
        return any(PartialObject in (*each.wakes_on, *each.reads) for each in self._controllers)

    def _subscribe(self, controller: Controller) -> None:
        self.mirror.add_indexes(controller.indexes)
        queue = self.queues[controller.name]
        for kind, waker in controller.wakes_on.items():
            self.mirror.listen(kind, _waking(queue, waker))

    async def _work(self, controller: Controller) -> None:
        queue = self.queues[controller.name]
        while (taken := await queue.take()) is not None:
            key, causes = taken
            await self._clock.give_way()
            try:
                plan = controller.decide(key, self.mirror, causes)
                outcome = await self.applier.apply(plan)
            except Exception:
                # A bug in one decision: requeue this object with back-off and go on with the others.
                log.exception("%s: deciding on %s", controller.name, key)
                queue.retry(key, causes)
                continue
            self.writes += outcome.writes
            if not outcome.ok:
                failure = _plan_failed(outcome.failures[0], queue.failures(key) + 1)
                await self.applier.apply(controller.on_failure(key, self.mirror, failure))
                delay = queue.retry(key, causes)
                level = logging.WARNING if delay >= WARN_FROM_BACKOFF else logging.DEBUG
                log.log(level, "%s: %s: %s", controller.name, key, outcome.failures[0])
                continue
            queue.done(key)
            for later in outcome.later:
                add = queue.add_when_idle if later.when_idle else queue.add_after
                add(later.key or key, later.after, later.cause)
            for answer in outcome.answers:
                queue.add(key, answer)


def _plan_failed(failure: Failure, tries: int) -> PlanFailed:
    kind, _, name = target_of(failure.step).partition(" ")
    code = failure.error.status_code if isinstance(failure.error, ApiError) else 500
    refused = 400 <= code < 500 and code not in (409, 429)
    return PlanFailed(type(failure.step).__name__, kind, name, str(failure.error), tries, refused)


def _waking(queue: WorkQueue, waker: Waker) -> Any:
    def listener(change: Change[Any]) -> None:
        for wake in waker(change):
            queue.add(wake.key, wake.cause)

    return listener
