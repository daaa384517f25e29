"""Events for people, written in the background and aggregated: the same thing said again only raises a count."""

from __future__ import annotations

import asyncio
import hashlib
import logging
from collections import OrderedDict
from datetime import datetime, timedelta
from typing import Final

import msgspec

from volcano.api.core import Event
from volcano.api.errors import ApiError, Forbidden, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.api.times import timestamp
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.pace import Pace
from volcano.machinery.plan import Record, Ref

log = logging.getLogger(__name__)
EVENTS: Final = resource_type(Event)

WAITING_AT_MOST: Final = 10_000
REMEMBERED: Final = 4096
LONGEST_MESSAGE: Final = 1024
REPEAT_PAUSE: Final = timedelta(seconds=10)
BURST: Final = 100
PER_SECOND: Final = 50
"""Events never crowd out the work they tell of: beyond a burst they are written at this pace …"""
REST: Final = 4
LONGEST_REST: Final = timedelta(seconds=2)
"""… and after each follows a rest of four times what it took, so that a server that is busy is left alone."""


class _Series(msgspec.Struct):
    """One thing that was said about one object, and how often."""

    key: Key
    count: int
    first: datetime
    written: datetime
    exists: bool = False


class EventRecorder:
    """Takes Records without waiting; writes them one after another. When overwhelmed it drops the oldest."""

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client, self._clock, self._component = client, clock, component
        self._waiting: OrderedDict[tuple[str, ...], Record] = OrderedDict()
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._wakeup = asyncio.Event()
        self._pace = Pace(BURST, PER_SECOND, clock.monotonic())
        self._rest = 0.0  # seconds until the next, for what the last one took

    def record(self, record: Record) -> None:
        about = record.regarding
        message = record.message[:LONGEST_MESSAGE]
        same = (about.resource.kind, str(about.key), about.uid, record.type, record.reason, message)
        series = self._series.get(same)
        now = self._clock.now()
        if series is not None:
            series.count += 1
            if now - series.written < REPEAT_PAUSE:
                return
        self._waiting[same] = record
        if len(self._waiting) > WAITING_AT_MOST:
            self._waiting.popitem(last=False)
        self._wakeup.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._waiting:
                await self._take_time()
                if not self._waiting:
                    break
                same, record = self._waiting.popitem(last=False)
                begun = self._clock.monotonic()
                try:
                    await self._write(same, record)
                except (Forbidden, NotFound):
                    continue  # its namespace is going away, or we may not speak there
                except (ApiError, ConnectionError, OSError, TimeoutError) as error:
                    log.debug("event %s was not written: %s", record.reason, error)
                finally:
                    self._rest = REST * (self._clock.monotonic() - begun)

    async def _take_time(self) -> None:
        rest = max(self._pace.wait(self._clock.monotonic()), min(self._rest, LONGEST_REST.total_seconds()))
        if rest > 0:
            await self._clock.sleep(timedelta(seconds=rest))
        self._pace.take(self._clock.monotonic())

    async def _write(self, same: tuple[str, ...], record: Record) -> None:
        now = self._clock.now()
        series = self._series.get(same)
        if series is None:
            series = _Series(self._name(same, record.regarding, now), 1, now, now)
            self._series[same] = series
            if len(self._series) > REMEMBERED:
                self._series.popitem(last=False)
        series.written = now
        if series.exists:
            body = {"count": series.count, "lastTimestamp": timestamp(now)}
            await self._client.patch(EVENTS, series.key, body)
            return
        await self._client.create(EVENTS, self._body(record, series, now))
        series.exists = True

    def _name(self, same: tuple[str, ...], about: Ref, now: datetime) -> Key:
        digest = hashlib.sha256("\0".join((*same, now.isoformat(), self._component)).encode()).hexdigest()[:16]
        return Key(about.key.namespace or "default", f"{about.key.name[:200]}.{digest}")

    def _body(self, record: Record, series: _Series, now: datetime) -> JSON:
        about = record.regarding
        involved = {
            "apiVersion": about.resource.api_version,
            "kind": about.resource.kind,
            "namespace": about.key.namespace,
            "name": about.key.name,
            "uid": about.uid,
            "resourceVersion": about.resource_version,
        }
        return {
            "metadata": {"name": series.key.name, "namespace": series.key.namespace},
            "involvedObject": {name: value for name, value in involved.items() if value},
            "reason": record.reason,
            "message": record.message[:LONGEST_MESSAGE],
            "type": record.type,
            "count": series.count,
            "firstTimestamp": timestamp(series.first),
            "lastTimestamp": timestamp(now),
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }
