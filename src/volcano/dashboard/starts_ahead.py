"""StartsAhead: when waiting jobs are expected to start, asked for beside the pages, which show the last answer.

The scheduler computes these by playing the cluster's future, which takes seconds where much waits. No page waits for
that long: one that shows them is redrawn when the first answer has come.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from volcano.api.jobs.expected_starts import ExpectedStarts
from volcano.dashboard.object_reads import starts
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

FIRST_WAIT: Final = timedelta(milliseconds=100)
"""For the first answer, so that it is on the first view of a small cluster."""
PROGRAM_WAIT: Final = timedelta(seconds=10)
"""For a program that reads JSON: it is not told of the answer later."""
MIN_AGE: Final = timedelta(seconds=2)
PAUSE_FACTOR: Final = 20
"""An answer is asked for again after so many times what it took: looking costs at most a twentieth of a core."""


class StartsAhead:
    """Of one caller, with whose rights the scheduler is asked. `told` is called when an open page has to be redrawn."""

    def __init__(self, client: Client, clock: Clock, told: Callable[[], None]) -> None:
        self._client, self._clock, self._told = client, clock, told
        self._known: ExpectedStarts | None = None
        self._task: asyncio.Task[None] | None = None
        self._next = 0.0
        self._has_asked = False

    @property
    def is_pending(self) -> bool:
        """Whether the first answer has yet to come."""
        return not self._has_asked

    async def known(self, *, for_program: bool = False) -> ExpectedStarts | None:
        """None where the caller may not ask, and while the first answer has yet to come."""
        if (self._task is None or self._task.done()) and self._clock.monotonic() >= self._next:
            self._task = asyncio.ensure_future(self._ask())
        if self._task is not None and (for_program or not self._has_asked):
            wait = PROGRAM_WAIT if for_program else FIRST_WAIT
            await asyncio.wait({self._task}, timeout=wait.total_seconds())
        return self._known

    async def _ask(self) -> None:
        began, before, was_pending = self._clock.monotonic(), self._known, self.is_pending
        found = None
        try:
            found = await starts(self._client)
        except (ConnectionError, TimeoutError):
            found = before
        finally:
            took = self._clock.monotonic() - began
            self._next = began + max(MIN_AGE.total_seconds(), PAUSE_FACTOR * took)
        self._known, self._has_asked = found, True
        names = {*found.jobs} if found is not None else set()
        if was_pending or names != ({*before.jobs} if before is not None else set()):
            self._told()

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task
