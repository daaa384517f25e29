"""Writes pod statuses: only what changed, one patch at a time per pod; changes meanwhile are coalesced.

Failed writes are retried after STATUS_RETRY_DELAY, unless the object is invalid or gone.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from datetime import timedelta
from typing import Any, Final, Protocol

from volcano.api.errors import Invalid, NotFound
from volcano.api.kubelet import AgentPod
from volcano.api.meta import JSON
from volcano.embedded.agent.timers import Timers
from volcano.machinery.apply import Applier
from volcano.machinery.plan import Delete, Patch, Plan, ref

log = logging.getLogger(__name__)
MAX_CONCURRENT_STATUS_WRITES: Final = 24
STATUS_RETRY_DELAY: Final = timedelta(seconds=1)


class ReportedPod(Protocol):
    """A pod whose status is written."""

    @property
    def pod(self) -> AgentPod: ...

    @property
    def is_removed(self) -> bool:
        """Whether the pod is to be deleted from the API server after its last status."""
        ...

    def status(self) -> JSON: ...


class StatusWriter:
    """A queue of pods whose status may have changed, and the workers that write it."""

    def __init__(self, applier: Applier, timers: Timers, find: Callable[[str], ReportedPod | None]) -> None:
        self._applier, self._timers, self._find = applier, timers, find
        self._queue: asyncio.Queue[str] = asyncio.Queue()
        self._pending: set[str] = set()
        self._writing: set[str] = set()
        self._sent: dict[str, JSON] = {}
        self._done = asyncio.Event()

    def mark_changed(self, uid: str) -> None:
        """Queue the pod: its status may have changed."""
        if uid not in self._pending:
            self._pending.add(uid)
            if uid not in self._writing:
                self._queue.put_nowait(uid)

    def mark_overwritten(self, uid: str) -> None:
        """Queue the pod: another writer may have changed its status, so all of it is written again."""
        self._sent.pop(uid, None)
        self.mark_changed(uid)

    def forget(self, uid: str) -> None:
        self._sent.pop(uid, None)

    async def settled(self) -> None:
        """Return when no write is pending or in flight."""
        while self._pending or self._writing:
            self._done.clear()
            await self._done.wait()

    async def run(self) -> None:
        """Run until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT_STATUS_WRITES):
                group.create_task(self._work())

    async def _work(self) -> None:
        while True:
            uid = await self._queue.get()
            self._pending.discard(uid)
            self._writing.add(uid)
            try:
                await self._write(uid)
            finally:
                self._writing.discard(uid)
                if uid in self._pending:
                    self._queue.put_nowait(uid)
                self._done.set()

    async def _write(self, uid: str) -> None:
        reported = self._find(uid)
        if reported is None:
            return
        status, sent = reported.status(), self._sent.get(uid)
        changes = changes_between(sent, status)
        plan: Plan = ()
        if changes:
            plan = (Patch(ref(reported.pod), {"status": changes}, "strategic", subresource="status"),)
        if reported.is_removed:
            plan = (*plan, Delete(ref(reported.pod), grace_seconds=0))
        if not plan:
            return
        outcome = await self._applier.apply(plan)
        if outcome.ok:
            self._sent[uid] = status
            return
        failure = outcome.failures[0]
        log.warning("status of pod %s: %s", reported.pod.key, failure)
        if not isinstance(failure.error, (Invalid, NotFound)):
            self._timers.after(STATUS_RETRY_DELAY, lambda: self.mark_changed(uid))


def changes_between(sent: JSON | None, status: JSON) -> JSON:
    """The patch: the fields that differ, and of the conditions only those that differ."""
    if sent is None:
        return status
    changes: dict[str, Any] = {name: value for name, value in status.items() if sent.get(name) != value}
    if "conditions" in changes:
        known = {condition["type"]: condition for condition in sent.get("conditions", ())}
        changes["conditions"] = [each for each in status["conditions"] if known.get(each["type"]) != each]
    return changes
