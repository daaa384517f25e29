"""One line for everything that matters: what `volcano up` prints while it runs."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import datetime

import click

from volcano.api.batch import Job
from volcano.api.core import Node
from volcano.api.meta import Condition, Resource
from volcano.api.scheduling import Queue
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Change, Mirror


class Teller:
    """Follows jobs, queues and nodes, and says when their state changes."""

    def __init__(self, client: Client, clock: Clock, say: Callable[[str], None] = click.echo) -> None:
        self._client, self._clock, self._say = client, clock, say
        self._mirror = Mirror(clock.now)
        self._is_past = True  # what was there before we came is no news

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
            self._is_past = False

    def _tell(self, text: str) -> None:
        if not self._is_past:
            self._say(f"{local_time(self._clock.now())} {text}")

    def _job(self, change: Change[Job]) -> None:
        name = f"job {change.object.key}"
        if change.new is None:
            self._tell(f"{name} is gone")
            return
        old, new = change.old.status.state if change.old else None, change.new.status.state
        if old is None or old.phase != new.phase:
            why = new.message if new.phase not in ("Running", "Completed") else ""
            self._tell(f"{name} {new.phase or 'submitted'}{f': {why}' if why else ''}")
        elif new.phase == "Pending" and new.reason and new.reason != old.reason:
            self._tell(f"{name} waits: {new.message or new.reason}")

    def _queue(self, change: Change[Queue]) -> None:
        if change.new is None:
            self._tell(f"queue {change.object.name} is gone")
        elif change.old is None or change.old.status.state != change.new.status.state:
            self._tell(f"queue {change.new.name} {change.new.status.state or 'made'}")

    def _node(self, change: Change[Node]) -> None:
        if change.new is None:
            self._tell(f"node {change.object.name} is gone")
        elif change.old is None or _is_ready(change.old.status.conditions) != _is_ready(change.new.status.conditions):
            self._tell(f"node {change.new.name} {'Ready' if _is_ready(change.new.status.conditions) else 'not ready'}")


def _is_ready(conditions: list[Condition]) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in conditions)


def local_time(moment: datetime) -> str:
    return moment.astimezone().strftime("%H:%M:%S")
