"""Deletes what would otherwise grow for ever: Events after an hour, and leases of nodes that are gone."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.times import timestamp_or_none
from volcano.embedded.apiserver.store.contract import ADDED, LoggedChange, ObjectKey, Store, Stored
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Handler, Request

log = logging.getLogger(__name__)

EVENT_TTL: Final = timedelta(hours=1)
"""As kube-apiserver's --event-ttl; counted from the last time that the event was seen."""
LEASE_TTL: Final = timedelta(hours=1)
SHORTEST_PAUSE: Final = timedelta(minutes=1)
MAX_PAUSE: Final = timedelta(minutes=10)
EVENTS: Final = "events"
LEASES: Final = "leases.coordination.k8s.io"
NODE_LEASES: Final = "kube-node-lease"


class Expiry:
    """One task while there is anything that can expire; `close` cancels it."""

    def __init__(self, store: Store, handle: Handler, clock: Clock) -> None:
        self._store = store
        self._handle = handle
        self._clock = clock
        self._task: asyncio.Task[None] | None = None
        store.subscribe(self._follow)

    def start(self) -> None:
        """Resume with what is there already."""
        if self._task is None and self._candidates():
            self._task = asyncio.ensure_future(self._run())

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        if self._task is None and any(c.kind == ADDED and c.stored.key.resource in (EVENTS, LEASES) for c in changes):
            self._task = asyncio.ensure_future(self._run())

    async def _run(self) -> None:
        try:
            await self._clock.sleep(SHORTEST_PAUSE)
            while self._candidates():
                await self._clock.sleep(await self._sweep())
        finally:
            self._task = None

    def _candidates(self) -> int:
        return self._store.count(EVENTS) + len(self._store.scan(LEASES, NODE_LEASES))

    async def _sweep(self) -> timedelta:
        """Delete what has expired; how long until the next object expires."""
        now, following = self._clock.now(), MAX_PAUSE
        for stored in (*self._store.scan(EVENTS), *self._store.scan(LEASES, NODE_LEASES)):
            await self._clock.give_way()
            left = self._left(stored, now)
            if left > timedelta(0):
                following = min(following, left)
            elif not await self._delete(stored):
                return SHORTEST_PAUSE
        return max(SHORTEST_PAUSE, following)

    def _left(self, stored: Stored, now: datetime) -> timedelta:
        obj: JSON = msgspec.json.decode(stored.raw)
        if stored.key.resource == EVENTS:
            return last_seen(obj, now) + EVENT_TTL - now
        if self._store.find(ObjectKey("nodes", "", stored.key.name)) is not None:
            return MAX_PAUSE
        return last_renewed(obj, now) + LEASE_TTL - now

    async def _delete(self, stored: Stored) -> bool:
        """Whether the sweep can go on: on a full disk nothing else could be deleted either."""
        _, namespace, name = stored.key
        root = "/api/v1" if stored.key.resource == EVENTS else "/apis/coordination.k8s.io/v1"
        path = f"{root}/namespaces/{namespace}/{stored.key.resource.partition('.')[0]}/{name}"
        body = msgspec.json.encode({"preconditions": {"resourceVersion": str(stored.revision)}})
        answer = await self._handle(Request("DELETE", path, body=body, user=ADMIN))
        if answer.status in (429, 503):
            log.warning("%s has expired and cannot be deleted now: %s", path, answer.body[:500])
            return False
        if answer.status not in (200, 404, 409):
            log.error("%s has expired and cannot be deleted: %s", path, answer.body[:500])
        return True


def last_seen(event: JSON, now: datetime) -> datetime:
    """The latest time that an Event carries."""
    series = event.get("series")
    observed = series.get("lastObservedTime") if isinstance(series, dict) else None
    return _latest(now, _created(event), event.get("lastTimestamp"), event.get("eventTime"), observed)


def last_renewed(lease: JSON, now: datetime) -> datetime:
    spec = lease.get("spec")
    return _latest(now, _created(lease), spec.get("renewTime") if isinstance(spec, dict) else None)


def _created(obj: JSON) -> Any:
    return obj["metadata"].get("creationTimestamp")


def _latest(now: datetime, *texts: object) -> datetime:
    """The latest of the times that have passed: one in the future would keep an object for ever."""
    times = [time for time in map(timestamp_or_none, texts) if time is not None and time <= now]
    return max(times, default=datetime.min.replace(tzinfo=UTC))
