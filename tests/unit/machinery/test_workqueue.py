"""Keys are deduplicated, handed to one worker at a time, and come again after failures."""

import asyncio
import itertools
from datetime import timedelta

from volcano.api.meta import Key
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.workqueue import WorkQueue

A, B = Key("ns", "a"), Key("ns", "b")


def test_a_key_added_twice_is_handed_out_once_with_all_its_causes():
    async def main():
        queue = WorkQueue()
        queue.add(A, "first")
        queue.add(B)
        queue.add(A, "second")

        assert await queue.take() == (A, ("first", "second"))
        assert await queue.take() == (B, ())
        assert len(queue) == 0

    run_virtually(main())


def test_a_key_added_while_it_is_worked_on_waits_for_that_work():
    async def main():
        queue = WorkQueue()
        queue.add(A)
        await queue.take()
        queue.add(A, "again")
        queue.add(B)

        assert (await queue.take())[0] == B
        queue.done(A)
        assert await queue.take() == (A, ("again",))

    run_virtually(main())


def test_failures_come_again_later_and_later():
    async def main():
        queue = WorkQueue()
        queue.add(A, "cause")
        pauses = []
        for _ in range(16):
            _, causes = await queue.take()
            assert causes == ("cause",)
            pauses.append(queue.retry(A, causes))

        assert pauses[0] == timedelta(milliseconds=5)
        assert all(b >= a for a, b in itertools.pairwise(pauses))
        assert pauses[-1] == timedelta(seconds=60)
        await queue.take()
        queue.done(A)
        queue.add(A)
        await queue.take()
        assert queue.retry(A, ()) == timedelta(milliseconds=5)

    run_virtually(main())


def test_a_delayed_key_comes_when_its_time_has_come():
    async def main():
        clock = VirtualClock()
        queue = WorkQueue()
        queue.add_after(A, timedelta(hours=2), "late")

        assert await queue.take() == (A, ("late",))
        assert clock.monotonic() == 7200

    run_virtually(main())


def test_a_closed_queue_lets_its_workers_go():
    async def main():
        queue = WorkQueue()
        queue.add_after(A, timedelta(hours=2))
        queue.close()

        assert await queue.take() is None

    run_virtually(main())


def test_of_several_delays_for_the_same_thing_only_the_earliest_counts():
    async def main():
        clock = VirtualClock()
        queue = WorkQueue()
        queue.add_after(A, timedelta(hours=2))
        queue.add_after(A, timedelta(hours=1))
        queue.add_after(A, timedelta(hours=3))

        await queue.take()
        queue.done(A)
        await clock.sleep(timedelta(days=1))

        assert len(queue) == 0

    run_virtually(main())


def test_what_may_wait_comes_when_nothing_else_does():
    async def main():
        queue = WorkQueue()
        queue.add_when_idle(A, timedelta(hours=1), "may wait")
        queue.add(B)

        assert await queue.take() == (B, ())
        assert await queue.take() == (A, ("may wait",))

    run_virtually(main())


def test_what_may_wait_does_not_wait_for_ever():
    async def main():
        clock = VirtualClock()
        queue = WorkQueue()
        queue.add_when_idle(A, timedelta(seconds=10), "may wait")
        await clock.sleep(timedelta(seconds=10))
        queue.add(B)

        assert await queue.take() == (A, ("may wait",))

    run_virtually(main())


def test_what_may_wait_is_forgotten_once_its_key_is_looked_at():
    async def main():
        clock = VirtualClock()
        queue = WorkQueue()
        queue.add_when_idle(A, timedelta(seconds=10), "may wait")
        queue.add(A, "urgent")

        assert await queue.take() == (A, ("urgent",))
        queue.done(A)
        await clock.sleep(timedelta(minutes=1))
        assert queue.is_idle

    run_virtually(main())


def test_a_key_is_taken_by_another_worker_when_the_one_that_was_woken_for_it_is_cancelled():
    async def main():
        queue, taken = WorkQueue(), []

        async def work():
            taken.append(await queue.take())

        first, second = asyncio.ensure_future(work()), asyncio.ensure_future(work())
        await asyncio.sleep(0)
        queue.add(A)
        first.cancel()
        await second

        assert first.cancelled()
        assert taken == [(A, ())]

    run_virtually(main())
