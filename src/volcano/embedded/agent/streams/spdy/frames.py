"""Encodes and decodes SPDY/3.1 frames, the format of Kubernetes' port-forward and older exec streams. No I/O.

Header blocks of a direction share one zlib context, so each connection needs its own reader and writer.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Mapping
from typing import Final, TypeAlias

import msgspec

VERSION: Final = 3
SYN_STREAM, SYN_REPLY, RST_STREAM, SETTINGS, PING, GOAWAY, HEADERS, WINDOW_UPDATE = 1, 2, 3, 4, 6, 7, 8, 9
FIN: Final = 0x01
PROTOCOL_ERROR, INVALID_STREAM, REFUSED_STREAM, CANCEL, INTERNAL_ERROR = 1, 2, 3, 5, 6

MAX_CONTROL_FRAME_BYTES: Final = 64 * 1024
MAX_HEADER_BLOCK_BYTES: Final = 64 * 1024
MAX_HEADERS_PER_BLOCK: Final = 128
_ID: Final = 0x7FFF_FFFF
_WORDS: Final = (
    "options", "head", "post", "put", "delete", "trace", "accept", "accept-charset", "accept-encoding",
    "accept-language", "accept-ranges", "age", "allow", "authorization", "cache-control", "connection", "content-base",
    "content-encoding", "content-language", "content-length", "content-location", "content-md5", "content-range",
    "content-type", "date", "etag", "expect", "expires", "from", "host", "if-match", "if-modified-since",
    "if-none-match", "if-range", "if-unmodified-since", "last-modified", "location", "max-forwards", "pragma",
    "proxy-authenticate", "proxy-authorization", "range", "referer", "retry-after", "server", "te", "trailer",
    "transfer-encoding", "upgrade", "user-agent", "vary", "via", "warning", "www-authenticate", "method", "get",
    "status", "200 OK", "version", "HTTP/1.1", "url", "public", "set-cookie", "keep-alive", "origin",
)  # fmt: skip
_TAIL: Final = (
    "100101201202205206300302303304305306307402405406407408409410411412413414415416417502504505203 Non-Authoritative "
    "Information204 No Content301 Moved Permanently400 Bad Request401 Unauthorized403 Forbidden404 Not Found500 "
    "Internal Server Error501 Not Implemented503 Service UnavailableJan Feb Mar Apr May Jun Jul Aug Sept Oct Nov Dec "
    "00:00:00 Mon, Tue, Wed, Thu, Fri, Sat, Sun, GMTchunked,text/html,image/png,image/jpg,image/gif,application/xml,"
    "application/xhtml+xml,text/plain,text/javascript,publicprivatemax-age=gzip,deflate,sdchcharset=utf-8"
    "charset=iso-8859-1,utf-,*,enq=0."
)
DICTIONARY: Final = b"".join(struct.pack("!I", len(word)) + word.encode() for word in _WORDS) + _TAIL.encode()
"""The initial dictionary of both compressors, fixed by the protocol."""


class SpdyError(ValueError):
    """The peer sent something that is not SPDY/3.1, or more than a limit allows."""


class SynStream(msgspec.Struct, frozen=True):
    """The peer opens a stream."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool


class SynReply(msgspec.Struct, frozen=True):
    """The peer accepts a stream, or sends more headers of it (a HEADERS frame)."""

    stream: int
    headers: Mapping[str, str]
    is_last: bool


class Content(msgspec.Struct, frozen=True):
    """A part of a stream's data; a large data frame is split into several."""

    stream: int
    content: bytes
    is_last: bool


class Reset(msgspec.Struct, frozen=True):
    stream: int
    status: int


class Ping(msgspec.Struct, frozen=True):
    number: int


class GoAway(msgspec.Struct, frozen=True):
    last_stream: int
    status: int


class WindowUpdate(msgspec.Struct, frozen=True):
    stream: int
    more: int


class SettingsFrame(msgspec.Struct, frozen=True):
    values: Mapping[int, int]


Frame: TypeAlias = SynStream | SynReply | Content | Reset | Ping | GoAway | WindowUpdate | SettingsFrame


