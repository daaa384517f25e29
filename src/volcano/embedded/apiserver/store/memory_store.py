"""The log in memory only: the same contract as sqlite_store, for tests, simulations and `--ephemeral`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volcano.embedded.apiserver.store.contract import ADDED, DELETED, MODIFIED, LoggedChange, Stale, Stored, Write
from volcano.embedded.apiserver.store.revision_log import MAX_LOG_BYTES, MAX_LOG_CHANGES, RevisionLog


class MemoryStore:
    """Commits immediately."""

    def __init__(self, *, max_changes: int = MAX_LOG_CHANGES, max_bytes: int = MAX_LOG_BYTES) -> None:
        self._log = RevisionLog(max_changes=max_changes, max_bytes=max_bytes)
        self._listeners: list[Callable[[Sequence[LoggedChange]], None]] = []
        self.find = self._log.find
        self.scan = self._log.scan
        self.page = self._log.page
        self.count = self._log.count
        self.resources = self._log.resources
        self.position = self._log.position
        self.changes = self._log.changes

    @property
    def revision(self) -> int:
        return self._log.revision

    @property
    def compacted(self) -> int:
        return self._log.compacted

    def subscribe(self, listener: Callable[[Sequence[LoggedChange]], None]) -> None:
        self._listeners.append(listener)

    async def write(self, write: Write) -> Stored:
        change = change_for(write, self._log.find(write.key), self._log.revision + 1)
        self._log.apply(change)
        if excess := self._log.excess():
            self._log.forget(excess)
        for listener in self._listeners:
            listener([change])
        return change.stored

    async def close(self) -> None:
        return None


def change_for(write: Write, current: Stored | None, revision: int) -> LoggedChange:
    """The change that a write makes; Stale when the object is not at the expected revision."""
    if (current.revision if current else 0) != write.expected:
        raise Stale
    stored = Stored(write.key, revision, write.encode(revision), write.index)
    kind = DELETED if write.deletes else (MODIFIED if current else ADDED)
    return LoggedChange(kind, stored, current)
