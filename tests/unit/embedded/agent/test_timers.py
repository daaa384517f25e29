"""Timers: cancellation ends the sleeping task at any moment."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from volcano.embedded.agent.timers import Timers
from volcano.machinery.clock import SystemClock


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
