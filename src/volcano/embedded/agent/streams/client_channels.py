"""Opens the channels of an exec or attach in the protocol that the client requests: WebSocket or SPDY."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

from volcano.embedded.agent.streams.channels import (
    ERROR,
    MAX_WEBSOCKET_MESSAGE_BYTES,
    PROTOCOLS,
    RESIZE,
    STDERR,
    STDIN,
    STDOUT,
    Channels,
    WebSocketChannels,
)
from volcano.embedded.agent.streams.spdy.spdy_channels import VERSIONS, SpdyChannels
from volcano.embedded.agent.streams.upgrade import choose_version, upgraded, wants_spdy

WRITE_BUFFER_BYTES: Final = 64 * 1024
"""What waits for a client that does not read; TLS would keep 512 KiB for each."""
TRUE_VALUES: Final = ("1", "true", "True")


@contextlib.asynccontextmanager
async def client_channels(request: web.Request) -> AsyncIterator[tuple[Channels, web.StreamResponse]]:
    """The channels, open inside the context, and the response that the request's handler returns afterwards."""
    if not wants_spdy(request):
        socket = await open_socket(request)
        yield WebSocketChannels(socket), socket
        await socket.close()
        return
    version = choose_version(request, VERSIONS)
    async with upgraded(request, version) as connection, SpdyChannels(*connection, _wanted(request)) as channels:
        yield channels, web.Response()  # not sent: the connection belongs to SPDY


async def open_socket(request: web.Request) -> web.WebSocketResponse:
    socket = web.WebSocketResponse(
        protocols=PROTOCOLS, max_msg_size=MAX_WEBSOCKET_MESSAGE_BYTES, compress=False, heartbeat=30.0
    )
    if request.transport is not None:
        request.transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
    await socket.prepare(request)
    return socket


def _wanted(request: web.Request) -> set[int]:
    """The streams that the client opens, by the request's parameters."""
    requested = {name for name in ("input", "output", "error", "tty") if request.query.get(name, "") in TRUE_VALUES}
    has_terminal = "tty" in requested
    wanted = {ERROR, *({RESIZE} if has_terminal else ())}
    names = {"input": STDIN, "output": STDOUT, **({} if has_terminal else {"error": STDERR})}
    return wanted | {channel for name, channel in names.items() if name in requested}
