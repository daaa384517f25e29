"""Accepts connections and lets them shake hands: bounded in number and time, for all and for each address.

A server of the event loop counts nothing before the end of the TLS handshake: clients that connect and say nothing
would hold open files until there are none left, for clients, the database and pods.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Callable
from typing import Any, Final

import msgspec

log = logging.getLogger(__name__)

ACCEPTED_AT_ONCE: Final = 128
PAUSE_SECONDS: Final = 0.2
"""After the system had no file or memory left for a connection."""


class HandshakeLimits(msgspec.Struct, frozen=True):
    """How many connections may be in their handshake at a time, and for how long."""

    total: int = 1024
    per_address: int = 512
    seconds: float = 30.0

    def within(self, open_files: int) -> HandshakeLimits:
        """These bounds, or smaller ones where a process may open fewer files than eight times the total."""
        share = min(1.0, open_files / (8 * self.total))
        return HandshakeLimits(max(1, int(self.total * share)), max(1, int(self.per_address * share)), self.seconds)


class Handshakes:
    """The connections that have not finished their handshake, oldest first."""

    def __init__(self, limits: HandshakeLimits) -> None:
        self._limits = limits
        self._all: dict[socket.socket, str] = {}
        self._at: dict[str, dict[socket.socket, None]] = {}

    def __len__(self) -> int:
        return len(self._all)

    def begun(self, connection: socket.socket, address: str) -> None:
        """Add one; where there are too many of its address, or of all, the oldest of them goes."""
        self._all[connection] = address
        same = self._at.setdefault(address, {})
        same[connection] = None
        if len(same) > self._limits.per_address:
            self._close(next(iter(same)))
        if len(self._all) > self._limits.total:
            self._close(next(iter(self._all)))

    def ended(self, connection: socket.socket) -> None:
        address = self._all.pop(connection, None)
        if address is not None:
            same = self._at[address]
            same.pop(connection, None)
            if not same:
                del self._at[address]

    def close_oldest(self) -> None:
        if self._all:
            self._close(next(iter(self._all)))

    def close_all(self) -> None:
        while self._all:
            self.close_oldest()

    def _close(self, connection: socket.socket) -> None:
        """Its transport, which has the file, sees the end of the connection and closes it."""
        self.ended(connection)
        with contextlib.suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)


class Acceptor:
    """Takes connections from a listening socket; `make` makes the protocol of each, after its handshake."""

    def __init__(
        self,
        listener: socket.socket,
        make: Callable[[], asyncio.BaseProtocol],
        context: ssl.SSLContext | None,
        limits: HandshakeLimits,
    ) -> None:
        self._listener, self._make, self._context, self._limits = listener, make, context, limits
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self.handshakes = Handshakes(limits)
        self._loop.add_reader(listener.fileno(), self._accept)

    def close(self) -> None:
        """Accept no more, and end the handshakes under way."""
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener.fileno())
        self.handshakes.close_all()
        for task in self._tasks:
            task.cancel()

    def _accept(self) -> None:
        for _ in range(ACCEPTED_AT_ONCE):
            try:
                connection, address = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                log.warning("no connection can be accepted: %s", error)
                self.handshakes.close_oldest()
                self._loop.remove_reader(self._listener.fileno())
                self._pause = self._loop.call_later(PAUSE_SECONDS, self._go_on)
                return
            connection.setblocking(False)
            with contextlib.suppress(OSError):
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.handshakes.begun(connection, str(address[0]) if address else "")
            task = self._loop.create_task(self._shake_hands(connection))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _go_on(self) -> None:
        self._loop.add_reader(self._listener.fileno(), self._accept)

    async def _shake_hands(self, connection: socket.socket) -> None:
        seconds: Any = self._limits.seconds if self._context is not None else None
        try:
            await self._loop.connect_accepted_socket(
                self._make, connection, ssl=self._context, ssl_handshake_timeout=seconds
            )
        except (OSError, TimeoutError):
            connection.close()
        finally:
            self.handshakes.ended(connection)
