"""Machines of the simulation: each runs one process, has a clock of its own, and can be stopped and resumed.

All machines share one event loop. Every task and timer carries its machine in its context, so that the loop can hold
back what a stopped machine would do, exactly as SIGSTOP does: time passes, and nothing of it runs.
"""

from __future__ import annotations

import asyncio
import contextvars
import heapq
import selectors
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from volcano.machinery.clock import EPOCH, TimeOnlySelector, VirtualClock, VirtualLoop

T = TypeVar("T")

MAX_ROUNDS_AT_ONE_TIME = 200_000
"""Of the event loop; a whole run has about ten thousand."""


class SimulatedMachine:
    """One process on one machine."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.clock = MachineClock()
        self.is_stopped = False
        self.held: list[asyncio.Handle] = []

    def __repr__(self) -> str:
        return self.name

    def start(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """A task of this machine; what it starts belongs to the machine too."""
        context = contextvars.copy_context()
        context.run(_MACHINE.set, self)
        return asyncio.get_running_loop().create_task(work, context=context)

    def stop(self) -> None:
        self.is_stopped = True
        _loop().hold_timers(self)

    def resume(self) -> None:
        if not self.is_stopped:
            return
        self.is_stopped = False
        loop = _loop()
        loop.release_timers(self)
        held, self.held = self.held, []
        for handle in held:
            loop.call_soon(_run_held, handle)


_MACHINE: contextvars.ContextVar[SimulatedMachine | None] = contextvars.ContextVar("machine", default=None)


class MachineClock(VirtualClock):
    """Virtual time as one machine sees it: its date can be wrong."""

    def __init__(self) -> None:
        super().__init__(EPOCH)
        self._error = timedelta(0)

    def now(self) -> datetime:
        return super().now() + self._error

    def set_wrong(self, seconds: float) -> None:
        self._error = timedelta(seconds=seconds)

    def set_right(self) -> None:
        self._error = timedelta(0)


class EndlessWork(BaseException):
    """Work that goes on without waiting for anything; no component catches it."""


class ImpatientSelector(TimeOnlySelector):
    """Raises EndlessWork after MAX_ROUNDS_AT_ONE_TIME: the loop would never end, since virtual time does not pass."""

    def __init__(self) -> None:
        super().__init__()
        self._rounds = 0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        self._rounds = 0 if timeout else self._rounds + 1
        if self._rounds > MAX_ROUNDS_AT_ONE_TIME:
            self._rounds = 0
            raise EndlessWork
        return super().select(timeout)


class MachineLoop(VirtualLoop):
    """Holds back the callbacks of machines that are stopped.

    While none is, `call_soon` and `call_at` are those of the base class: they are called a hundred thousand times in a
    run. Nothing but virtual time wakes the loop, so it asks the operating system for nothing.
    """

    def __init__(self) -> None:
        super().__init__(ImpatientSelector())
        self._stopped: dict[SimulatedMachine, list[asyncio.TimerHandle]] = {}

    def hold_timers(self, machine: SimulatedMachine) -> None:
        """Take the machine's timers out, and look at the machine of every new callback from now on."""
        if machine in self._stopped:
            return
        waiting: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
        held = [timer for timer in waiting if timer._context.get(_MACHINE) is machine]  # type: ignore[attr-defined]
        waiting[:] = [timer for timer in waiting if timer._context.get(_MACHINE) is not machine]  # type: ignore[attr-defined]
        heapq.heapify(waiting)
        self._stopped[machine] = held
        self.call_soon = self._call_soon_unless_stopped  # type: ignore[method-assign,assignment]
        self.call_at = self._call_at_unless_stopped  # type: ignore[method-assign,assignment]

    def release_timers(self, machine: SimulatedMachine) -> None:
        """Put the timers back: those that were due meanwhile fire at once, in their order."""
        for timer in self._stopped.pop(machine, []):
            if not timer.cancelled():
                heapq.heappush(self._scheduled, timer)  # type: ignore[attr-defined]
        if not self._stopped:
            del self.call_soon, self.call_at

    def _call_soon_unless_stopped(
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        machine = _MACHINE.get() if context is None else context.get(_MACHINE)
        if machine is None or not machine.is_stopped:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        machine.held.append(handle)
        return handle

    def _call_at_unless_stopped(
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        timer = super().call_at(when, callback, *args, context=context)
        machine = _MACHINE.get() if context is None else context.get(_MACHINE)
        if machine is not None and machine in self._stopped:
            self._scheduled.remove(timer)  # type: ignore[attr-defined]
            heapq.heapify(self._scheduled)  # type: ignore[attr-defined]
            self._stopped[machine].append(timer)
        return timer


def _loop() -> MachineLoop:
    loop = asyncio.get_running_loop()
    assert isinstance(loop, MachineLoop), "machines need a loop that can hold them back"
    return loop


def _run_held(handle: asyncio.Handle) -> None:
    if not handle.cancelled():
        handle._run()


async def wait_seconds(seconds: float) -> None:
    """On the time that all machines share."""
    await VirtualClock().sleep(timedelta(seconds=max(0.0, seconds)))
