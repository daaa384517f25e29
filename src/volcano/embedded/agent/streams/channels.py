"""What exec and attach say to their client, whatever carries it: numbered channels, in Kubernetes' numbering."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final, Protocol

import msgspec
from aiohttp import WSMsgType, web

STDIN, STDOUT, STDERR, ERROR, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255
PROTOCOLS: Final = (
    "v5.channel.k8s.io",
    "v4.channel.k8s.io",
    "v3.channel.k8s.io",
    "v2.channel.k8s.io",
    "channel.k8s.io",
)
MAX_WEBSOCKET_MESSAGE_BYTES: Final = 4 * 2**20
SUCCESS: Final = msgspec.json.encode({"metadata": {}, "status": "Success"})


class Channels(Protocol):
    """One client. Writing to one that is gone is a ConnectionError."""

    async def send(self, channel: int, content: bytes) -> None: ...

    def received(self) -> AsyncIterator[tuple[int, bytes]]:
        """What the client says, until it hangs up; CLOSE names a channel that it says no more on."""
        ...


class WebSocketChannels:
    """Each message begins with the number of its channel."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def send(self, channel: int, content: bytes) -> None:
        await self._socket.send_bytes(bytes((channel,)) + content)

    async def received(self) -> AsyncIterator[tuple[int, bytes]]:
        async for message in self._socket:
            if message.type in (WSMsgType.BINARY, WSMsgType.TEXT) and message.data:
                content: bytes = message.data if isinstance(message.data, bytes) else message.data.encode()
                yield content[0], content[1:]


class Size(msgspec.Struct, frozen=True):
    """A terminal's, as clients tell it."""

    rows: int
    columns: int


def parse_size(content: bytes) -> Size | None:
    try:
        told = msgspec.json.decode(content)
        return Size(int(told["Height"]) & 0xFFFF, int(told["Width"]) & 0xFFFF)
    except (ValueError, TypeError, KeyError, msgspec.DecodeError):
        return None
