"""What is asked of the store itself: a copy of the database while it is in use, and whether writes last."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, BinaryIO, Final

from volcano.api.errors import NotFound, ServiceUnavailable
from volcano.embedded.apiserver.store.contract import Store, StoreFailed
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Response

PIECE_BYTES: Final = 256 * 1024
PROBE_TIMEOUT_SECONDS: Final = 5.0
SECONDS_BETWEEN_PROBES: Final = 1.0
"""Anybody may ask whether the server is ready, and a probe writes to the disk."""


class StorePages:
    """Stores in memory have no database and always accept writes."""

    def __init__(self, store: Store, clock: Clock) -> None:
        self._store: Any = store
        self._clock = clock
        self._is_on_disk = hasattr(store, "backup")
        self._asking = asyncio.Lock()
        self._probed = float("-inf")
        self._fault = ""

    def write_fault(self) -> str:
        """Why the last probe could not write; empty if it could."""
        return self._fault

    async def probe(self) -> None:
        """Try a write, unless one was tried just now."""
        if not self._is_on_disk:
            return
        async with self._asking:
            if self._clock.monotonic() - self._probed < SECONDS_BETWEEN_PROBES:
                return
            try:
                async with asyncio.timeout(PROBE_TIMEOUT_SECONDS):
                    await self._store.probe()
                self._fault = ""
            except StoreFailed as error:
                self._fault = str(error)
            except TimeoutError:
                self._fault = f"a write took longer than {PROBE_TIMEOUT_SECONDS:g} seconds"
            self._probed = self._clock.monotonic()

    async def backup(self) -> Response:
        """The database as it is between two commits."""
        if not self._is_on_disk:
            raise NotFound("objects are kept in memory only")
        folder = tempfile.TemporaryDirectory(dir=self._store.path.parent, prefix=".backup-")
        try:
            copy = Path(folder.name) / "copy.db"
            await self._store.backup(copy)
            file = copy.open("rb")
        except (StoreFailed, OSError) as error:
            raise ServiceUnavailable(f"no backup: {error}") from error
        finally:
            await self._clock.run(folder.cleanup)
        return Response(200, {"content-type": "application/vnd.sqlite3"}, stream=_pieces(file))


async def _pieces(file: BinaryIO) -> AsyncIterator[bytes]:
    with file:
        while piece := file.read(PIECE_BYTES):
            yield piece
