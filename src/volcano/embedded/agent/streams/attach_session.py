"""One attach: copies between a client's channels and the socket of the container's holder process.

Input is written through a second descriptor of the socket. A container may end while its client still sends, and a
transport whose write fails would drop the output that it has not read yet.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
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
            reader, writer, inlet = await connect_to(folder)
        except OSError:
            return False
        to_container = asyncio.ensure_future(self._to_container(inlet))
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
            inlet.close()
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

    async def _to_container(self, inlet: socket.socket) -> None:
        send = asyncio.get_running_loop().sock_sendall
        with contextlib.suppress(OSError):
            if self._has_stdin:
                await send(inlet, HEADER.pack(STDIN, 0))  # a client whose leaving ends the input of stdinOnce
        async for channel, content in self._client.received():
            with contextlib.suppress(OSError):  # the container has ended; its output is still read
                if channel == STDIN and self._has_stdin:
                    for start in range(0, len(content), MAX_INPUT_PIECE_BYTES):
                        piece = content[start : start + MAX_INPUT_PIECE_BYTES]
                        await send(inlet, HEADER.pack(STDIN, len(piece)) + piece)
                elif channel == CLOSE and content[:1] == b"\0" and self._has_stdin:
                    await send(inlet, HEADER.pack(CLOSE, 0))
                elif channel == RESIZE and (size := parse_size(content)) is not None:
                    await send(inlet, HEADER.pack(RESIZE, SIZE.size) + SIZE.pack(size.rows, size.columns))

    async def _to_client(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                channel, length = HEADER.unpack(await reader.readexactly(HEADER.size))
                await self._client.send(channel, await reader.readexactly(length))


async def connect_to(folder: Path) -> tuple[asyncio.StreamReader, asyncio.StreamWriter, socket.socket]:
    """Connect through the folder's descriptor: the path may be longer than a socket address can be.

    The reader with its writer, which only closes, and a socket to write to.
    """
    descriptor = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    inlet = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    inlet.setblocking(False)
    try:
        await asyncio.get_running_loop().sock_connect(inlet, f"/proc/self/fd/{descriptor}/{SOCKET}")
        reader, writer = await asyncio.open_unix_connection(sock=inlet.dup())
    except BaseException:
        inlet.close()
        raise
    finally:
        os.close(descriptor)
    return reader, writer, inlet


async def _exhaust(received: AsyncIterator[tuple[int, bytes]]) -> None:
    async for _ in received:
        pass
