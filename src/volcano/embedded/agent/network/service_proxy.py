"""Ports of services served by this process: on the machine's own network, and node ports.

Where pods have networks of their own, cluster addresses are kernel rules instead (service_rules). A port without
targets is not listened on, so that connections to it are refused.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from volcano.embedded.agent.network.forwarder import CONNECT_TIMEOUT_SECONDS, join
from volcano.embedded.agent.network.service_routes import RouteTarget
from volcano.embedded.agent.task_set import TaskSet
from volcano.machinery.clock import Clock

MAX_CONNECTIONS_PER_PORT: Final = 512
MAX_CLIENTS_REMEMBERED: Final = 4096
MAX_UDP_CLIENTS: Final = 512
IDLE_UDP_SECONDS: Final = 60.0
MAX_TARGETS_TRIED: Final = 3


class TargetChoice:
    """Which target the next connection gets: each in turn, or the one that the client had."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._targets: tuple[RouteTarget, ...] = ()
        self._affinity_seconds = 0
        self._next = 0
        self._kept: OrderedDict[str, tuple[RouteTarget, float]] = OrderedDict()

    @property
    def targets(self) -> tuple[RouteTarget, ...]:
        return self._targets

    def change(self, targets: tuple[RouteTarget, ...], affinity_seconds: int) -> None:
        self._targets, self._affinity_seconds = targets, affinity_seconds

    def choose(self, client: str) -> list[RouteTarget]:
        """Targets to try, in this order."""
        if not self._targets:
            return []
        now = self._clock.monotonic()
        kept, until = self._kept.get(client, (None, 0.0))
        if self._affinity_seconds and kept in self._targets and now < until and kept is not None:
            first = self._targets.index(kept)
        else:
            first = self._next = (self._next + 1) % len(self._targets)
        if self._affinity_seconds:
            self._kept[client] = (self._targets[first], now + self._affinity_seconds)
            self._kept.move_to_end(client)
            while len(self._kept) > MAX_CLIENTS_REMEMBERED:
                self._kept.popitem(last=False)
        return [*self._targets[first:], *self._targets[:first]][:MAX_TARGETS_TRIED]


class PortProxy:
    """One address, port and protocol."""

    def __init__(self, clock: Clock, listen: tuple[str, int], protocol: str) -> None:
        self._clock, self._listen, self._protocol = clock, listen, protocol
        self._choice = TargetChoice(clock)
        self._server: asyncio.Server | None = None
        self._datagrams: _DatagramProxy | None = None
        self._connections = 0

    async def change(self, targets: tuple[RouteTarget, ...], affinity_seconds: int) -> None:
        """Lead to these targets from now on. OSError when the port cannot be listened on."""
        self._choice.change(targets, affinity_seconds)
        if not targets:
            await self.close()
        elif self._protocol == "TCP" and self._server is None:
            self._server = await asyncio.start_server(self._on_connection, *self._listen)
        elif self._protocol == "UDP" and self._datagrams is None:
            made = _DatagramProxy(self._clock, self._choice.choose)
            await asyncio.get_running_loop().create_datagram_endpoint(lambda: made, local_addr=self._listen)
            self._datagrams = made

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        if self._datagrams is not None:
            await self._datagrams.close()
            self._datagrams = None

    async def _on_connection(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._connections >= MAX_CONNECTIONS_PER_PORT:
            writer.transport.abort()
            return
        self._connections += 1
        try:
            peer = writer.get_extra_info("peername") or ("",)
            for target in self._choice.choose(peer[0]):
                with contextlib.suppress(OSError, TimeoutError):
                    async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                        found = await asyncio.open_connection(target.address, target.port)
                    await join((reader, writer), found)
                    return
            writer.transport.abort()
        finally:
            self._connections -= 1


class _DatagramProxy(asyncio.DatagramProtocol):
    """UDP: each client has a socket of its own to its target, until it is silent for a while."""

    def __init__(self, clock: Clock, choose: Callable[[str], list[RouteTarget]]) -> None:
        self._clock, self._choose = clock, choose
        self._transport: asyncio.DatagramTransport | None = None
        self._clients: OrderedDict[tuple[str, int], _Answers] = OrderedDict()
        self._tasks = TaskSet()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, address: tuple[str, int]) -> None:
        known = self._clients.get(address)
        if known is not None and not known.is_idle(self._clock.monotonic()):
            known.send(data)
        elif targets := self._choose(address[0]):
            self._tasks.start(self._begin(address, targets[0], data))

    async def _begin(self, client: tuple[str, int], target: RouteTarget, first: bytes) -> None:
        assert self._transport is not None, "datagrams come after the connection"
        made = _Answers(self._clock, self._transport, client)
        with contextlib.suppress(OSError):
            remote = (target.address, target.port)
            await asyncio.get_running_loop().create_datagram_endpoint(lambda: made, remote_addr=remote)
            for gone in [each for each, its in self._clients.items() if its.is_idle(self._clock.monotonic())]:
                self._clients.pop(gone).close()
            if len(self._clients) >= MAX_UDP_CLIENTS:
                self._clients.popitem(last=False)[1].close()
            self._clients[client] = made
            made.send(first)

    async def close(self) -> None:
        await self._tasks.cancel_all()
        for each in self._clients.values():
            each.close()
        if self._transport is not None:
            self._transport.close()


class _Answers(asyncio.DatagramProtocol):
    """What a target answers goes back to its client."""

    def __init__(self, clock: Clock, back: asyncio.DatagramTransport, client: tuple[str, int]) -> None:
        self._clock, self._back, self._client = clock, back, client
        self._transport: asyncio.DatagramTransport | None = None
        self._last = clock.monotonic()

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport

    def datagram_received(self, data: bytes, _address: object) -> None:
        self._last = self._clock.monotonic()
        self._back.sendto(data, self._client)

    def is_idle(self, now: float) -> bool:
        return now - self._last > IDLE_UDP_SECONDS

    def send(self, data: bytes) -> None:
        self._last = self._clock.monotonic()
        if self._transport is not None:
            self._transport.sendto(data)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()
