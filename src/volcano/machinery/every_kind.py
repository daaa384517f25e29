"""Follow every kind there is by its metadata alone, custom kinds as they come and go.

Garbage collection and namespace deletion need this; other components follow the kinds they read.
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Final

from volcano.api.core import CustomResourceDefinition
from volcano.api.partial import PartialObject, partial_of
from volcano.api.scheme import BUILT_IN, ResourceType, custom_resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Change, Mirror

LEFT_OUT: Final = {("events.k8s.io", "Event"), ("", "Event")}
"""Events own nothing and are owned by nothing, and there are many."""


class EveryKind:
    """One informer a kind into one Mirror, which must also follow CustomResourceDefinitions."""

    def __init__(self, client: Client, mirror: Mirror, clock: Clock) -> None:
        self._client, self._mirror, self._clock = client, mirror, clock
        self._following: dict[ResourceType, tuple[Informer[PartialObject], asyncio.Task[None]]] = {}
        self._built_in = [row for row in BUILT_IN if (row.group, row.kind) not in LEFT_OUT]
        self._begun = asyncio.Event()

    async def run(self) -> None:
        """Until cancelled."""
        try:
            for row in self._built_in:
                self._follow(row)
            self._mirror.listen(CustomResourceDefinition, self._definition_changed)
            self._begun.set()
            await asyncio.Event().wait()
        finally:
            tasks = [task for _, task in self._following.values()]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def synced(self) -> None:
        """Returns once every kind known by now has been listed."""
        await self._begun.wait()
        for informer, _ in list(self._following.values()):
            await informer.synced()

    def _follow(self, row: ResourceType) -> None:
        informer = Informer(
            self._client, self._mirror, self._clock, PartialObject, resource=row, finish=partial(partial_of, row)
        )
        self._following[row] = (informer, asyncio.ensure_future(informer.run()))

    def _definition_changed(self, change: Change[CustomResourceDefinition]) -> None:
        old = custom_resource_type(change.old) if change.old is not None else None
        new = custom_resource_type(change.new) if change.new is not None else None
        if old is not None and old != new and old in self._following:
            self._following.pop(old)[1].cancel()
            self._forget(old)
        if new is not None and new not in self._following:
            self._follow(new)

    def _forget(self, row: ResourceType) -> None:
        for found in self._mirror.all(PartialObject):
            if found.resource == row:
                self._mirror.remove(PartialObject, found.key)
