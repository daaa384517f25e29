"""Timers: cancellation ends the sleeping task at any moment, and a clock that is set delays nothing."""

from __future__ import annotations

import asyncio
from datetime import datetime, timedelta

import pytest

from volcano.embedded.agent.timers import Timers
from volcano.machinery.clock import SystemClock, VirtualClock, run_virtually


@pytest.mark.parametrize("rounds", range(8))
async def test_it_ends_when_it_is_cancelled_just_as_it_is_woken(rounds):
    timers = Timers(SystemClock())
    timers.after(timedelta(hours=1), lambda: None)
    running = asyncio.create_task(timers.run())
    for _ in range(3):  # until it sleeps
        await asyncio.sleep(0)
    timers.after(timedelta(minutes=30), lambda: None)
    for _ in range(rounds):
        await asyncio.sleep(0)

    running.cancel()

    done, _ = await asyncio.wait({running}, timeout=5)
    assert done and running.cancelled()


class SteppedClock(VirtualClock):
    """A clock that can be set."""

    step = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self.step


@pytest.mark.parametrize("hours", [-24 * 365, 0, 24])
def test_a_clock_that_is_set_delays_no_timer(hours: int):
    async def main() -> float:
        clock, done = SteppedClock(), asyncio.Event()
        timers = Timers(clock)
        running = asyncio.create_task(timers.run())
        timers.after(timedelta(hours=1), done.set)
        await clock.sleep(timedelta(minutes=30))
        clock.step = timedelta(hours=hours)
        await done.wait()
        running.cancel()
        return clock.monotonic()

    assert run_virtually(main()) <= timedelta(hours=1, minutes=5).total_seconds()
