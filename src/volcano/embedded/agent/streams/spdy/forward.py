"""Port forwarding over SPDY: two streams for each connection of the client, one for data, one for errors."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from volcano.embedded.agent.streams.spdy.connection import SpdyConnection, SpdyStream
from volcano.embedded.agent.streams.spdy.frames import PROTOCOL_ERROR

VERSIONS: Final = ("portforward.k8s.io",)
COPY_CHUNK_BYTES: Final = 64 * 1024
PAIRING_TIMEOUT_SECONDS: Final = 30.0
"""How long one of the two streams waits for the other before it is reset."""

TcpStreams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[int], Awaitable[TcpStreams]]
"""Connects to a port of the pod; OSError when no process listens there."""


class SpdyForward:
    """The port forwarding of one client, until it disconnects."""

    def __init__(self, connection: TcpStreams, dial: Dial) -> None:
        self._spdy = SpdyConnection(*connection, self._opened)
        self._dial = dial
        self._waiting: dict[str, SpdyStream] = {}  # the first stream of each pair
        self._tasks: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        try:
            await self._spdy.run()
        finally:
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def _opened(self, stream: SpdyStream) -> None:
        kind, number, port = (stream.headers.get(name, "") for name in ("streamtype", "requestid", "port"))
        if kind not in ("error", "data") or not (port.isdecimal() and 0 < int(port) < 65536):
            stream.reset(PROTOCOL_ERROR)
            return
        other = self._waiting.pop(number, None)
        if other is None:
            self._waiting[number] = stream
            asyncio.get_running_loop().call_later(PAIRING_TIMEOUT_SECONDS, self._give_up, number, stream)
        elif other.headers["streamtype"] == kind or other.headers["port"] != port:
            other.reset(PROTOCOL_ERROR)
            stream.reset(PROTOCOL_ERROR)
        else:
            errors, content = (stream, other) if kind == "error" else (other, stream)
            task = asyncio.ensure_future(self._forward(content, errors, int(port)))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _give_up(self, number: str, stream: SpdyStream) -> None:
        if self._waiting.get(number) is stream:
            del self._waiting[number]
            stream.reset()

    async def _forward(self, content: SpdyStream, errors: SpdyStream, port: int) -> None:
        try:
            connection = await self._dial(port)
        except OSError as error:
            why = "timed out" if isinstance(error, TimeoutError) else error.strerror or str(error)
            with contextlib.suppress(OSError):
                await errors.write(f"cannot connect to port {port} of the pod: {why}".encode())
        else:
            await exchange(content, connection)
        for stream in (content, errors):
            stream.leave()


async def exchange(stream: SpdyStream, connection: TcpStreams) -> None:
    """Copy in both directions until the pod closes the connection or the client resets the stream."""
    reader, writer = connection
    to_pod = asyncio.ensure_future(_to_pod(stream, writer))
    to_client = asyncio.ensure_future(_to_client(reader, stream))
    reset = asyncio.ensure_future(stream.until_reset())
    try:
        await asyncio.wait((to_client, reset), return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (to_pod, to_client, reset):
            task.cancel()
        await asyncio.gather(to_pod, to_client, reset, return_exceptions=True)
        if stream.was_reset:
            writer.transport.abort()
        writer.close()


async def _to_pod(stream: SpdyStream, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await stream.read():
            writer.write(piece)
            await writer.drain()
        if not stream.was_reset:
            writer.write_eof()


async def _to_client(reader: asyncio.StreamReader, stream: SpdyStream) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(COPY_CHUNK_BYTES):
            await stream.write(piece)
