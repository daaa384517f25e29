"""Events for users, written in the background, aggregated and rate-limited: a repeated event only raises a count."""

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
from volcano.api.times import is_recent, timestamp
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.pace import Pace
from volcano.machinery.plan import Record, Ref

log = logging.getLogger(__name__)
EVENTS: Final = resource_type(Event)

MAX_QUEUED_EVENTS: Final = 10_000
MAX_SERIES: Final = 4096
MAX_MESSAGE_CHARACTERS: Final = 1024
REPEAT_INTERVAL: Final = timedelta(seconds=10)
EVENT_BURST: Final = 100
EVENTS_PER_SECOND: Final = 50
"""Beyond the burst, events are written at this rate, so that they do not crowd out other requests …"""
PAUSE_PER_WRITE_DURATION: Final = 4
MAX_PAUSE: Final = timedelta(seconds=2)
"""… and after each write follows a pause of this many times its duration, which slows events down on a busy server."""


class _Series(msgspec.Struct):
    """One event about one object, and how often it happened."""

    key: Key
    count: int
    first: datetime
    written: datetime
    exists: bool = False


class EventRecorder:
    """Buffers Records without waiting and writes them one by one; past the limit the oldest are dropped."""

    def __init__(self, client: Client, clock: Clock, component: str) -> None:
        self._client, self._clock, self._component = client, clock, component
        self._waiting: OrderedDict[tuple[str, ...], Record] = OrderedDict()
        self._series: OrderedDict[tuple[str, ...], _Series] = OrderedDict()
        self._wakeup = asyncio.Event()
        self._pace = Pace(EVENT_BURST, EVENTS_PER_SECOND, clock.monotonic())
        self._pause_seconds = 0.0  # seconds to pause before the next write

    def record(self, record: Record) -> None:
        about = record.regarding
        message = record.message[:MAX_MESSAGE_CHARACTERS]
        same = (about.resource.kind, str(about.key), about.uid, record.type, record.reason, message)
        series = self._series.get(same)
        now = self._clock.now()
        if series is not None:
            series.count += 1
            if is_recent(series.written, now, REPEAT_INTERVAL):
                return
        self._waiting[same] = record
        if len(self._waiting) > MAX_QUEUED_EVENTS:
            self._waiting.popitem(last=False)
        self._wakeup.set()

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            await self._wakeup.wait()
            self._wakeup.clear()
            while self._waiting:
                await self._wait_for_turn()
                if not self._waiting:
                    break
                same, record = self._waiting.popitem(last=False)
                begun = self._clock.monotonic()
                try:
                    await self._write(same, record)
                except (Forbidden, NotFound):
                    continue  # the namespace is being deleted, or events may not be created in it
                except (ApiError, ConnectionError, OSError, TimeoutError) as error:
                    log.debug("event %s was not written: %s", record.reason, error)
                finally:
                    self._pause_seconds = PAUSE_PER_WRITE_DURATION * (self._clock.monotonic() - begun)

    async def _wait_for_turn(self) -> None:
        rest = max(self._pace.wait(self._clock.monotonic()), min(self._pause_seconds, MAX_PAUSE.total_seconds()))
        if rest > 0:
            await self._clock.sleep(timedelta(seconds=rest))
        self._pace.take(self._clock.monotonic())

    async def _write(self, same: tuple[str, ...], record: Record) -> None:
        now = self._clock.now()
        series = self._series.get(same)
        if series is None:
            series = _Series(self._name(same, record.regarding, now), 1, now, now)
            self._series[same] = series
            if len(self._series) > MAX_SERIES:
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
            "message": record.message[:MAX_MESSAGE_CHARACTERS],
            "type": record.type,
            "count": series.count,
            "firstTimestamp": timestamp(series.first),
            "lastTimestamp": timestamp(now),
            "source": {"component": self._component},
            "reportingComponent": self._component,
        }
