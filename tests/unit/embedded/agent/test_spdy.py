"""SPDY/3.1: frames survive the way through bytes however these are cut, and whoever says too much is stopped."""

from __future__ import annotations

import asyncio
import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.embedded.agent.streams.spdy.connection import MAX_STREAMS, SpdyConnection, SpdyStream
from volcano.embedded.agent.streams.spdy.frames import (
    CANCEL,
    DICTIONARY,
    MAX_CONTROL_FRAME_BYTES,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Content,
    Frame,
    FrameReader,
    FrameWriter,
    GoAway,
    Ping,
    Reset,
    SettingsFrame,
    SpdyError,
    SynReply,
    SynStream,
    WindowUpdate,
    content_frame,
    go_away_frame,
    ping_frame,
    reset_frame,
    window_update_frame,
)

NAMES = st.text("abcdefghijklmnopqrstuvwxyz-", min_size=1, max_size=20)


def whole(frames: list[Frame]) -> list[Frame]:
    """Pieces of one data frame as one."""
    joined: list[Frame] = []
    for frame in frames:
        before = joined[-1] if joined else None
        if (
            isinstance(frame, Content)
            and isinstance(before, Content)
            and before.stream == frame.stream
            and not before.is_last
        ):
            joined[-1] = Content(frame.stream, before.content + frame.content, frame.is_last)
        else:
            joined.append(frame)
    return joined


def test_the_dictionary_is_the_protocols():
    assert (len(DICTIONARY), zlib.adler32(DICTIONARY)) == (1423, 0xE3C6A7C2)


@given(
    headers=st.dictionaries(NAMES, st.text(max_size=30), max_size=8),
    content=st.binary(max_size=500),
    size=st.integers(1, 40),
)
def test_frames_come_out_as_they_went_in_however_the_bytes_are_cut(headers, content, size):
    writer, reader = FrameWriter(), FrameReader()
    frames: list[Frame] = [
        SynStream(1, headers, False), SynReply(1, headers, False), Content(1, content, True), SynStream(3, headers, True),
        WindowUpdate(1, 70_000), Ping(7), Reset(3, CANCEL), GoAway(3, 0), Content(3, b"", True),
    ]  # fmt: skip
    sent = b"".join(
        (
            writer.syn_stream(1, headers), writer.syn_reply(1, headers), content_frame(1, content, is_last=True),
            writer.syn_stream(3, headers, is_last=True), window_update_frame(1, 70_000), ping_frame(7),
            reset_frame(3, CANCEL), go_away_frame(3), content_frame(3, b"", is_last=True),
        )
    )  # fmt: skip

    received = [frame for at in range(0, len(sent), size) for frame in reader.feed(sent[at : at + size])]

    assert whole(received) == frames


def test_settings_are_read_and_unknown_control_frames_left_out():
    settings = struct.pack("!HHIIII", 0x8003, 4, 12, 1, 0x0000_0007, 65536)
    unknown = struct.pack("!HHI", 0x8003, 99, 3) + b"???"

    assert FrameReader().feed(unknown + settings) == [SettingsFrame({7: 65536})]


@pytest.mark.parametrize(
    "sent",
    [
        struct.pack("!HHI", 0x8002, 6, 4) + b"\0\0\0\1",
        struct.pack("!HHI", 0x8003, 1, MAX_CONTROL_FRAME_BYTES + 1),
        struct.pack("!HHI", 0x8003, 3, 2) + b"\0\0",
        struct.pack("!HHI", 0x8003, 1, 30) + bytes(30),
        b"GET / HTTP/1.1\r\nupgrade: none\r\n".replace(b"G", b"\x80\x47", 1) + bytes(8),
    ],
    ids=["another version", "an endless control frame", "a short one", "headers that are none", "no SPDY at all"],
)
def test_what_is_no_frame_is_refused(sent):
    with pytest.raises(SpdyError):
        FrameReader().feed(sent)


def test_headers_that_blow_up_are_refused():
    deflate = zlib.compressobj(zdict=DICTIONARY)
    block = struct.pack("!III", 1, 1, 2**20) + bytes(2**20)
    body = struct.pack("!IIBB", 1, 0, 0, 0) + deflate.compress(block) + deflate.flush(zlib.Z_SYNC_FLUSH)

    with pytest.raises(SpdyError, match="bytes of headers"):
        FrameReader().feed(struct.pack("!HHI", 0x8003, 1, len(body)) + body)


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
    import socket

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
    assert whole(await peer.frames(2)) == [Content(1, b"answer", True)]


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
