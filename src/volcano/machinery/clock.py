"""The only module that reads the time. All others are given a Clock, or a `now` value.

`SystemClock` is real. `VirtualClock` belongs to a `VirtualLoop`, an event loop on which waiting takes no time:
when nothing is ready to run, it jumps to the next timer. Simulations and system tests run on it, deterministically.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from heapq import heappop, heappush
from itertools import count
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

MAX_ROUND_SECONDS: Final = 0.005
FIRST_RESUMED_PER_ROUND: Final = 4
MAX_RESUMED_PER_ROUND: Final = 64
EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
"""When virtual time begins."""


class Clock(Protocol):
    """What time it is, how long things take, and waiting."""

    def now(self) -> datetime:
        """The date and time, in UTC."""
        ...

    def monotonic(self) -> float:
        """Seconds since some fixed moment; only differences mean anything."""
        ...

    async def sleep(self, pause: timedelta) -> None: ...

    async def run(self, work: Callable[[], T]) -> T:
        """Blocking or long work, off the event loop where there is a real one."""
        ...

    async def give_way(self) -> None:
        """Yield between two pieces of work that never wait, if they have used up their share of the loop's round."""
        ...


class SystemClock:
    """The real one."""

    def __init__(self) -> None:
        self.give_way = _Rounds().give_way

    def now(self) -> datetime:
        return datetime.now(UTC)

    def monotonic(self) -> float:
        return time.monotonic()

    async def sleep(self, pause: timedelta) -> None:
        await asyncio.sleep(max(0.0, pause.total_seconds()))

    async def run(self, work: Callable[[], T]) -> T:
        return await asyncio.to_thread(work)


class _Rounds:
    """Keeps each round of an event loop short, so that network requests are answered soon.

    In-process requests seldom suspend: a thousand of them could run before the loop polls its sockets again. Work that
    calls `give_way` shares a bounded part of each round, first come, first served.
    """

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._began = 0.0  # when this round did; 0 between rounds
        self._waiting: list[tuple[int, asyncio.Future[None]]] = []
        self._tickets = count()
        self._resumed_per_round = FIRST_RESUMED_PER_ROUND
        self._is_short = False  # whether one that was resumed in this round had to wait again

    async def give_way(self) -> None:
        loop = asyncio.get_running_loop()
        if loop is not self._loop:
            self._loop, self._began, self._waiting = loop, 0.0, []
        ticket = -1
        while self._began and time.monotonic() - self._began > MAX_ROUND_SECONDS:
            if ticket < 0:
                ticket = next(self._tickets)
            else:
                self._is_short = True
            turn: asyncio.Future[None] = loop.create_future()
            heappush(self._waiting, (ticket, turn))
            await turn
        if not self._began:
            self._begin()

    def _begin(self) -> None:
        assert self._loop is not None, "only called on a loop"
        self._began = time.monotonic()
        self._loop.call_soon(self._end)

    def _end(self) -> None:
        """Called in the next round, once the loop has looked at its sockets.

        About as many are resumed as there is time for: to resume one that has to wait again costs a pass through all
        of its callers.
        """
        self._began = 0.0
        if self._is_short:
            self._resumed_per_round = max(1, self._resumed_per_round // 2)
        else:
            self._resumed_per_round = min(
                MAX_RESUMED_PER_ROUND, self._resumed_per_round + self._resumed_per_round // 2 + 1
            )
        self._is_short = False
        for _ in range(min(len(self._waiting), self._resumed_per_round)):
            _, turn = heappop(self._waiting)
            if not turn.done():
                turn.set_result(None)
        if self._waiting:
            self._begin()


class VirtualClock:
    """Time on a VirtualLoop. Work runs in line, so that the order of everything is the same each time."""

    def __init__(self, start: datetime = EPOCH) -> None:
        self._start = start

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self.monotonic())

    def monotonic(self) -> float:
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return 0.0
        return loop.time()

    async def sleep(self, pause: timedelta) -> None:
        await asyncio.sleep(max(0.0, pause.total_seconds()))

    async def run(self, work: Callable[[], T]) -> T:
        await asyncio.sleep(0)
        return work()

    def stall(self, duration: timedelta) -> None:
        """Let time pass in which nothing runs, as in a suspended machine: every timer of that time is then late."""
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualLoop), "only virtual time can be made to stall"
        loop.stall(duration.total_seconds())

    async def give_way(self) -> None:
        """Does nothing: virtual time has no network clients, and the order of work stays the same."""


class _JumpingSelector(selectors.SelectSelector):
    """Never waits: what the loop would have waited is added to its time."""

    def __init__(self) -> None:
        super().__init__()
        self.elapsed = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout is None or timeout <= 0:
            if not ready and timeout is None:
                # Nothing is scheduled at all: only another thread can wake the loop. Wait for it, briefly and really.
                return super().select(0.01)
            return ready
        self.elapsed += timeout
        return ready


class TimeOnlySelector(_JumpingSelector):
    """For loops without sockets and threads: it asks the operating system only when no timer is left."""

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            return super().select(None)
        if timeout > 0:
            self.elapsed += timeout
        return []


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on which waiting takes no time."""

    def __init__(self, selector: _JumpingSelector | None = None) -> None:
        self._jumps = selector or _JumpingSelector()
        super().__init__(self._jumps)

    def time(self) -> float:
        return self._jumps.elapsed

    def stall(self, seconds: float) -> None:
        """Add to the time without running what was due meanwhile."""
        self._jumps.elapsed += seconds


def run_virtually(main: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine to its end on virtual time."""
    with asyncio.Runner(loop_factory=VirtualLoop) as runner:
        return runner.run(main)


def wait_blocking(seconds: float) -> None:
    """For one-shot programs that have no event loop, between two looks at the world."""
    time.sleep(seconds)


class Stopwatch:
    """Measures real durations for metrics; its readings never influence a decision."""

    def __init__(self) -> None:
        self._started, self._cpu = time.perf_counter(), time.process_time()

    def seconds(self) -> float:
        return time.perf_counter() - self._started

    def cpu_seconds(self) -> float:
        """Of this process."""
        return time.process_time() - self._cpu
