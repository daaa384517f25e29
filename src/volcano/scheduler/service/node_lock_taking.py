"""Taking node locks: before a pod with a card is bound, the node's annotation is set; its device plugin removes it.

Binds to one node wait for each other here. Nothing waits for ever: a lock expires, and a wait ends with a failed bind.
A scheduler that is killed between lock and bind leaves a lock that expires.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from volcano.api.core import Node
from volcano.api.errors import Conflict
from volcano.api.meta import Key
from volcano.api.node_locks import LOCK_EXPIRY, is_locked
from volcano.api.times import timestamp
from volcano.machinery.apply import Applier, Outcome
from volcano.machinery.clock import Clock
from volcano.machinery.plan import Patch, ref
from volcano.machinery.world import Mirror

MAX_LOCK_WAIT: Final = 2 * LOCK_EXPIRY
MAX_WRITE_CONFLICTS: Final = 5
PAUSE_AFTER_CONFLICT: Final = timedelta(milliseconds=100)
MIN_LOCK_POLL_INTERVAL: Final = timedelta(milliseconds=100)
MAX_LOCK_POLL_INTERVAL: Final = timedelta(seconds=1)


class NodeLockTaking:
    def __init__(self, applier: Applier, clock: Clock, mirror: Mirror) -> None:
        self._applier, self._clock, self._mirror = applier, clock, mirror

    async def take(self, node: str, lock: str) -> tuple[str, str]:
        """The value that was written, and empty; or empty, and what went wrong."""
        waited, pause, conflicts = timedelta(0), MIN_LOCK_POLL_INTERVAL, 0
        while True:
            found = self._mirror.get(Node, Key("", node))
            if found is None:
                return "", f"node {node} is gone"
            now = self._clock.now()
            if not is_locked(found.annotations.get(lock, ""), now):
                value = timestamp(now)
                outcome = await self._write(found, lock, value)
                if outcome.ok:
                    return value, ""
                error = outcome.failures[0].error
                conflicts += 1
                if not isinstance(error, Conflict) or conflicts >= MAX_WRITE_CONFLICTS:
                    return "", f"the lock {lock} of node {node} cannot be written: {error}"
                await self._clock.sleep(PAUSE_AFTER_CONFLICT)
                continue
            if waited >= MAX_LOCK_WAIT:
                return "", f"node {node} has been locked within {LOCK_EXPIRY.total_seconds() / 60:.0f} minutes"
            await self._clock.sleep(pause)
            waited, pause = waited + pause, min(pause * 2, MAX_LOCK_POLL_INTERVAL)

    async def release(self, node: str, lock: str, value: str) -> None:
        """After a bind that failed; a lock that somebody else has taken meanwhile stays."""
        for _ in range(MAX_WRITE_CONFLICTS):
            found = self._mirror.get(Node, Key("", node))
            if found is None or found.annotations.get(lock) != value:
                return
            outcome = await self._write(found, lock, None)
            if outcome.ok or not isinstance(outcome.failures[0].error, Conflict):
                return
            await self._clock.sleep(PAUSE_AFTER_CONFLICT)

    async def _write(self, node: Node, lock: str, value: str | None) -> Outcome:
        body = {"metadata": {"annotations": {lock: value}}}
        return await self._applier.apply((Patch(ref(node, fresh=True), body, gone_ok=False),))
