"""The API server as a machine of the simulation: it crashes, and comes back on the same disk."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from volcano.app.admission_plug import VolcanoAdmission
from volcano.embedded.apiserver.server import ApiServer
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import Request, Response
from volcano.testing.faults.disk import Disk, InlineSqliteStore
from volcano.testing.faults.machines import SimulatedMachine
from volcano.testing.faults.plan import SERVER
from volcano.testing.faults.trace import Trace


class ServerMachine:
    """`serve` answers while the server is up; clients get a ConnectionError otherwise."""

    def __init__(self, disk: Disk, seed: int, trace: Trace, *, max_changes: int) -> None:
        self.machine = SimulatedMachine(SERVER)
        self._disk, self._trace, self._max_changes = disk, trace, max_changes
        self._ids = SeededIds(seed)
        self.on_start: Callable[[InlineSqliteStore], None] = lambda _store: None
        self.on_crash: Callable[[], None] = lambda: None
        self.store: InlineSqliteStore | None = None
        self._server: ApiServer | None = None
        self._handling: set[asyncio.Task[Response]] = set()
        self._ending: set[asyncio.Task[None]] = set()

    @property
    def is_up(self) -> bool:
        return self._server is not None

    async def start(self) -> None:
        """Open the disk and serve; the store verifies every row of it."""
        store = InlineSqliteStore(self._disk, self._crashed, max_changes=self._max_changes)
        self.on_start(store)
        server = ApiServer(store, clock=self.machine.clock, ids=self._ids, admission=VolcanoAdmission(store))
        self.store = store
        self._trace.add(SERVER, f"starts at revision {store.revision}")
        starting = self.machine.start(server.start())
        await asyncio.wait([starting])
        if starting.exception() is None and not store.is_dead:
            self._server = server
        else:  # it crashed, or could not write, while it started
            self._end(server)

    async def serve(self, request: Request) -> Response:
        if self._server is None:
            raise ConnectionError("the API server is down")
        handling = self.machine.start(self._server.handle(request))
        self._handling.add(handling)
        await asyncio.wait([handling])
        self._handling.discard(handling)
        if handling.cancelled():
            raise ConnectionError("the API server went away")
        return handling.result()

    def crash(self) -> None:
        """As kill -9 does, between two commits."""
        if self.store is None or self._server is None:
            return
        self._disk.after_crash()
        self.store.abandon()
        self._crashed()

    def _crashed(self) -> None:
        self._trace.add(SERVER, "crashes")
        server, self._server = self._server, None
        for handling in self._handling:
            handling.cancel()
        if server is not None:
            self._end(server)
        self.on_crash()

    def _end(self, server: ApiServer) -> None:
        """Only what is in memory: its store writes nothing any more."""
        if self.store is not None and not self.store.is_dead:
            self.store.abandon()
        ending = self.machine.start(server.close())
        self._ending.add(ending)
        ending.add_done_callback(self._ending.discard)

    async def close(self) -> None:
        if self._ending:
            await asyncio.wait(set(self._ending))
        if self._server is not None:
            await self._server.close()
