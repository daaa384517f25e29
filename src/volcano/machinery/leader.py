"""Leader election by Lease: one of several equal processes works, and another takes over when it stops renewing.

A leader that cannot renew stops working before the lease expires for the others. All durations are measured by this
process's monotonic clock, so neither clocks of other machines nor changes of the system time matter.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta

import msgspec

from volcano.api.core import Lease
from volcano.api.errors import AlreadyExists, ApiError, Conflict, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.api.times import micro_timestamp
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
LEASES = resource_type(Lease)


class ElectionSettings(msgspec.Struct, frozen=True):
    """Kubernetes' defaults: renew every 2 s, stop after 10 s without success, free for others after 15 s."""

    lease_duration: timedelta = timedelta(seconds=15)
    renew_deadline: timedelta = timedelta(seconds=10)
    retry_period: timedelta = timedelta(seconds=2)


class LostLeadership(Exception):
    """The lease could not be renewed in time: this process must stop working at once."""


class Election:
    """One candidate for one lease."""

    def __init__(
        self, client: Client, clock: Clock, lease: Key, identity: str, settings: ElectionSettings | None = None
    ) -> None:
        self._client, self._clock, self._key, self._identity = client, clock, lease, identity
        self._settings = settings or ElectionSettings()
        self._seen: tuple[str, float] | None = None  # the lease's version when it last changed, and when that was seen
        self.is_leader = False

    async def lead(self, work: Callable[[], Awaitable[None]]) -> None:
        """Acquire the lease, work while it is renewed, and cancel the work the moment it is lost."""
        await self._acquire()
        self.is_leader = True
        working = asyncio.ensure_future(work())
        renewing = asyncio.ensure_future(self._renew())
        try:
            done, _ = await asyncio.wait({working, renewing}, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
        finally:
            self.is_leader = False
            for task in (working, renewing):
                task.cancel()
            await asyncio.gather(working, renewing, return_exceptions=True)
            await self._release()

    async def _acquire(self) -> None:
        while not await self._try(self._settings.renew_deadline):
            await self._clock.sleep(self._settings.retry_period)
        log.info("%s leads as %s", self._key, self._identity)

    async def _renew(self) -> None:
        """Renew until the deadline has passed since the last renewal that succeeded was begun."""
        renewed = self._clock.monotonic()
        deadline = self._settings.renew_deadline
        while (left := deadline - timedelta(seconds=self._clock.monotonic() - renewed)) > timedelta(0):
            await self._clock.sleep(min(self._settings.retry_period, left))
            begun = self._clock.monotonic()
            if await self._try(deadline - timedelta(seconds=begun - renewed)):
                renewed = begun
        raise LostLeadership(f"the lease {self._key} could not be renewed")

    async def _try(self, within: timedelta) -> bool:
        try:
            async with asyncio.timeout(max(0.0, within.total_seconds())):
                return await self._take()
        except (ApiError, OSError, TimeoutError) as error:
            if not isinstance(error, (Conflict, AlreadyExists)):
                log.warning("lease %s: %s", self._key, error)
            return False

    async def _take(self) -> bool:
        now = self._clock.now()
        try:
            lease = await self._client.get_json(LEASES, self._key)
        except NotFound:
            metadata = {"name": self._key.name, "namespace": self._key.namespace}
            await self._client.create(LEASES, {"metadata": metadata, "spec": self._spec(now, now, 0)})
            return True
        spec = lease.get("spec") or {}
        mine = spec.get("holderIdentity") == self._identity
        if not mine and not self._has_expired(lease):
            return False
        transitions = int(spec.get("leaseTransitions") or 0) + (0 if mine else 1)
        acquired = spec.get("acquireTime") if mine else None
        lease["spec"] = self._spec(now, now, transitions) | ({"acquireTime": acquired} if acquired else {})
        await self._client.update(LEASES, lease)
        return True

    def _has_expired(self, lease: JSON) -> bool:
        """Whether the lease has not changed for longer than its duration, or has been released."""
        spec = lease.get("spec") or {}
        if not spec.get("holderIdentity"):
            return True
        version, now = lease["metadata"]["resourceVersion"], self._clock.monotonic()
        if self._seen is None or self._seen[0] != version:
            self._seen = (version, now)
        default = self._settings.lease_duration.total_seconds()
        return now - self._seen[1] > float(spec.get("leaseDurationSeconds") or default)

    def _spec(self, acquired: datetime, renewed: datetime, transitions: int) -> JSON:
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": max(1, int(self._settings.lease_duration.total_seconds())),
            "acquireTime": micro_timestamp(acquired),
            "renewTime": micro_timestamp(renewed),
            "leaseTransitions": transitions,
        }

    async def _release(self) -> None:
        """Free the lease, so that another process takes over at once after a clean stop."""
        try:
            async with asyncio.timeout(self._settings.retry_period.total_seconds()):
                lease = await self._client.get_json(LEASES, self._key)
                if (lease.get("spec") or {}).get("holderIdentity") == self._identity:
                    lease["spec"] |= {"holderIdentity": "", "leaseDurationSeconds": 1}
                    await self._client.update(LEASES, lease)
        except (ApiError, OSError, TimeoutError, asyncio.CancelledError):
            log.debug("the lease %s was not released; it expires by itself", self._key)
