"""Callbacks at given times: one heap and one sleeping task for any number of timers."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Final

from volcano.machinery.clock import Clock

MAX_TIMER_SLEEP: Final = timedelta(minutes=5)
"""The task sleeps at most this long at once, so that a step of the system clock is noticed."""
SMALLEST_STEP: Final = timedelta(seconds=1)
"""A clock that was set back by less is taken for one that runs a little slow."""


class Timers:
    """Calls back in order of time; callbacks of the same time in the order they were added."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._heap: list[tuple[datetime, int, Callable[[], None]]] = []
        self._count = 0
        self._sooner = asyncio.Event()
        self._looked = (clock.now(), clock.monotonic())

    def at(self, moment: datetime, call: Callable[[], None]) -> None:
        self._follow_steps()
        self._count += 1
        heapq.heappush(self._heap, (moment, self._count, call))
        if self._heap[0][1] == self._count:
            self._sooner.set()

    def after(self, pause: timedelta, call: Callable[[], None]) -> None:
        self.at(self._clock.now() + pause, call)

    async def run(self) -> None:
        """Run until cancelled."""
        while True:
            self._sooner.clear()
            now = self._follow_steps()
            while self._heap and self._heap[0][0] <= now:
                heapq.heappop(self._heap)[2]()
            if not self._heap:
                await self._sooner.wait()
                continue
            await self._sleep_or_sooner(min(self._heap[0][0] - now, MAX_TIMER_SLEEP))

    def _follow_steps(self) -> datetime:
        """The time. If the clock was set back, all timers are: their pauses stay as long as they were."""
        now, elapsed = self._clock.now(), self._clock.monotonic()
        expected = self._looked[0] + timedelta(seconds=elapsed - self._looked[1])
        self._looked = (now, elapsed)
        if expected - now >= SMALLEST_STEP:
            self._heap = [(moment - (expected - now), number, call) for moment, number, call in self._heap]
        return now

    async def _sleep_or_sooner(self, pause: timedelta) -> None:
        sleeper = asyncio.ensure_future(self._clock.sleep(pause))
        sooner = asyncio.ensure_future(self._sooner.wait())
        try:
            await asyncio.wait((sleeper, sooner), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sleeper, sooner):
                task.cancel()
            # Gathered, not awaited one by one: a cancellation of this task must not be mistaken for one of theirs.
            await asyncio.gather(sleeper, sooner, return_exceptions=True)
