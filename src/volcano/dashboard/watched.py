"""Watched: the objects that pages show, followed from the first page view on, and a number that grows with each change.

A kind that another part of this process already follows is read from that part's Mirror and not kept twice.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Final, TypeVar

from volcano.api.batch import JOB_NAME_KEY, Job
from volcano.api.core import Node, Pod
from volcano.api.flow import JobFlow
from volcano.api.indexes import IndexRule
from volcano.api.meta import Key, Resource
from volcano.api.reservation import Reservation
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.topology import HyperNode
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Change, Mirror

R = TypeVar("R", bound=Resource)

TOPICS: Final[Mapping[type[Resource], str]] = {
    Job: "jobs",
    PodGroup: "jobs",
    Pod: "pods",
    Queue: "queues",
    Node: "nodes",
    JobFlow: "flows",
    HyperNode: "topology",
    Reservation: "reservations",
}
"""The kinds that are followed, with the word by which open pages subscribe to their changes."""
STARTS: Final = "starts"
"""The topic of what is no object: the expected starts of waiting jobs have been computed."""
FIRST_LIST_SECONDS: Final = 10.0
"""How long the first page waits for the first lists; a kind that the server does not have never arrives."""


def _jobs_of_pod(pod: Resource) -> list[str]:
    job = pod.annotations.get(JOB_NAME_KEY) or pod.labels.get(JOB_NAME_KEY)
    return [f"{pod.namespace}/{job}"] if job else []


def _node_of_pod(pod: Resource) -> list[str]:
    return [pod.spec.node_name] if isinstance(pod, Pod) and pod.spec.node_name else []


def _queue_of_group(group: Resource) -> list[str]:
    return [group.spec.queue] if isinstance(group, PodGroup) else []


BY_JOB, BY_NODE, BY_QUEUE = "dashboard-job", "dashboard-node", "dashboard-queue"
INDEXES: Final[Mapping[type[Resource], Mapping[str, IndexRule]]] = {
    Pod: {BY_JOB: _jobs_of_pod, BY_NODE: _node_of_pod},
    PodGroup: {BY_QUEUE: _queue_of_group},
}


class Watched:
    """`all`, `get` and `where` are those of a World."""

    def __init__(self, client: Client, clock: Clock, shared: Mapping[type[Resource], Mirror] | None = None) -> None:
        self._client, self.clock = client, clock
        self._own = Mirror(clock.now)
        self._mirrors = {kind: (shared or {}).get(kind, self._own) for kind in TOPICS}
        self.versions: dict[str, int] = dict.fromkeys((*TOPICS.values(), STARTS), 0)
        self._changed = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._started: asyncio.Task[None] | None = None
        self.absent: set[type[Resource]] = set()  # kinds whose first list did not come

    @property
    def now(self) -> datetime:
        return self.clock.now()

    @property
    def version(self) -> int:
        return sum(self.versions.values())

    async def ready(self) -> None:
        """Begin to follow on the first call; returns when the first lists are there."""
        if self._started is None:
            self._started = asyncio.ensure_future(self._start())
        await asyncio.shield(self._started)

    async def _start(self) -> None:
        informers = {
            kind: Informer(self._client, self._own, self.clock, kind)
            for kind, mirror in self._mirrors.items()
            if mirror is self._own
        }
        self._tasks = [asyncio.ensure_future(informer.run()) for informer in informers.values()]
        waits = {kind: asyncio.ensure_future(informer.synced()) for kind, informer in informers.items()}
        if waits:
            await asyncio.wait(waits.values(), timeout=FIRST_LIST_SECONDS)
        self.absent = {kind for kind, wait in waits.items() if not wait.done()}
        self._tasks += [wait for wait in waits.values() if not wait.done()]
        for kind, mirror in self._mirrors.items():
            mirror.add_indexes({kind: INDEXES.get(kind, {})})
            mirror.listen(kind, self._count(TOPICS[kind]))

    def _count(self, topic: str) -> Any:
        def listener(_change: Change[Any]) -> None:
            self.count(topic)

        return listener

    def count(self, topic: str) -> None:
        """Something of this topic has changed."""
        self.versions[topic] += 1
        self._changed.set()

    def listen(self, kind: type[R], listener: Any) -> None:
        """Before `ready`, too: present objects are told as additions."""
        self._mirrors[kind].listen(kind, listener)

    async def next_change(self) -> None:
        """Returns after something has changed since the last return."""
        await self._changed.wait()
        self._changed.clear()

    async def close(self) -> None:
        for task in (*self._tasks, *([self._started] if self._started else [])):
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task

    # -- reading -------------------------------------------------------------------------------------------------
    def get(self, kind: type[R], key: Key) -> R | None:
        return self._mirrors[kind].get(kind, key)

    def all(self, kind: type[R]) -> list[R]:
        return self._mirrors[kind].all(kind)

    def where(self, kind: type[R], index: str, value: str) -> list[R]:
        return self._mirrors[kind].where(kind, index, value)
