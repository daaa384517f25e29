"""One attach: copies between a client's channels and the socket of the container's holder process."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Final

from volcano.embedded.agent.processes.container_attach import HEADER, MAX_FRAME_BYTES, SIZE, SOCKET
from volcano.embedded.agent.streams.channels import CLOSE, ERROR, RESIZE, STDIN, STDOUT, SUCCESS, Channels, parse_size
from volcano.embedded.agent.streams.logs import LogQuery, read_log
from volcano.machinery.clock import Clock

MAX_INPUT_PIECE_BYTES: Final = MAX_FRAME_BYTES // 2


class AttachSession:
    """`stdin`: whether the client's input goes to the container."""

    def __init__(self, client: Channels, *, stdin: bool) -> None:
        self._client, self._has_stdin = client, stdin

    async def run(self, folder: Path) -> bool:
        """Run until the container ends or the client disconnects; False when the container has no attach socket."""
        try:
            reader, writer = await connect_to(folder)
        except OSError:
            return False
        if self._has_stdin:
            writer.write(HEADER.pack(STDIN, 0))  # marks this client as one whose leaving ends the input of stdinOnce
        to_container = asyncio.ensure_future(self._to_container(writer))
        to_client = asyncio.ensure_future(self._to_client(reader))
        try:
            await asyncio.wait((to_container, to_client), return_when=asyncio.FIRST_COMPLETED)
            if to_client.done():
                await self._client.send(ERROR, SUCCESS)
        finally:
            for task in (to_container, to_client):
                task.cancel()
            await asyncio.gather(to_container, to_client, return_exceptions=True)
            writer.close()
        return True

    async def follow_log(self, log: Path, clock: Clock, is_live: Callable[[], bool]) -> None:
        """Stream the log from now on: for a container without stdin and terminal, which has no attach socket."""
        disconnect = asyncio.ensure_future(_exhaust(self._client.received()))

        async def send_log() -> None:
            query = LogQuery(follow=True, since=clock.now())
            async for piece in read_log(log, query, clock, is_live):
                await self._client.send(STDOUT, piece)
            await self._client.send(ERROR, SUCCESS)

        sending = asyncio.ensure_future(send_log())
        try:
            await asyncio.wait((disconnect, sending), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (disconnect, sending):
                task.cancel()
            await asyncio.gather(disconnect, sending, return_exceptions=True)

    async def _to_container(self, writer: asyncio.StreamWriter) -> None:
        async for channel, content in self._client.received():
            with contextlib.suppress(ConnectionError):
                if channel == STDIN and self._has_stdin:
                    for start in range(0, len(content), MAX_INPUT_PIECE_BYTES):
                        piece = content[start : start + MAX_INPUT_PIECE_BYTES]
                        writer.write(HEADER.pack(STDIN, len(piece)) + piece)
                        await writer.drain()
                elif channel == CLOSE and content[:1] == b"\0" and self._has_stdin:
                    writer.write(HEADER.pack(CLOSE, 0))
                elif channel == RESIZE and (size := parse_size(content)) is not None:
                    writer.write(HEADER.pack(RESIZE, SIZE.size) + SIZE.pack(size.rows, size.columns))

    async def _to_client(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                channel, length = HEADER.unpack(await reader.readexactly(HEADER.size))
                await self._client.send(channel, await reader.readexactly(length))


async def connect_to(folder: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect through the folder's descriptor: the path may be longer than a socket address can be."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}/{SOCKET}")
    finally:
        os.close(descriptor)


async def _exhaust(received: AsyncIterator[tuple[int, bytes]]) -> None:
    async for _ in received:
        pass
