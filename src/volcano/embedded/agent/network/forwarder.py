"""A TCP forwarder: pods on their own network reach the API server that listens on this machine's loopback."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

COPY_CHUNK_BYTES: Final = 65536
MAX_CONNECTIONS: Final = 512


class Forwarder:
    """Listens on an address of the pod network and forwards connections to one endpoint."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int]) -> None:
        self._listen, self._to = listen, to
        self._server: asyncio.Server | None = None
        self._open = 0

    async def open(self) -> None:
        """Start listening. If the address is in use, the API server itself listens there and nothing is forwarded."""
        with contextlib.suppress(OSError):
            self._server = await asyncio.start_server(self._forward, *self._listen)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open += 1
        try:
            from_target, to_target = await asyncio.open_connection(*self._to)
            await asyncio.gather(_copy(reader, to_target), _copy(from_target, writer), return_exceptions=True)
        except OSError:
            pass
        finally:
            self._open -= 1
            writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(COPY_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
    finally:
        with contextlib.suppress(OSError, RuntimeError):
            writer.close()
