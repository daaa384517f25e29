"""Streams of bytes to kubelets: an HTTP connection upgraded to SPDY, as kube-apiserver has them; not parsed.

Clients come with such a connection of their own, or with one inside a WebSocket (`SPDY/3.1+portforward.k8s.io`).
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from typing import Any, Final
from urllib.parse import urlsplit

from volcano.api.errors import ServiceUnavailable, error_from

SPDY: Final = "SPDY/3.1"
VERSION_HEADER: Final = "x-stream-protocol-version"
TUNNEL: Final = f"{SPDY}+"
"""Prefix of the subprotocol of a WebSocket that carries SPDY; the stream protocol follows."""
READ_CHUNK_BYTES: Final = 64 * 1024
DIAL_SECONDS: Final = 30.0
MAX_HEAD_BYTES: Final = 64 * 1024
MAX_REFUSAL_BYTES: Final = 4096

Message = MutableMapping[str, Any]


class KubeletStream:
    """An open stream; `version` is the stream protocol that the kubelet chose."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: str) -> None:
        self._reader, self._writer, self.version = reader, writer, version

    async def relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Between the kubelet and a client whose connection was upgraded too, until either side closes."""
        head = f"HTTP/1.1 101 Switching Protocols\r\nconnection: Upgrade\r\nupgrade: {SPDY}\r\n"
        writer.write(f"{head}{VERSION_HEADER}: {self.version}\r\n\r\n".encode("latin-1"))
        await self._until_one_ends(_copy(reader, self._writer), _copy(self._reader, writer))

    async def tunnel(
        self, receive: Callable[[], Awaitable[Message]], send: Callable[[Message], Awaitable[None]]
    ) -> None:
        """The same for a client with a WebSocket: its binary messages are pieces of the stream."""
        name = f"{TUNNEL}{self.version}".encode("latin-1")
        await send({"type": "websocket.accept", "headers": [(b"sec-websocket-protocol", name)]})
        await self._until_one_ends(self._to_kubelet(receive), self._to_client(send))

    async def _to_kubelet(self, receive: Callable[[], Awaitable[Message]]) -> None:
        while (message := await receive())["type"] != "websocket.disconnect":
            self._writer.write(message.get("bytes") or b"")
            await self._writer.drain()

    async def _to_client(self, send: Callable[[Message], Awaitable[None]]) -> None:
        with contextlib.suppress(OSError):
            while piece := await self._reader.read(READ_CHUNK_BYTES):
                await send({"type": "websocket.send", "bytes": piece})
        await send({"type": "websocket.close", "code": 1000})

    async def _until_one_ends(self, *ways: Awaitable[None]) -> None:
        tasks = [asyncio.ensure_future(way) for way in ways]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while piece := await reader.read(READ_CHUNK_BYTES):
            writer.write(piece)
            await writer.drain()


async def open_stream(url: str, versions: Sequence[str], context: ssl.SSLContext | None) -> KubeletStream:
    """Ask the kubelet at this address (http or https) to upgrade the connection to SPDY."""
    place = urlsplit(url)
    lines = [
        f"POST {place.path}?{place.query} HTTP/1.1",
        f"host: {place.netloc}",
        "connection: Upgrade",
        f"upgrade: {SPDY}",
        *(f"{VERSION_HEADER}: {version}" for version in versions),
        "content-length: 0",
    ]
    try:
        async with asyncio.timeout(DIAL_SECONDS):
            reader, writer = await asyncio.open_connection(
                place.hostname, place.port, ssl=context if place.scheme == "https" else None, limit=MAX_HEAD_BYTES
            )
            try:
                writer.write(("\r\n".join(lines) + "\r\n\r\n").encode("latin-1"))
                return KubeletStream(reader, writer, await _answer(reader))
            except BaseException:
                writer.close()
                raise
    except (OSError, TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError) as error:
        raise ServiceUnavailable(f"error dialing backend: {error}") from error


async def _answer(reader: asyncio.StreamReader) -> str:
    """The stream protocol that the kubelet chose; its refusal, which is plain text, is raised as an ApiError."""
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.split("\r\n")
    headers = {name.strip().lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    status = first.split(" ")[1] if first.startswith("HTTP/1.1 ") else ""
    if status == "101":
        return headers.get(VERSION_HEADER, "")
    length = headers.get("content-length", "")
    said = await reader.readexactly(min(int(length), MAX_REFUSAL_BYTES)) if length.isdecimal() else b""
    raise error_from(int(status) if status.isdecimal() else 502, None, said.decode(errors="replace").strip())
