"""Switches an HTTP connection to SPDY: answers 101 and hands the raw connection over."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Final

from aiohttp import web

SPDY: Final = "SPDY/3.1"
VERSION_HEADER: Final = "X-Stream-Protocol-Version"
READ_BUFFER_BYTES: Final = 64 * 1024


def wants_spdy(request: web.Request) -> bool:
    """Whether the client requests an upgrade to SPDY, as kube-apiserver does."""
    tokens = [token.strip().lower() for token in request.headers.get("connection", "").split(",")]
    return "upgrade" in tokens and request.headers.get("upgrade", "").lower() == SPDY.lower()


def choose_version(request: web.Request, known: tuple[str, ...]) -> str:
    """The first of our protocol versions that the client offers."""
    offered = [each.strip() for line in request.headers.getall(VERSION_HEADER, []) for each in line.split(",")]
    found = next((version for version in known if version in offered), None)
    if found is None:
        raise web.HTTPForbidden(text=f"unable to upgrade: unable to negotiate protocol: client supports {offered}\n")
    return found


class _Taken(asyncio.StreamReaderProtocol):
    """Replaces the web server's protocol, which is notified only when the connection ends."""

    def __init__(self, reader: asyncio.StreamReader, before: asyncio.BaseProtocol) -> None:
        super().__init__(reader)
        self._before = before

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._before.connection_lost(exc)


@contextlib.asynccontextmanager
async def upgraded(
    request: web.Request, version: str
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    """The upgraded connection, open inside the context and closed after it."""
    transport = request.transport
    if transport is None:
        raise web.HTTPBadRequest(text="the connection is closed\n")
    reader = asyncio.StreamReader(limit=READ_BUFFER_BYTES)
    protocol = _Taken(reader, transport.get_protocol())
    transport.set_write_buffer_limits(high=READ_BUFFER_BYTES)
    transport.set_protocol(protocol)
    protocol.connection_made(transport)
    transport.write(
        f"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: {SPDY}\r\n"
        f"{VERSION_HEADER}: {version}\r\n\r\n".encode()
    )
    writer = asyncio.StreamWriter(transport, protocol, reader, asyncio.get_running_loop())
    try:
        yield reader, writer
    finally:
        transport.close()
