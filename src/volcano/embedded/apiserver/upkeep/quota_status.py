"""The only writer of a ResourceQuota's status: hard limits and usage, debounced. What counts is the ledger's."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from datetime import timedelta
from typing import Final

import msgspec

from volcano.embedded.apiserver.admitting.quota import QUOTAS, QuotaLedger
from volcano.embedded.apiserver.store.contract import LoggedChange, ObjectKey, Store
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Handler, Request

log = logging.getLogger(__name__)

STATUS_DEBOUNCE: Final = timedelta(milliseconds=200)
"""Changes within this time are written as one."""


class QuotaStatus:
    """One task while there is something to write; none when nothing changes."""

    def __init__(self, store: Store, ledger: QuotaLedger, handle: Handler, clock: Clock) -> None:
        self._store = store
        self._ledger = ledger
        self._handle = handle
        self._clock = clock
        self._due: set[str] = set()
        self._task: asyncio.Task[None] | None = None
        store.subscribe(self._follow)

    async def close(self) -> None:
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        if not self._store.count(QUOTAS):
            return
        self._due |= {change.stored.key.namespace for change in changes if change.stored.key.namespace}
        if self._due and (self._task is None or self._task.done()):
            self._task = asyncio.ensure_future(self._write())

    async def _write(self) -> None:
        while self._due:
            await self._clock.sleep(STATUS_DEBOUNCE)
            namespaces, self._due = self._due, set()
            for namespace in sorted(namespaces):
                if self._store.scan(QUOTAS, namespace):
                    await self._write_namespace(namespace)

    async def _write_namespace(self, namespace: str) -> None:
        for name, used in self._ledger.used(namespace).items():
            stored = self._store.find(ObjectKey(QUOTAS, namespace, name))
            if stored is None:
                continue
            quota = msgspec.json.decode(stored.raw)
            status = {"hard": (quota.get("spec") or {}).get("hard") or {}, "used": used}
            if quota.get("status") == status:
                continue
            path = f"/api/v1/namespaces/{namespace}/{QUOTAS}/{name}/status"
            patch = [{"op": "add", "path": "/status", "value": status}]
            headers = {"content-type": "application/json-patch+json", "user-agent": "volcano-apiserver"}
            answer = await self._handle(
                Request("PATCH", path, headers=headers, body=msgspec.json.encode(patch), user=ADMIN)
            )
            if answer.status not in (200, 404):
                log.error("the status of quota %s/%s cannot be written: %s", namespace, name, answer.body[:500])
