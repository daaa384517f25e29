"""The view of a system on a real API server: the same words as on virtual time, but time is real."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable
from datetime import timedelta
from typing import Any

from volcano.api.batch import Job
from volcano.api.scheduling import Queue
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.informer import Informer
from volcano.testing.view import WATCHED, SystemView


class RealSystem(SystemView):
    """Waits at most a minute unless told otherwise."""

    async def until(
        self, condition: Callable[[], Any], *, within: timedelta = timedelta(seconds=60), why: str = ""
    ) -> None:
        await super().until(condition, within=within, why=why)

    async def end_jobs(self, within: timedelta) -> None:
        """Leave nothing behind that takes room from the next test."""
        for job in self.mirror.all(Job):
            if not job.is_deleting:
                await self.delete(Job, job.name)
        await self.until(lambda: not self.mirror.all(Job), within=within)


@contextlib.asynccontextmanager
async def real_system(client: Client, namespace: str) -> AsyncIterator[RealSystem]:
    clock = SystemClock()
    view = RealSystem(client, clock, namespace=namespace, poll_interval=timedelta(milliseconds=20))
    informers = [
        Informer(client, view.mirror, clock, kind, namespace="" if kind is Queue else namespace) for kind in WATCHED
    ]
    tasks = [asyncio.ensure_future(informer.run()) for informer in informers]
    try:
        for informer in informers:
            await informer.synced()
        yield view
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
