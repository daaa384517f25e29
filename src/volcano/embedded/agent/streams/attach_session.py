"""One attach: between a client's channels and the socket of the process that holds the container."""

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
    """`stdin` says whether the client wants to be heard, not only to hear."""

    def __init__(self, client: Channels, *, stdin: bool) -> None:
        self._client, self._has_stdin = client, stdin

    async def run(self, folder: Path) -> bool:
        """Until the container ends or the client hangs up; False when the container cannot be attached to."""
        try:
            reader, writer = await connected_to(folder)
        except OSError:
            return False
        if self._has_stdin:
            writer.write(HEADER.pack(STDIN, 0))  # from now on the input may end with us
        there = asyncio.ensure_future(self._to_container(writer))
        back = asyncio.ensure_future(self._to_client(reader))
        try:
            await asyncio.wait((there, back), return_when=asyncio.FIRST_COMPLETED)
            if back.done():
                await self._client.send(ERROR, SUCCESS)
        finally:
            for task in (there, back):
                task.cancel()
            await asyncio.gather(there, back, return_exceptions=True)
            writer.close()
        return True

    async def listen(self, log: Path, clock: Clock, is_live: Callable[[], bool]) -> None:
        """The same for a container that nobody can speak to: what it writes from now on, as its log has it."""
        hanging_up = asyncio.ensure_future(_exhaust(self._client.received()))

        async def tell() -> None:
            query = LogQuery(follow=True, since=clock.now())
            async for piece in read_log(log, query, clock, is_live):
                await self._client.send(STDOUT, piece)
            await self._client.send(ERROR, SUCCESS)

        telling = asyncio.ensure_future(tell())
        try:
            await asyncio.wait((hanging_up, telling), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (hanging_up, telling):
                task.cancel()
            await asyncio.gather(hanging_up, telling, return_exceptions=True)

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


async def connected_to(folder: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """By the folder's descriptor: its path may be longer than a socket address."""
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        return await asyncio.open_unix_connection(f"/proc/self/fd/{descriptor}/{SOCKET}")
    finally:
        os.close(descriptor)


async def _exhaust(received: AsyncIterator[tuple[int, bytes]]) -> None:
    async for _ in received:
        pass
