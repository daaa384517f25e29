"""TCP connections copied between two sockets; and a listener that leads all its connections to one endpoint."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

from volcano.embedded.agent.network.client_slots import ClientSlots, SlotLimits

COPY_CHUNK_BYTES: Final = 65536
CONNECTIONS: Final = SlotLimits(total=512, per_address=128)
CONNECT_TIMEOUT_SECONDS: Final = 10.0

Stream = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Forwarder:
    """Listens on an address of the pod network and forwards connections to an endpoint on this machine's loopback."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int]) -> None:
        self._listen, self._to = listen, to
        self._server: asyncio.Server | None = None
        self._connections = ClientSlots(CONNECTIONS)

    @property
    def port(self) -> int:
        return int(self._server.sockets[0].getsockname()[1]) if self._server is not None else self._listen[1]

    async def open(self) -> None:
        """Start listening. If the address is in use, the API server itself listens there and nothing is forwarded."""
        with contextlib.suppress(OSError):
            self._server = await asyncio.start_server(self._forward, *self._listen)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self._connections.taken(writer):
            try:
                async with asyncio.timeout(CONNECT_TIMEOUT_SECONDS):
                    target = await asyncio.open_connection(*self._to)
                await join((reader, writer), target)
            except (OSError, TimeoutError):
                writer.transport.abort()


async def join(one: Stream, other: Stream) -> None:
    """Copy both ways until both have ended; a side that only stops sending still receives."""
    try:
        async with asyncio.TaskGroup() as group:
            group.create_task(_copy(one[0], other[1]))
            group.create_task(_copy(other[0], one[1]))
    except* OSError:
        pass  # one side broke the connection: the other one's ends with it
    finally:
        for _, writer in (one, other):
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while chunk := await reader.read(COPY_CHUNK_BYTES):
        writer.write(chunk)
        await writer.drain()
    if writer.can_write_eof():
        writer.write_eof()
