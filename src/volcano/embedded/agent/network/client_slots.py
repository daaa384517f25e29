"""Which connections of pods are kept at a port that all pods share: bounded in all and for each address.

One pod must not take the port from the others: of too many connections, the oldest of the address that has most of
them goes.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator

import msgspec


class SlotLimits(msgspec.Struct, frozen=True):
    """How many connections may be open at a time."""

    total: int = 512
    per_address: int = 128


class ClientSlots:
    """The connections of one port, oldest first."""

    def __init__(self, limits: SlotLimits) -> None:
        self._limits = limits
        self._at: dict[str, dict[asyncio.StreamWriter, None]] = {}
        self._open = 0

    def __len__(self) -> int:
        return self._open

    @contextlib.contextmanager
    def taken(self, writer: asyncio.StreamWriter) -> Iterator[None]:
        """Count the connection while the block runs; others, which exceed a bound with it, are closed."""
        address = str((writer.get_extra_info("peername") or ("",))[0])
        same = self._at.setdefault(address, {})
        same[writer] = None
        self._open += 1
        if len(same) > self._limits.per_address:
            self._close_oldest(same)
        elif self._open > self._limits.total:
            self._close_oldest(max(self._at.values(), key=len))
        try:
            yield
        finally:
            self._leave(address, writer)

    def _close_oldest(self, connections: dict[asyncio.StreamWriter, None]) -> None:
        """Its own block ends when its transport has; until then it is not counted any more."""
        victim = next(iter(connections))
        del connections[victim]
        self._open -= 1
        victim.transport.abort()

    def _leave(self, address: str, writer: asyncio.StreamWriter) -> None:
        same = self._at.get(address)
        if same is None:
            return
        if writer in same:
            del same[writer]
            self._open -= 1
        if not same:
            del self._at[address]
