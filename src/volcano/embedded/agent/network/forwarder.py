"""Lets pods on their own network reach what listens on this machine's loopback: the API server."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Final

COPY_CHUNK_BYTES: Final = 65536
MAX_CONNECTIONS: Final = 512


class Forwarder:
    """Listens on an address of the pods' network and passes connections on to one place."""

    def __init__(self, listen: tuple[str, int], to: tuple[str, int]) -> None:
        self._listen, self._to = listen, to
        self._server: asyncio.Server | None = None
        self._open = 0

    async def open(self) -> None:
        """An address that is taken is taken by the API server itself: nothing to forward then."""
        with contextlib.suppress(OSError):
            self._server = await asyncio.start_server(self._pass_on, *self._listen)

    async def close(self) -> None:
        if self._server is not None:
            self._server.close()

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._open >= MAX_CONNECTIONS:
            writer.close()
            return
        self._open += 1
        try:
            there, back = await asyncio.open_connection(*self._to)
            await asyncio.gather(_copy(reader, back), _copy(there, writer), return_exceptions=True)
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
