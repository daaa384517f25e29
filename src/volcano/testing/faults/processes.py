"""The processes of the simulated cluster, each on a machine: they crash at any moment and are started again."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable
from datetime import UTC, timedelta
from pathlib import Path
from typing import Any, Final

from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.app.system import (
    MASTERS,
    SystemSettings,
    make_cluster_runner,
    make_controller_runner,
    make_scheduler,
)
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape
from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.leader import Election, LostLeadership
from volcano.machinery.transport import User
from volcano.scheduler.service.registry import Registry, load_registry
from volcano.testing.faults.chance import chance_of
from volcano.testing.faults.machines import SimulatedMachine
from volcano.testing.faults.network import FaultyNetwork, MachineTransport
from volcano.testing.faults.past import RecordingProcess

RESTART_SECONDS: Final = 2.0
"""A process that ended by itself is started again after this time."""
SETTINGS: Final = SystemSettings(local_zone=UTC, workers=3)

Part = Any
"""What a process is made of, for looking into its memory: a Runner, a SchedulerService or an Agent."""
MakePart = Callable[[Client, Clock], Part]


class Process:
    """One program on one machine, through all its lives."""

    def __init__(self, name: str, make: MakePart, network: FaultyNetwork, seed: int, *, lease: str = "") -> None:
        self.machine = SimulatedMachine(name)
        self._make, self._network, self._trace, self._lease = make, network, network.trace, lease
        self._chance = chance_of(name, seed)
        self._transport: MachineTransport | None = None
        self._life: asyncio.Task[None] | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._lives = 0
        self.part: Part = None
        self.leads = False
        self.failures: list[BaseException] = []

    @property
    def name(self) -> str:
        return self.machine.name

    @property
    def is_up(self) -> bool:
        return self._life is not None and not self._life.done()

    @property
    def waits(self) -> bool:
        """For another replica to give up the lease."""
        return bool(self._lease) and not self.leads

    def start(self) -> None:
        if self.is_up:
            return
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._lives += 1
        self._trace.add(self.name, "starts")
        user = User(f"system:{self.name}", MASTERS)
        self._transport = MachineTransport(self._network, self.machine, user, self._chance)
        client = Client(self._transport, agent=self.name)
        self._life = self.machine.start(self._live(client))
        self._life.add_done_callback(self._ended)

    async def _live(self, client: Client) -> None:
        clock = self.machine.clock
        self.part = self._make(client, clock)
        if not self._lease:
            await self.part.run()
            return
        election = Election(client, clock, Key("volcano-system", self._lease), f"{self.name}-{self._lives}")
        try:
            await election.lead(self._lead)
        finally:
            self.leads = False

    async def _lead(self) -> None:
        self.leads = True
        self._trace.add(self.name, "leads")
        await self.part.run()

    def crash(self, *, restart_after: float | None) -> None:
        """The process ends now: nothing that it was about to send is sent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.is_up and self._transport is not None and self._life is not None:
            self._trace.add(self.name, "crashes")
            self._transport.is_dead = True
            self.machine.resume()
            self._life.remove_done_callback(self._ended)
            self._life.cancel()
        self.leads = False
        if restart_after is not None:
            self._start_later(restart_after)

    def start_soon(self) -> None:
        """At once, or when its last life has ended."""
        if self._timer is not None or not self.is_up:
            if self._timer is not None:
                self._timer.cancel()
            self._start_later(0.0)

    def _start_later(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(seconds, self._start_again)

    def _start_again(self) -> None:
        if self._life is not None and not self._life.done():
            self._start_later(0.1)  # it still ends
        else:
            self.start()

    def _ended(self, life: asyncio.Task[None]) -> None:
        """By itself: as the leader that lost its lease does, or for want of a server at its start."""
        error = life.exception() if not life.cancelled() else None
        self._trace.add(self.name, f"ends: {type(error).__name__}")
        if error is not None and not _is_expected(error):
            self.failures.append(error)
        if not life.cancelled():
            self._start_later(RESTART_SECONDS)

    async def end(self) -> None:
        self.crash(restart_after=None)
        if self._life is not None:
            await asyncio.wait([self._life])


def _is_expected(error: BaseException) -> bool:
    if isinstance(error, BaseExceptionGroup):
        return all(_is_expected(each) for each in error.exceptions)
    return isinstance(error, (LostLeadership, ApiError, ConnectionError, TimeoutError, OSError))


def controllers(client: Client, clock: Clock) -> Part:
    return make_controller_runner(client, clock, SETTINGS)


def cluster(client: Client, clock: Clock) -> Part:
    return make_cluster_runner(client, clock, SETTINGS)


def scheduler(client: Client, clock: Clock) -> Part:
    return make_scheduler(client, clock, SETTINGS, _registry())


@functools.cache
def _registry() -> Registry:
    """Looking for plugins of installed packages takes as long as dozens of cycles, and all runs have the same."""
    return load_registry()


def history(path: Path) -> MakePart:
    """A database beside that of the server; it survives crashes of the recorder."""
    return lambda client, clock: RecordingProcess(client, clock, path)


def node(name: str, capacity: dict[str, str]) -> MakePart:
    """A node of its own machine. The leases are Kubernetes' own, so that a lost node is noticed after 40 seconds."""
    settings = NodeSettings(
        (NodeShape(name, capacity, {"kubernetes.io/hostname": name}),),
        lease_duration=timedelta(seconds=40),
        lease_renewal=timedelta(seconds=10),
    )
    return lambda client, clock: Agent(client, clock, settings, SimulatedRuntime(clock))
