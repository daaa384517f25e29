"""The two queues that every scheduler needs, created unless they exist."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from volcano.api.errors import AlreadyExists, ApiError
from volcano.api.scheduling import Queue
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
MAX_ATTEMPTS: Final = 60
RETRY_INTERVAL: Final = timedelta(seconds=1)


async def create_queues(client: Client, clock: Clock, default_queue: str) -> None:
    for name, reclaimable in (("root", False), (default_queue, True)):
        body = {"metadata": {"name": name}, "spec": {"weight": 1, "reclaimable": reclaimable}}
        for attempt in range(MAX_ATTEMPTS):
            try:
                await client.create(resource_type(Queue), body)
                break
            except AlreadyExists:
                break
            except (ApiError, OSError, TimeoutError) as error:
                if attempt == MAX_ATTEMPTS - 1:
                    raise
                log.warning("queue %s cannot be created yet, retrying: %s", name, error)
                await clock.sleep(RETRY_INTERVAL)
