"""ChangeFeed: tells open pages which topics have changed, at most once in a while, over server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Final

from volcano.dashboard.watched import Watched

PAUSE: Final = timedelta(milliseconds=400)
"""Between two messages, so that a burst of changes redraws a page once."""
PAUSE_FOR_EACH_PAGE: Final = timedelta(milliseconds=30)
"""With many open pages messages come less often, so that redrawing all of them keeps a bounded part of the time."""
HEARTBEAT: Final = timedelta(seconds=20)
"""Proxies close streams on which nothing comes, and a client that is gone is noticed."""


class ChangeFeed:
    def __init__(self, watched: Watched) -> None:
        self._watched = watched
        self._waiting: set[asyncio.Future[None]] = set()
        self._task: asyncio.Task[None] | None = None

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def follow(self, topics: Iterable[str]) -> AsyncIterator[bytes]:
        """Lines of an event stream, until the reader leaves."""
        wanted = [topic for topic in topics if topic in self._watched.versions]
        if self._task is None:
            self._task = asyncio.ensure_future(self._pass_on())
        known = self._versions(wanted)
        yield b"retry: 2000\n\n"
        while True:
            current = self._versions(wanted)
            changed = [topic for topic in wanted if current[topic] != known[topic]]
            known = current
            if changed:
                yield f"event: change\ndata: {','.join(changed)}\n\n".encode()
            elif not await self._changed():
                yield b": still here\n\n"

    def _versions(self, topics: list[str]) -> dict[str, int]:
        return {topic: self._watched.versions[topic] for topic in topics}

    async def _changed(self) -> bool:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(waiter)
        try:
            await asyncio.wait_for(waiter, HEARTBEAT.total_seconds())
        except TimeoutError:
            return False
        finally:
            self._waiting.discard(waiter)
        return True

    async def _pass_on(self) -> None:
        while True:
            await self._watched.next_change()
            await self._watched.clock.sleep(max(PAUSE, len(self._waiting) * PAUSE_FOR_EACH_PAGE))
            for waiter in self._waiting:
                if not waiter.done():
                    waiter.set_result(None)
