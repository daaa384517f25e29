"""The numbered channels of exec and attach, as Kubernetes numbers them, independent of the transport."""

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
    """One client. Writing to a client that has disconnected is a ConnectionError."""

    async def send(self, channel: int, content: bytes) -> None: ...

    def received(self) -> AsyncIterator[tuple[int, bytes]]:
        """The client's messages until it disconnects; a CLOSE message names a channel that the client has closed."""
        ...


class WebSocketChannels:
    """Channels over a WebSocket: each message begins with the number of its channel."""

    def __init__(self, socket: web.WebSocketResponse) -> None:
        self._socket = socket

    async def send(self, channel: int, content: bytes) -> None:
        await self._socket.send_bytes(bytes((channel,)) + content)

    async def received(self) -> AsyncIterator[tuple[int, bytes]]:
        async for message in self._socket:
            if message.type in (WSMsgType.BINARY, WSMsgType.TEXT) and message.data:
                content: bytes = message.data if isinstance(message.data, bytes) else message.data.encode()
                yield content[0], content[1:]


class TerminalSize(msgspec.Struct, frozen=True):
    """The size of the client's terminal, in characters."""

    rows: int
    columns: int


def parse_size(content: bytes) -> TerminalSize | None:
    try:
        message = msgspec.json.decode(content)
        return TerminalSize(int(message["Height"]) & 0xFFFF, int(message["Width"]) & 0xFFFF)
    except (ValueError, TypeError, KeyError, msgspec.DecodeError, RecursionError):
        return None
