"""SPDY/3.1 frames: encoding and decoding are inverse however the bytes are cut; what exceeds a limit is refused."""

from __future__ import annotations

import struct
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from volcano.embedded.agent.streams.spdy.frames import (
    CANCEL,
    DICTIONARY,
    MAX_CONTROL_FRAME_BYTES,
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
