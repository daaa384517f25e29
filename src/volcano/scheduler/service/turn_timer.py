"""TurnTimer: when the next turn is due.

A single change is scheduled at once. In a stream of changes turns are rate-limited, so that each takes many of them.
Without changes a turn is due every schedule period, as long as something waits for time to pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from volcano.machinery.clock import Clock
from volcano.machinery.pace import Pace

MIN_PAUSE: Final = timedelta(milliseconds=2)
MAX_PAUSE: Final = timedelta(milliseconds=200)
DEBOUNCE: Final = timedelta(milliseconds=100)
"""How long changes that are not urgent are gathered before they make a turn due."""
TURN_BURST: Final = 10
TURNS_PER_SECOND: Final = 20
MAX_UNSENT_WRITES: Final = 64
"""From this many on, turns come at most every MAX_PAUSE: deciding faster than the server takes it gains nothing."""


class TurnTimer:
    """Only the event loop touches it."""

    def __init__(self, clock: Clock, period: timedelta) -> None:
        self._clock, self._period = clock, period
        self._changed = asyncio.Event()
        self._is_debouncing = False
        self._last_turn_seconds = self._last_turn_end = 0.0
        self._pace = Pace(TURN_BURST, TURNS_PER_SECOND, clock.monotonic())
        self.waits_for_time = True  # whether time alone may make another decision possible

    def wake(self) -> None:
        """Make a turn due at once."""
        self._changed.set()

    def change(self, urgent: bool) -> None:
        """An object changed."""
        if urgent:
            self._changed.set()
        elif not self._is_debouncing:
            self._is_debouncing = True
            asyncio.get_running_loop().call_later(DEBOUNCE.total_seconds(), self.wake)

    async def due(self, has_objects: Callable[[], bool], unsent_writes: Callable[[], int]) -> None:
        """Returns when the next turn should begin. `has_objects` is whether any object has changed at all."""
        while True:
            try:
                async with asyncio.timeout(self._period.total_seconds()):
                    await self._changed.wait()
            except TimeoutError:
                if self.waits_for_time or has_objects():
                    return
                continue
            # Changes rarely come alone; and the longer a turn took, the longer other work runs before the next one.
            now = self._clock.monotonic()
            rest = self._last_turn_end + self._last_turn_seconds / 2 - now
            pause = timedelta(seconds=max(rest, self._pace.wait(now)))
            if unsent_writes() >= MAX_UNSENT_WRITES:
                pause = MAX_PAUSE
            await self._clock.sleep(min(max(pause, MIN_PAUSE), MAX_PAUSE))
            return

    def begin(self) -> float:
        """A turn begins; changes from here on make the next one due. Returns the moment, for `end`."""
        self._changed.clear()
        self._is_debouncing = False
        begun = self._clock.monotonic()
        self._pace.take(begun)
        return begun

    def end(self, begun: float) -> None:
        self._last_turn_end = self._clock.monotonic()
        self._last_turn_seconds = self._last_turn_end - begun
