"""Which connections the HTTPS endpoint of a node keeps: bounded before, between and beside requests.

The API server's connections are counted apart from those of other clients with a certificate of the cluster's CA: each
request of these is refused, and they must not take places meanwhile.
"""

from __future__ import annotations

import asyncio
import resource
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import msgspec
from aiohttp import web

from volcano.machinery.acceptor import Acceptor, HandshakeLimits
from volcano.machinery.connections import ConnectionLimits, ConnectionTable

API_SERVER: Final = "API server"
"""The identity under which the table counts connections of the API server; all others count as anonymous."""


class NodeLimits(msgspec.Struct, frozen=True):
    """What all clients of one node's endpoint may use."""

    connections: ConnectionLimits = ConnectionLimits(
        total=4096, reserve=0, anonymous=128, anonymous_per_address=64, per_identity=4096
    )
    """As many for the API server as it has clients itself: each stream to a pod is one of theirs."""
    handshakes: HandshakeLimits = HandshakeLimits(total=512, per_address=256)
    idle_seconds: float = 60.0
    """Without a request that is being answered. The API server uses a connection again within fifteen seconds."""

    def within(self, open_files: int) -> NodeLimits:
        """With smaller bounds where the process may open few files."""
        connections, handshakes = self.connections.within(open_files), self.handshakes.within(open_files)
        return msgspec.structs.replace(self, connections=connections, handshakes=handshakes)


class NodeConnection(web.RequestHandler):
    """One connection. The server calls `begin_request` and `end_request` around each request on it."""

    __slots__ = ("_idle", "_limits", "_requests", "_table", "_trusts")

    def __init__(
        self,
        server: web.Server,
        table: ConnectionTable,
        limits: NodeLimits,
        trusts: Callable[[Any], bool],
        **given: Any,
    ) -> None:
        super().__init__(server, loop=asyncio.get_running_loop(), **given)
        self._table, self._limits, self._trusts = table, limits, trusts
        self._requests = 0
        self._idle: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        peer = transport.get_extra_info("peername") or ("",)
        is_trusted = self._trusts(transport.get_extra_info("peercert"))
        self._wait()
        self._table.opened(self, str(peer[0]), API_SERVER if is_trusted else "")

    def connection_lost(self, exc: BaseException | None) -> None:
        self._stop_waiting()
        self._table.closed(self)
        super().connection_lost(exc)

    @property
    def is_busy(self) -> bool:
        return self._requests > 0

    def close_now(self) -> None:
        if isinstance(self.transport, asyncio.WriteTransport):
            self.transport.abort()

    def begin_request(self) -> None:
        self._requests += 1
        self._stop_waiting()
        self._table.used(self)

    def end_request(self) -> None:
        self._requests -= 1
        if not self._requests:
            self._wait()

    def _wait(self) -> None:
        """For the next request: its head must be complete in time."""
        self._stop_waiting()
        self._idle = asyncio.get_running_loop().call_later(self._limits.idle_seconds, self.close_now)

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None


def accept_for(
    server: web.Server,
    listener: socket.socket,
    context: ssl.SSLContext | None,
    *,
    limits: NodeLimits,
    trusts: Callable[[Any], bool],
    **handler_options: Any,
) -> Acceptor:
    """Accept connections for this server until the acceptor is closed; `trusts` gets the peer's certificate."""
    limits = limits.within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    table = ConnectionTable(limits.connections)

    def make() -> NodeConnection:
        return NodeConnection(server, table, limits, trusts, **handler_options)

    return Acceptor(listener, make, context, limits.handshakes)
