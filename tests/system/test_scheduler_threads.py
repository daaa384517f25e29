"""While a turn is computed in its thread, the event loop goes on, and neither touches what is the other's."""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import Callable
from typing import Any

import pytest

from tests.system.test_scheduler_service import World
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.ids import SeededIds
from volcano.machinery.transport import Request
from volcano.machinery.world import Mirror
from volcano.scheduler.cache import Cache, PendingChanges
from volcano.scheduler.commit import Committer
from volcano.scheduler.service.decider import Decider, TurnInput, TurnResult
from volcano.scheduler.service.recordings import RecordingRequests
from volcano.scheduler.service.sender import Sender
from volcano.scheduler.service.settings import SchedulerSettings
from volcano.scheduler.service.turn_timer import TurnTimer

OF_THE_LOOP = (PendingChanges, Mirror, RecordingRequests, Sender, TurnTimer)
OF_THE_TURN = (Cache, Committer)


class Threads:
    """Which thread calls which methods; `turn` is that of the turn being computed, if any."""

    def __init__(self) -> None:
        self.loop = threading.get_ident()
        self.turn: int | None = None
        self.strays: list[str] = []
        self.of_simulations: set[object] = set()
        self.seen: set[type] = set()

    def watch(self, monkeypatch: pytest.MonkeyPatch, cls: type, is_allowed: Callable[[int], bool]) -> None:
        for name, value in vars(cls).items():
            if inspect.isfunction(value):
                monkeypatch.setattr(cls, name, self._watched(cls, value, is_allowed))
            elif isinstance(value, property) and value.fget is not None:
                monkeypatch.setattr(cls, name, property(self._watched(cls, value.fget, is_allowed)))

    def _watched(self, cls: type, function: Callable[..., Any], is_allowed: Callable[[int], bool]) -> Any:
        @functools.wraps(function)
        def watched(*arguments: Any, **more: Any) -> Any:
            self.seen.add(cls)
            if function.__name__ == "__init__" and threading.get_ident() not in (self.loop, self.turn):
                self.of_simulations.add(arguments[0])  # a simulation has a cache of its own, and a thread
            if arguments[0] not in self.of_simulations and not is_allowed(threading.get_ident()):
                self.strays.append(f"{cls.__name__}.{function.__name__}")
            return function(*arguments, **more)

        return watched


async def test_a_turn_and_the_event_loop_share_no_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    threads = Threads()
    for cls in OF_THE_LOOP:
        threads.watch(monkeypatch, cls, lambda thread: thread == threads.loop)
    for cls in OF_THE_TURN:
        threads.watch(monkeypatch, cls, lambda thread: thread == (threads.turn or threads.loop))
    entered, leave = asyncio.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    decide = Decider.decide

    def slow(decider: Decider, turn: TurnInput) -> TurnResult:
        threads.turn = threading.get_ident()
        loop.call_soon_threadsafe(entered.set)
        assert leave.wait(timeout=60)
        try:
            return decide(decider, turn)
        finally:
            threads.turn = None

    monkeypatch.setattr(Decider, "decide", slow)
    server = ApiServer(MemoryStore(), clock=SystemClock(), ids=SeededIds(0))
    await server.start()
    world = World(server, SystemClock(), SchedulerSettings())  # type: ignore[arg-type]
    failures: list[Request] = []

    def failing(request: Request) -> bool:
        """The first binds fail."""
        if request.path.endswith("/binding") and len(failures) < 2:
            failures.append(request)
            return True
        return False

    world.failing = failing
    running = asyncio.create_task(world.service.run())
    try:
        async with asyncio.timeout(60):
            await world.service.ready()
            await world.node("n1")
            await world.open("default", "root")
            for number in range(3):  # in each turn objects change, writes fail and people ask
                await entered.wait()
                entered.clear()
                await world.gang(f"g{number}", 1)
                assert "turns" in world.service.state()
                await world.service.simulate({"pods": [{"spec": {}}]})
                leave.set()
                await world.until(lambda: _is_idle(threads))
                leave.clear()
            leave.set()
            await world.until(lambda: _all_bound(world, 3))
    finally:
        leave.set()
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.close()

    assert len(failures) == 2
    assert threads.strays == []
    assert threads.seen == {*OF_THE_LOOP, *OF_THE_TURN}


async def _is_idle(threads: Threads) -> bool:
    return threads.turn is None


async def _all_bound(world: World, number: int) -> bool:
    return len(await world.bound()) == number


async def test_a_failure_during_a_turn_is_kept_for_the_next_one() -> None:
    """What was assumed before the turn and failed during it counts again as the API server shows it."""
    pending = PendingChanges()
    pending.assume({"a": "n1", "b": "n1"}, {"c"})
    batch = pending.take()

    pending.forget("a", None)

    assert (batch.assumed, batch.evicting) == ({"a": "n1", "b": "n1"}, {"c"})
    assert pending.assumptions().assumed == {"b": "n1"}
