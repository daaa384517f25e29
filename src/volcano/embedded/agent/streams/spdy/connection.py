"""The server side of one SPDY/3.1 connection: streams that the peer opens, read and written independently.

The peer's flow-control windows are ignored: SPDY clients of kubelets neither send updates nor honour ours, and TCP
slows a fast sender down. Unread data per stream is bounded here all the same.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from volcano.embedded.agent.streams.spdy.frames import (
    CANCEL,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Content,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    Reset,
    SpdyError,
    SynStream,
    content_frame,
    go_away_frame,
    ping_frame,
    reset_frame,
    window_update_frame,
)

IO_CHUNK_BYTES: Final = 64 * 1024
MAX_STREAMS: Final = 512
MAX_UNREAD_BYTES: Final = 256 * 1024
"""Unread bytes of one stream at which the whole connection stops reading."""
STUCK_READER_TIMEOUT_SECONDS: Final = 60.0
"""How long it stops reading; then that stream is reset and the others continue."""
PING_TIMEOUT_SECONDS: Final = 60.0
"""A peer that sends nothing for this long gets a ping, and is disconnected after the same time without an answer."""
CLOSE_TIMEOUT_SECONDS: Final = 30.0
_WINDOW_UPDATE_BYTES: Final = 16 * 1024


class SpdyStream:
    """One stream. Reading returns b"" at the end; writing to a closed stream is a ConnectionResetError."""

    def __init__(self, connection: SpdyConnection, number: int, headers: Mapping[str, str]) -> None:
        self._connection, self.number, self.headers = connection, number, headers
        self._pieces: deque[bytes] = deque()
        self._unread = self._taken = 0
        self._arrived, self._has_room, self._closed = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self._has_room.set()
        self._is_dropping = False
        self.is_ended = False  # the peer sends no more
        self.is_finished = False  # this side sends no more
        self.was_reset = False

    async def read(self) -> bytes:
        """Received bytes; b"" at the end or after a reset."""
        while not self._pieces:
            if self.is_ended:
                return b""
            self._arrived.clear()
            await self._arrived.wait()
        piece = self._pieces.popleft()
        self._unread -= len(piece)
        self._taken += len(piece)
        if self._unread < MAX_UNREAD_BYTES:
            self._has_room.set()
        if self._taken >= _WINDOW_UPDATE_BYTES and not self.is_ended:
            self._connection.give_room(self.number, self._taken)
            self._taken = 0
        return piece

    async def write(self, content: bytes) -> None:
        for start in range(0, len(content), IO_CHUNK_BYTES):
            if self.is_finished:
                raise ConnectionResetError("the stream is closed")
            await self._connection.send(content_frame(self.number, content[start : start + IO_CHUNK_BYTES]))

    async def until_reset(self) -> None:
        """Return when the stream was reset."""
        await self._closed.wait()

    def leave(self) -> None:
        """Stop writing and reading; the peer has CLOSE_TIMEOUT_SECONDS to close its side before a reset."""
        self.finish()
        self._is_dropping = True
        self._empty()
        if not self.is_ended:
            asyncio.get_running_loop().call_later(CLOSE_TIMEOUT_SECONDS, self.reset)

    def finish(self) -> None:
        """Close the writing side; the stream can still be read."""
        if not self.is_finished:
            self.is_finished = True
            self._connection.post(content_frame(self.number, b"", is_last=True))
            self._connection.forget_if_over(self)

    def reset(self, status: int = CANCEL) -> None:
        """Close the stream at once in both directions."""
        if not (self.is_ended and self.is_finished):
            self._connection.post(reset_frame(self.number, status))
        self.close()
        self._connection.forget_if_over(self)

    # -- for the connection -----------------------------------------------------------------------------------
    async def take(self, piece: Content) -> None:
        if piece.content and not self.is_ended and not self._is_dropping:
            self._pieces.append(piece.content)
            self._unread += len(piece.content)
        self.is_ended |= piece.is_last
        self._arrived.set()
        if self._unread < MAX_UNREAD_BYTES:
            return
        self._has_room.clear()
        try:
            async with asyncio.timeout(STUCK_READER_TIMEOUT_SECONDS):
                await self._has_room.wait()
        except TimeoutError:
            self.reset()

    def close(self) -> None:
        """Close without a frame to the peer, which has reset the stream or disconnected."""
        self.was_reset = self.was_reset or not (self.is_ended and self.is_finished)
        self.is_ended = self.is_finished = True
        self._empty()
        self._closed.set()

    def _empty(self) -> None:
        self._pieces.clear()
        self._unread = 0
        self._arrived.set()
        self._has_room.set()


class SpdyConnection:
    """`accept` is called with each new stream, after the reply to it was sent."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, accept: Callable[[SpdyStream], None]
    ) -> None:
        self._reader, self._writer, self._accept = reader, writer, accept
        self._frames_in, self._frames_out = FrameReader(), FrameWriter()
        self._streams: dict[int, SpdyStream] = {}
        self._newest = 0
        self._is_leaving = False

    async def run(self) -> None:
        """Run until the peer disconnects; then every stream is closed."""
        try:
            while received := await self._receive():
                for frame in self._frames_in.feed(received):
                    await self._take(frame)
        except SpdyError:
            self.post(go_away_frame(self._newest, PROTOCOL_ERROR))
        except (OSError, TimeoutError):
            pass  # the peer disconnected
        finally:
            for stream in tuple(self._streams.values()):
                stream.close()
            self._streams.clear()
            self._writer.close()

    async def send(self, frame: bytes) -> None:
        """Send a frame and wait until the transport has room for more."""
        self.post(frame)
        await self._writer.drain()

    def post(self, frame: bytes) -> None:
        """Send a small frame without waiting."""
        if not self._writer.is_closing():
            self._writer.write(frame)

    def give_room(self, number: int, amount: int) -> None:
        self.post(window_update_frame(number, amount) + window_update_frame(0, amount))

    def forget_if_over(self, stream: SpdyStream) -> None:
        if stream.is_ended and stream.is_finished:
            self._streams.pop(stream.number, None)

    async def _receive(self) -> bytes:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(PING_TIMEOUT_SECONDS):
                return await self._reader.read(IO_CHUNK_BYTES)
        self.post(ping_frame(2))
        async with asyncio.timeout(PING_TIMEOUT_SECONDS):
            return await self._reader.read(IO_CHUNK_BYTES)

    async def _take(self, frame: Frame) -> None:
        match frame:
            case SynStream():
                self._open(frame)
            case Content():
                stream = self._streams.get(frame.stream)
                if stream is not None:
                    await stream.take(frame)
                    self.forget_if_over(stream)
            case Reset():
                stream = self._streams.pop(frame.stream, None)
                if stream is not None:
                    stream.close()
            case Ping(number) if number % 2:
                self.post(ping_frame(number))  # the peer's pings are odd; an even one is the answer to ours
            case GoAway():
                self._is_leaving = True
            case _:
                pass

    def _open(self, frame: SynStream) -> None:
        number = frame.stream
        if number % 2 == 0 or number <= self._newest:
            self.post(reset_frame(number, PROTOCOL_ERROR))
            return
        self._newest = number
        if len(self._streams) >= MAX_STREAMS or self._is_leaving:
            self.post(reset_frame(number, REFUSED_STREAM))
            return
        stream = self._streams[number] = SpdyStream(self, number, frame.headers)
        stream.is_ended = frame.is_last
        self.post(self._frames_out.syn_reply(number))
        self._accept(stream)
