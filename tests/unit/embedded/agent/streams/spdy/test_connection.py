"""SPDY/3.1 connections: streams, pings, resets and limits, over a pair of sockets."""

from __future__ import annotations

import asyncio
import socket

import pytest

from volcano.embedded.agent.streams.spdy.connection import MAX_STREAMS, SpdyConnection, SpdyStream
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
    SynReply,
    content_frame,
    ping_frame,
    reset_frame,
)


class Peer:
    """The client's side of a connection over a real pair of sockets."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self.writer = reader, writer
        self._frames, self.out = FrameReader(), FrameWriter()

    async def frames(self, count: int) -> list[Frame]:
        found: list[Frame] = []
        async with asyncio.timeout(10):
            while len(found) < count:
                received = await self._reader.read(65536)
                assert received, found
                found += self._frames.feed(received)
        return found

    async def closed(self) -> bytes:
        async with asyncio.timeout(10):
            return await self._reader.read()


@pytest.fixture
async def streams() -> list[SpdyStream]:
    return []


@pytest.fixture
async def peer(streams):
    ours, theirs = socket.socketpair()
    server = SpdyConnection(*await asyncio.open_connection(sock=ours), streams.append)
    running = asyncio.create_task(server.run())
    reader, writer = await asyncio.open_connection(sock=theirs)
    yield Peer(reader, writer)
    writer.close()
    await running


async def test_a_stream_is_replied_to_and_carries_bytes_both_ways(peer, streams):
    peer.writer.write(peer.out.syn_stream(1, {"port": "80"}) + content_frame(1, b"question", is_last=True))

    assert await peer.frames(1) == [SynReply(1, {}, False)]
    stream = streams[0]
    assert (await stream.read(), await stream.read(), stream.headers) == (b"question", b"", {"port": "80"})
    await stream.write(b"answer")
    stream.finish()
    assert await peer.frames(2) == [Content(1, b"answer", False), Content(1, b"", True)]


async def test_a_ping_is_answered_and_a_reset_ends_the_stream(peer, streams):
    peer.writer.write(ping_frame(1) + peer.out.syn_stream(1, {}) + reset_frame(1, CANCEL))

    assert await peer.frames(2) == [Ping(1), SynReply(1, {}, False)]
    async with asyncio.timeout(10):
        await streams[0].until_reset()
    assert await streams[0].read() == b"" and streams[0].was_reset
    with pytest.raises(ConnectionResetError):
        await streams[0].write(b"too late")


async def test_streams_out_of_order_and_above_the_limit_are_reset(peer, streams):
    peer.writer.write(b"".join(peer.out.syn_stream(1 + 2 * n, {}) for n in range(MAX_STREAMS + 1)))
    peer.writer.write(peer.out.syn_stream(1, {}) + peer.out.syn_stream(2, {}))

    frames = await peer.frames(MAX_STREAMS + 3)

    assert len(streams) == MAX_STREAMS
    assert frames[-3:] == [
        Reset(1 + 2 * MAX_STREAMS, REFUSED_STREAM), Reset(1, PROTOCOL_ERROR), Reset(2, PROTOCOL_ERROR)
    ]  # fmt: skip


async def test_a_stream_nobody_reads_slows_the_peer_down_and_goes_on_when_it_is_read(peer, streams):
    total = 20 * 2**20
    peer.writer.write(peer.out.syn_stream(1, {}))
    await peer.frames(1)
    sending = asyncio.create_task(send(peer, total))
    done, _ = await asyncio.wait({sending}, timeout=0.2)
    assert not done

    read = 0
    async with asyncio.timeout(20):
        while piece := await streams[0].read():
            read += len(piece)

    await sending
    assert read == total


async def send(peer: Peer, total: int) -> None:
    for _ in range(total // 65536):
        peer.writer.write(content_frame(1, bytes(65536)))
        await peer.writer.drain()
    peer.writer.write(content_frame(1, b"", is_last=True))
    await peer.writer.drain()


async def test_nonsense_ends_the_connection_and_every_stream(peer, streams):
    peer.writer.write(peer.out.syn_stream(1, {}))
    await peer.frames(1)

    peer.writer.write(b"\xff" * 64)

    assert FrameReader().feed(await peer.closed()) == [GoAway(1, PROTOCOL_ERROR)]
    assert await streams[0].read() == b"" and streams[0].was_reset


async def test_the_end_of_the_connection_ends_every_stream(peer, streams):
    peer.writer.write(peer.out.syn_stream(1, {}) + content_frame(1, b"last words"))
    await peer.frames(1)

    peer.writer.close()

    async with asyncio.timeout(10):
        await streams[0].until_reset()
