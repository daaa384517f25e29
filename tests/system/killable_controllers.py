"""A controller manager that can be killed at any of its writes, beside a system that lives on."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, timedelta

from volcano.app.system import MASTERS, SystemSettings
from volcano.controllers.service.manager import make_controllers
from volcano.controllers.service.settings import ControllerSettings
from volcano.machinery.client import Client
from volcano.machinery.runner import Runner
from volcano.machinery.transport import InProcess, Request, Response, User
from volcano.testing.system import VirtualSystem

WITHOUT_CONTROLLERS = SystemSettings(controllers=("-job-controller",), local_zone=UTC)
"""A list that names nothing to be turned on: the controllers are the test's to start and to kill."""
DOWNTIME = timedelta(milliseconds=300)


class Dead(ConnectionError):
    """The process is no more; what it still tries reaches nobody."""


@dataclass
class Kill:
    """At which of its writes the process dies: before the server hears of it, or after it took effect."""

    at: int = 0  # never
    before: bool = False
    writes: list[str] = field(default_factory=list)
    happened: asyncio.Event = field(default_factory=asyncio.Event)


class KillableTransport:
    """Counts the writes that are no Events; at the chosen one the process dies, and nothing it sends arrives any more."""

    def __init__(self, inner: InProcess, kill: Kill) -> None:
        self._inner, self._kill = inner, kill
        self._dead = False

    async def send(self, request: Request) -> Response:
        if self._dead:
            raise Dead
        if request.method == "GET" or "/events" in request.path:
            return await self._inner.send(request)
        self._kill.writes.append(f"{request.method} {request.path}")
        is_last = len(self._kill.writes) == self._kill.at
        if is_last and self._kill.before:
            return await self._die()
        # What the server has received it carries out, whatever becomes of the sender.
        response = await asyncio.shield(asyncio.ensure_future(self._inner.send(request)))
        return await self._die() if is_last else response

    async def _die(self) -> Response:
        self._dead = True
        self._kill.happened.set()
        await asyncio.Event().wait()
        raise Dead

    async def close(self) -> None:
        return None


class ControllerManager:
    """Starts again, with nothing but what is stored, whenever it was killed."""

    def __init__(self, system: VirtualSystem) -> None:
        self._system = system
        self.kill = Kill()
        self.starts = 0

    async def run(self) -> None:
        while True:
            kill = self.kill
            runner = asyncio.ensure_future(self._start(kill))
            dying = asyncio.ensure_future(kill.happened.wait())
            try:
                await asyncio.wait({runner, dying}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                dying.cancel()
                runner.cancel()
                ended = await asyncio.gather(runner, return_exceptions=True)
            assert kill.happened.is_set(), f"ended by itself: {ended}"
            await self._system.clock.sleep(DOWNTIME)
            self.kill = Kill()

    async def _start(self, kill: Kill) -> None:
        self.starts += 1
        component = "vc-controller-manager"
        inner = InProcess(self._system.system.server.handle, User(f"system:{component}", MASTERS))
        client = Client(KillableTransport(inner, kill), agent=component)
        controllers = make_controllers(settings=ControllerSettings())
        await Runner(client, self._system.clock, controllers, component=component, workers=8).run()

    @contextmanager
    def dying(self, at: int, *, before: bool) -> Iterator[Kill]:
        """The process at work now dies at its so-many-th write from here on."""
        kill = self.kill
        kill.writes.clear()
        kill.at, kill.before = at, before
        try:
            yield kill
        finally:
            if not kill.happened.is_set():
                kill.at = 0
