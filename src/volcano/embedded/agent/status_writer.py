"""Tells the API server how pods are: what changed, one patch at a time per pod, what happens meanwhile coalesced."""

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
    """A pod to report on."""

    @property
    def pod(self) -> AgentPod: ...

    @property
    def is_removed(self) -> bool:
        """Whether the API server is to be told that it is gone, after its last status."""
        ...

    def status(self) -> JSON: ...


class StatusWriter:
    """Several writers share a line of pods whose status may have changed."""

    def __init__(self, applier: Applier, timers: Timers, find: Callable[[str], ReportedPod | None]) -> None:
        self._applier, self._timers, self._find = applier, timers, find
        self._line: asyncio.Queue[str] = asyncio.Queue()
        self._waiting: set[str] = set()
        self._writing: set[str] = set()
        self._sent: dict[str, JSON] = {}
        self._done = asyncio.Event()

    def dirty(self, uid: str) -> None:
        """This pod's status may have changed."""
        if uid not in self._waiting:
            self._waiting.add(uid)
            if uid not in self._writing:
                self._line.put_nowait(uid)

    def forget(self, uid: str) -> None:
        self._sent.pop(uid, None)

    async def settled(self) -> None:
        """Returns when nothing is left to tell."""
        while self._waiting or self._writing:
            self._done.clear()
            await self._done.wait()

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for _ in range(MAX_CONCURRENT_STATUS_WRITES):
                group.create_task(self._write_on())

    async def _write_on(self) -> None:
        while True:
            uid = await self._line.get()
            self._waiting.discard(uid)
            self._writing.add(uid)
            try:
                await self._write(uid)
            finally:
                self._writing.discard(uid)
                if uid in self._waiting:
                    self._line.put_nowait(uid)
                self._done.set()

    async def _write(self, uid: str) -> None:
        subject = self._find(uid)
        if subject is None:
            return
        status, sent = subject.status(), self._sent.get(uid)
        changes = changes_between(sent, status)
        plan: Plan = ()
        if changes:
            plan = (Patch(ref(subject.pod), {"status": changes}, "strategic", subresource="status"),)
        if subject.is_removed:
            plan = (*plan, Delete(ref(subject.pod), grace_seconds=0))
        if not plan:
            return
        outcome = await self._applier.apply(plan)
        if outcome.ok:
            self._sent[uid] = status
            return
        failure = outcome.failures[0]
        log.warning("status of pod %s: %s", subject.pod.key, failure)
        if not isinstance(failure.error, (Invalid, NotFound)):
            self._timers.after(STATUS_RETRY_DELAY, lambda: self.dirty(uid))


def changes_between(sent: JSON | None, status: JSON) -> JSON:
    """What to patch: the fields that differ, and of the conditions only those that do."""
    if sent is None:
        return status
    changes: dict[str, Any] = {name: value for name, value in status.items() if sent.get(name) != value}
    if "conditions" in changes:
        known = {condition["type"]: condition for condition in sent.get("conditions", ())}
        changes["conditions"] = [each for each in status["conditions"] if known.get(each["type"]) != each]
    return changes
