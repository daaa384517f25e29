"""What `volcano up` prints while it runs: a line for every change of state of a job, a queue or a node."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

from volcano.api.batch import Job
from volcano.api.core import Node
from volcano.api.meta import Condition, Resource
from volcano.api.scheduling import Queue
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Change, Mirror


class StateLog:
    """Follows jobs, queues and nodes, and writes a line when the state of one changes."""

    def __init__(self, client: Client, clock: Clock, write: Callable[[str], None]) -> None:
        self._client, self._clock, self._write = client, clock, write
        self._mirror = Mirror(clock.now)
        self._is_synced = False  # objects that existed before the start get no line

    async def run(self) -> None:
        """Until cancelled."""
        kinds: tuple[type[Resource], ...] = (Job, Queue, Node)
        informers = [Informer(self._client, self._mirror, self._clock, kind) for kind in kinds]
        self._mirror.listen(Job, self._job)
        self._mirror.listen(Queue, self._queue)
        self._mirror.listen(Node, self._node)
        async with asyncio.TaskGroup() as group:
            for informer in informers:
                group.create_task(informer.run())
            for informer in informers:
                await informer.synced()
            self._is_synced = True

    def _line(self, text: str) -> None:
        if self._is_synced:
            self._write(f"{local_time(self._clock.now())} {text}")

    def _job(self, change: Change[Job]) -> None:
        name = f"job {change.object.key}"
        if change.new is None:
            self._line(f"{name} is gone")
            return
        old, new = change.old.status.state if change.old else None, change.new.status.state
        if old is None or old.phase != new.phase:
            why = new.message if new.phase not in ("Running", "Completed") else ""
            self._line(f"{name} {new.phase or 'submitted'}{f': {why}' if why else ''}")
        elif new.phase == "Pending" and new.reason and new.reason != old.reason:
            self._line(f"{name} waits: {new.message or new.reason}")

    def _queue(self, change: Change[Queue]) -> None:
        if change.new is None:
            self._line(f"queue {change.object.name} is gone")
        elif change.old is None or change.old.status.state != change.new.status.state:
            self._line(f"queue {change.new.name} {change.new.status.state or 'made'}")

    def _node(self, change: Change[Node]) -> None:
        if change.new is None:
            self._line(f"node {change.object.name} is gone")
        elif change.old is None or _is_ready(change.old.status.conditions) != _is_ready(change.new.status.conditions):
            self._line(f"node {change.new.name} {'Ready' if _is_ready(change.new.status.conditions) else 'not ready'}")


def _is_ready(conditions: list[Condition]) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


def local_time(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")
