"""Follow every kind the scheduler looks at. Kinds a server does not have are left out until it has them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any

from volcano.api.errors import Forbidden, NotFound
from volcano.api.meta import Resource
from volcano.machinery.informer_set import InformerSet
from volcano.scheduler.cache import ESSENTIAL, FOLLOWED

log = logging.getLogger(__name__)


async def follow(group: asyncio.TaskGroup, followed: InformerSet, *, timeout: timedelta) -> None:
    """Returns when all kinds are synced; after the timeout only the essential kinds are still waited for."""
    missing: dict[type[Resource], asyncio.Event] = {kind: asyncio.Event() for kind in FOLLOWED}
    informers = {kind: followed.follow(group, kind, _report_errors(kind, missing[kind])) for kind in FOLLOWED}
    for kind in ESSENTIAL:
        await informers[kind].synced()
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(timeout.total_seconds()):
            for kind, informer in informers.items():
                await _first(informer.synced(), missing[kind].wait())


def _report_errors(kind: type[Resource], missing: asyncio.Event) -> Callable[[str, Exception], None]:
    def report(message: str, error: Exception) -> None:
        if kind not in ESSENTIAL and isinstance(error, (NotFound, Forbidden)):
            if not missing.is_set():
                log.info("%s: not followed for now", message)
            missing.set()
        else:
            log.warning("%s", message)

    return report


async def _first(*waits: Coroutine[Any, Any, Any]) -> None:
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