class FrameReader:
    """Decodes bytes into frames. Data is passed on as it arrives, control frames once they are complete."""

    def __init__(self) -> None:
        self._inflate = zlib.decompressobj(zdict=DICTIONARY)
        self._buffer = bytearray()
        self._stream = 0  # the stream whose data frame is being received
        self._left = 0
        self._is_last = False

    def feed(self, received: bytes) -> list[Frame]:
        """The frames that are complete now; SpdyError for invalid ones, after which the connection cannot be used."""
        self._buffer += received
        frames: list[Frame] = []
        while self._left and self._buffer:
            frames.append(self._piece())
        while len(self._buffer) >= 8:
            word, rest = struct.unpack_from("!II", self._buffer)
            flags, length = rest >> 24, rest & 0xFF_FFFF
            if not word >> 31:
                self._stream, self._left, self._is_last = word, length, bool(flags & FIN)
                del self._buffer[:8]
                if not length:
                    frames.append(Content(word, b"", self._is_last))
                elif self._buffer:
                    frames.append(self._piece())
                if self._left:
                    break
                continue
            if length > MAX_CONTROL_FRAME_BYTES:
                raise SpdyError(f"a control frame of {length} bytes")
            if len(self._buffer) < 8 + length:
                break
            body = bytes(self._buffer[8 : 8 + length])
            del self._buffer[: 8 + length]
            frame = self._control(word, flags, body)
            if frame is not None:
                frames.append(frame)
        return frames

    def _piece(self) -> Content:
        content = bytes(self._buffer[: self._left])
        del self._buffer[: self._left]
        self._left -= len(content)
        return Content(self._stream, content, self._is_last and not self._left)

    def _control(self, word: int, flags: int, body: bytes) -> Frame | None:
        version, kind = (word >> 16) & 0x7FFF, word & 0xFFFF
        if version != VERSION:
            raise SpdyError(f"version {version} of SPDY, not {VERSION}")
        try:
            match kind:
                case 1:
                    stream = struct.unpack_from("!IIBB", body)[0] & _ID
                    return SynStream(stream, self._headers(body[10:]), bool(flags & FIN))
                case 2 | 8:
                    stream = struct.unpack_from("!I", body)[0] & _ID
                    return SynReply(stream, self._headers(body[4:]), bool(flags & FIN))
                case 3:
                    stream, status = struct.unpack("!II", body)
                    return Reset(stream & _ID, status)
                case 4:
                    return _settings(body)
                case 6:
                    return Ping(struct.unpack("!I", body)[0])
                case 7:
                    stream, status = struct.unpack("!II", body)
                    return GoAway(stream & _ID, status)
                case 9:
                    stream, more = struct.unpack("!II", body)
                    return WindowUpdate(stream & _ID, more & _ID)
        except struct.error as error:
            raise SpdyError(f"a control frame of type {kind} that is too short") from error
        return None  # the protocol requires unknown kinds to be ignored

    def _headers(self, block: bytes) -> dict[str, str]:
        try:
            text = self._inflate.decompress(block, MAX_HEADER_BLOCK_BYTES)
        except zlib.error as error:
            raise SpdyError(f"headers cannot be read: {error}") from error
        if self._inflate.unconsumed_tail:
            raise SpdyError(f"more than {MAX_HEADER_BLOCK_BYTES} bytes of headers")
        (count,), at = struct.unpack_from("!I", text), 4
        if count > MAX_HEADERS_PER_BLOCK:
            raise SpdyError(f"{count} headers")
        found: dict[str, str] = {}
        for _ in range(count):
            name, at = _text(text, at)
            value, at = _text(text, at)
            found[name.lower()] = value
        return found


def _text(block: bytes, at: int) -> tuple[str, int]:
    (length,) = struct.unpack_from("!I", block, at)
    end = at + 4 + length
    if end > len(block):
        raise SpdyError("a truncated header")
    return block[at + 4 : end].decode("utf-8", "replace"), end


def _settings(body: bytes) -> SettingsFrame:
    (count,) = struct.unpack_from("!I", body)
    entries = (
        struct.unpack_from("!II", body, 4 + 8 * number) for number in range(min(count, MAX_CONTROL_FRAME_BYTES // 8))
    )
    return SettingsFrame({key & 0xFF_FFFF: value for key, value in entries})


class FrameWriter:
    """Encodes frames with headers; they must be sent in the order they were encoded."""

    def __init__(self) -> None:
        self._deflate = zlib.compressobj(zdict=DICTIONARY)

    def syn_stream(self, stream: int, headers: Mapping[str, str], *, is_last: bool = False) -> bytes:
        body = struct.pack("!IIBB", stream, 0, 0, 0) + self._headers(headers)
        return _control_frame(SYN_STREAM, body, FIN if is_last else 0)

    def syn_reply(self, stream: int, headers: Mapping[str, str] | None = None) -> bytes:
        return _control_frame(SYN_REPLY, struct.pack("!I", stream) + self._headers(headers or {}))

    def _headers(self, headers: Mapping[str, str]) -> bytes:
        texts = [text.encode() for pair in headers.items() for text in pair]
        block = struct.pack("!I", len(headers)) + b"".join(struct.pack("!I", len(text)) + text for text in texts)
        return self._deflate.compress(block) + self._deflate.flush(zlib.Z_SYNC_FLUSH)


def content_frame(stream: int, content: bytes, *, is_last: bool = False) -> bytes:
    return struct.pack("!II", stream, (FIN if is_last else 0) << 24 | len(content)) + content


def reset_frame(stream: int, status: int) -> bytes:
    return _control_frame(RST_STREAM, struct.pack("!II", stream, status))


def ping_frame(number: int) -> bytes:
    return _control_frame(PING, struct.pack("!I", number))


def go_away_frame(last_stream: int, status: int = 0) -> bytes:
    return _control_frame(GOAWAY, struct.pack("!II", last_stream, status))


def window_update_frame(stream: int, more: int) -> bytes:
    return _control_frame(WINDOW_UPDATE, struct.pack("!II", stream, more))


def _control_frame(kind: int, body: bytes, flags: int = 0) -> bytes:
    return struct.pack("!HHI", 0x8000 | VERSION, kind, flags << 24 | len(body)) + body
