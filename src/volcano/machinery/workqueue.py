"""The queue of keys to decide on: deduplicated, one worker per key at a time, with back-off and delays."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Hashable
from datetime import timedelta
from typing import Final

from volcano.api.meta import Key

FIRST_BACKOFF: Final = timedelta(milliseconds=5)
MAX_BACKOFF: Final = timedelta(seconds=60)


class WorkQueue:
    """A key added while it is being worked on is handed out again once that work is done."""

    def __init__(self, *, max_backoff: timedelta = MAX_BACKOFF) -> None:
        self._max_backoff = max_backoff
        self._ready: deque[Key] = deque()
        self._causes: dict[Key, dict[Hashable, None]] = {}  # waiting keys and why; a dict keeps the order
        self._working: set[Key] = set()
        self._failures: dict[Key, int] = {}
        self._timers: dict[tuple[Key, Hashable], asyncio.TimerHandle] = {}
        self._idle: dict[Key, tuple[Hashable, asyncio.TimerHandle]] = {}  # taken when nothing else waits
        self._sleepers: deque[asyncio.Future[None]] = deque()  # workers that have nothing to do
        self._closed = False

    def __len__(self) -> int:
        return len(self._causes)

    @property
    def is_idle(self) -> bool:
        return not self._causes and not self._working

    def add(self, key: Key, cause: Hashable = None) -> None:
        waiting = self._causes.get(key)
        if waiting is None:
            waiting = self._causes[key] = {}
            if key not in self._working:
                self._ready.append(key)
                self._wake_one()
        if cause is not None:
            waiting[cause] = None

    def add_after(self, key: Key, delay: timedelta, cause: Hashable = None) -> None:
        """Add once the delay has passed; of several for the same key and cause only the earliest counts."""
        if delay <= timedelta(0):
            self.add(key, cause)
            return
        loop = asyncio.get_running_loop()
        due = loop.time() + delay.total_seconds()
        known = self._timers.get((key, cause))
        if known is not None:
            if known.when() <= due:
                return
            known.cancel()
        self._timers[key, cause] = loop.call_at(due, self._due, key, cause)

    def _due(self, key: Key, cause: Hashable) -> None:
        del self._timers[key, cause]
        self.add(key, cause)

    def add_when_idle(self, key: Key, at_most: timedelta, cause: Hashable = None) -> None:
        """Add once nothing else waits, or when the delay has passed. Forgotten when the key is taken before that."""
        if at_most <= timedelta(0):
            self.add(key, cause)
        elif key not in self._causes and key not in self._idle:
            timer = asyncio.get_running_loop().call_later(at_most.total_seconds(), self._no_longer_idle, key)
            self._idle[key] = (cause, timer)
            self._wake_one()

    def _no_longer_idle(self, key: Key) -> None:
        cause, timer = self._idle.pop(key)
        timer.cancel()
        self.add(key, cause)

    async def take(self) -> tuple[Key, tuple[Hashable, ...]] | None:
        """The next key and what it was added for; None once the queue is closed."""
        while not self._ready:
            if self._closed:
                return None
            if self._idle:
                self._no_longer_idle(next(iter(self._idle)))
                continue
            await self._sleep()
        key = self._ready.popleft()
        self._working.add(key)
        if key in self._idle:
            self._idle.pop(key)[1].cancel()
        return key, tuple(self._causes.pop(key, ()))

    async def _sleep(self) -> None:
        woken: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append(woken)
        try:
            await woken
        except asyncio.CancelledError:
            if woken.done() and not woken.cancelled():
                self._wake_one()  # another worker takes the key for which this one was woken
            raise

    def _wake_one(self) -> None:
        """One worker for one key: waking all of them for each would cost more than the work."""
        while self._sleepers:
            woken = self._sleepers.popleft()
            if not woken.done():
                woken.set_result(None)
                return

    def failures(self, key: Key) -> int:
        """How often in a row the work on this key has failed so far."""
        return self._failures.get(key, 0)

    def done(self, key: Key) -> None:
        """The work on this key went well."""
        self._failures.pop(key, None)
        self._release(key)

    def retry(self, key: Key, causes: tuple[Hashable, ...]) -> timedelta:
        """The work failed: requeue the key with the same causes, each time after a longer back-off."""
        failures = self._failures.get(key, 0)
        self._failures[key] = failures + 1
        delay = min(FIRST_BACKOFF * (1 << min(failures, 20)), self._max_backoff)
        self._release(key)
        for cause in causes or (None,):
            self.add_after(key, delay, cause)
        return delay

    def _release(self, key: Key) -> None:
        self._working.discard(key)
        if key in self._causes:
            self._ready.append(key)
            self._wake_one()

    def close(self) -> None:
        self._closed = True
        while self._sleepers:
            self._wake_one()
        for timer in (*self._timers.values(), *(timer for _, timer in self._idle.values())):
            timer.cancel()
        self._timers.clear()
        self._idle.clear()
