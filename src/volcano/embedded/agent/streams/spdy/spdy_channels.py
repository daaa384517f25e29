"""The channels of exec and attach over SPDY: one stream per channel, opened by the client."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping, Set
from typing import Final

from volcano.embedded.agent.streams.channels import CLOSE, ERROR, RESIZE, STDERR, STDIN, STDOUT
from volcano.embedded.agent.streams.spdy.connection import SpdyConnection, SpdyStream
from volcano.embedded.agent.streams.spdy.frames import PROTOCOL_ERROR

VERSIONS: Final = ("v4.channel.k8s.io",)
KINDS: Final[Mapping[str, int]] = {
    "error": ERROR, "stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "resize": RESIZE
}  # fmt: skip
OPEN_STREAMS_TIMEOUT_SECONDS: Final = 30.0
FINAL_READ_TIMEOUT_SECONDS: Final = 10.0
MAX_QUEUED_MESSAGES: Final = 4
MAX_RESIZE_MESSAGE_BYTES: Final = 1024


class SpdyChannels:
    """One client; `wanted` are the channels that it must open before the session starts."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, wanted: Set[int]) -> None:
        self._spdy = SpdyConnection(reader, writer, self._opened)
        self._wanted = wanted
        self._streams: dict[int, SpdyStream] = {}
        self._complete = asyncio.Event()
        self._messages: asyncio.Queue[tuple[int, bytes]] = asyncio.Queue(MAX_QUEUED_MESSAGES)
        self._tasks: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> SpdyChannels:
        running = asyncio.ensure_future(self._spdy.run())
        running.add_done_callback(lambda _: self._complete.set())
        self._tasks.append(running)
        try:
            async with asyncio.timeout(OPEN_STREAMS_TIMEOUT_SECONDS):
                await self._complete.wait()
            if running.done():
                raise ConnectionResetError("the client disconnected before it had opened its streams")
        except BaseException:
            await self._end()
            raise
        self._tasks += [asyncio.ensure_future(self._receive_input()), asyncio.ensure_future(self._receive_sizes())]
        return self

    async def __aexit__(self, *_: object) -> None:
        """Give the client time to read the last output; it closes the connection when it has."""
        for stream in self._streams.values():
            stream.leave()
        await asyncio.wait(self._tasks[:1], timeout=FINAL_READ_TIMEOUT_SECONDS)
        await self._end()

    async def send(self, channel: int, content: bytes) -> None:
        stream = self._streams.get(channel)
        if stream is not None:
            await stream.write(content)

    async def received(self) -> AsyncIterator[tuple[int, bytes]]:
        running = self._tasks[0]
        while not running.done():
            receiving = asyncio.ensure_future(self._messages.get())
            try:
                await asyncio.wait((receiving, running), return_when=asyncio.FIRST_COMPLETED)
                if receiving.done():
                    yield receiving.result()
            finally:
                receiving.cancel()

    def _opened(self, stream: SpdyStream) -> None:
        channel = KINDS.get(stream.headers.get("streamtype", ""))
        if channel is None or channel in self._streams:
            stream.reset(PROTOCOL_ERROR)
            return
        self._streams[channel] = stream
        if self._wanted <= self._streams.keys():
            self._complete.set()

    async def _receive_input(self) -> None:
        stream = self._streams.get(STDIN)
        if stream is None:
            return
        while piece := await stream.read():
            await self._messages.put((STDIN, piece))
        await self._messages.put((CLOSE, bytes((STDIN,))))

    async def _receive_sizes(self) -> None:
        """Terminal sizes, one per line."""
        stream, rest = self._streams.get(RESIZE), b""
        while stream is not None and (piece := await stream.read()):
            *lines, rest = (rest + piece).split(b"\n")
            rest = rest[-MAX_RESIZE_MESSAGE_BYTES:]
            for line in lines:
                await self._messages.put((RESIZE, line))

    async def _end(self) -> None:
        for task in self._tasks:
            task.cancel()
        with contextlib.suppress(Exception):
            await asyncio.gather(*self._tasks, return_exceptions=True)
