"""Machines of the simulation: each runs one process, has a clock of its own, and can be stopped and resumed.

All machines share one event loop. Every task and timer carries its machine in its context, so that the loop can hold
back what a stopped machine would do, exactly as SIGSTOP does: time passes, and nothing of it runs.
"""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable, Coroutine
from datetime import datetime, timedelta
from typing import Any, TypeVar

from volcano.machinery.clock import EPOCH, VirtualClock, VirtualLoop

T = TypeVar("T")


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

    def resume(self) -> None:
        self.is_stopped = False
        held, self.held = self.held, []
        loop = asyncio.get_running_loop()
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


class MachineLoop(VirtualLoop):
    """Holds back the callbacks of machines that are stopped."""

    def call_soon(  # type: ignore[override]  # as in the base class, with less exact types
        self, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.Handle:
        machine = _MACHINE.get() if context is None else context.get(_MACHINE)
        if machine is None or not machine.is_stopped:
            return super().call_soon(callback, *args, context=context)
        handle = asyncio.Handle(callback, args, self, context)
        machine.held.append(handle)
        return handle

    def call_at(  # type: ignore[override]
        self, when: float, callback: Callable[..., object], *args: Any, context: contextvars.Context | None = None
    ) -> asyncio.TimerHandle:
        machine = _MACHINE.get() if context is None else context.get(_MACHINE)
        if machine is None:
            return super().call_at(when, callback, *args, context=context)
        cell: list[asyncio.Handle] = []
        timer = super().call_at(when, _fire, machine, cell, callback, args, context=context)
        cell.append(timer)
        return timer


def _fire(
    machine: SimulatedMachine, cell: list[asyncio.Handle], callback: Callable[..., object], args: tuple[Any, ...]
) -> None:
    if machine.is_stopped:
        machine.held.append(cell[0])
    else:
        callback(*args)


def _run_held(handle: asyncio.Handle) -> None:
    if not handle.cancelled():
        handle._run()


async def wait_seconds(seconds: float) -> None:
    """On the time that all machines share."""
    await VirtualClock().sleep(timedelta(seconds=max(0.0, seconds)))
