"""Giving way: work that never waits shares each round of the event loop with what comes over the network."""

from __future__ import annotations

import asyncio
import time

from volcano.machinery.clock import MAX_ROUND_SECONDS, SystemClock, VirtualClock, run_virtually


def busy(seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        pass


async def test_work_that_gives_way_lets_others_run_long_before_it_ends():
    clock, order = SystemClock(), []

    async def work(name: str) -> None:
        for _ in range(20):
            await clock.give_way()
            busy(MAX_ROUND_SECONDS / 2)
        order.append(name)

    async def someone_else() -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        order.append("someone else")

    await asyncio.gather(work("one"), work("two"), someone_else())

    assert order[0] == "someone else"


async def test_the_first_to_wait_is_the_first_to_go_on():
    clock, order = SystemClock(), []

    async def work(number: int) -> None:
        await clock.give_way()
        order.append(number)
        busy(MAX_ROUND_SECONDS * 1.5)

    await asyncio.gather(*(work(number) for number in range(20)))

    assert order == list(range(20))


async def test_one_that_is_cancelled_while_it_waits_holds_up_nobody():
    clock, done = SystemClock(), []

    async def work(number: int) -> None:
        await clock.give_way()
        busy(MAX_ROUND_SECONDS * 1.5)
        done.append(number)

    tasks = [asyncio.create_task(work(number)) for number in range(5)]
    await asyncio.sleep(0)
    tasks[2].cancel()
    await asyncio.gather(*tasks, return_exceptions=True)

    assert done == [0, 1, 3, 4]


def test_a_clock_outlives_its_event_loop():
    clock = SystemClock()

    async def work() -> None:
        await clock.give_way()
        busy(MAX_ROUND_SECONDS * 1.5)

    asyncio.run(work())
    asyncio.run(work())


def test_on_virtual_time_nobody_gives_way():
    clock, order = VirtualClock(), []

    async def work(name: str) -> None:
        for _ in range(3):
            await clock.give_way()
            order.append(name)

    async def main() -> None:
        await asyncio.gather(work("a"), work("b"))

    run_virtually(main())

    assert order == ["a"] * 3 + ["b"] * 3
