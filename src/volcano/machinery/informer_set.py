"""The informers of a process: one for each kind, into one Mirror, however many components read that kind.

Every watch costs the API server an encoded event for each change, and its reader the decoding of it.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from typing import Any, Final, TypeVar

from volcano.api.meta import Resource
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Mirror

log = logging.getLogger(__name__)
R = TypeVar("R", bound=Resource)
ErrorListener = Callable[[str, Exception], None]


class InformerSet:
    """Follows kinds for components that share a Mirror; they must run and end together."""

    def __init__(self, client: Client, clock: Clock, mirror: Mirror | None = None) -> None:
        self._client, self._clock = client, clock
        self.mirror: Final = mirror if mirror is not None else Mirror(clock.now)
        self._informers: dict[type[Resource], tuple[Informer[Any], asyncio.Task[None]]] = {}
        self._listeners: dict[type[Resource], list[ErrorListener]] = {}

    def follow(self, group: asyncio.TaskGroup, reader: type[R], on_error: ErrorListener | None = None) -> Informer[R]:
        """The kind's informer; the first who asks for it runs it in their group.

        Errors go to all listeners of the kind; without one they are logged.
        """
        informer, running = self._informers.get(reader, (None, None))
        if informer is None or running is None or running.done():
            self._listeners.pop(reader, None)
            informer = Informer(self._client, self.mirror, self._clock, reader, on_error=self._report_errors(reader))
            self._informers[reader] = informer, group.create_task(informer.run())
        if on_error is not None:
            self._listeners.setdefault(reader, []).append(on_error)
        return informer

    def _report_errors(self, reader: type[Resource]) -> ErrorListener:
        def report(message: str, error: Exception) -> None:
            listeners = self._listeners.get(reader)
            if not listeners:
                log.warning("%s", message)
            for listener in listeners or ():
                listener(message, error)

        return report
