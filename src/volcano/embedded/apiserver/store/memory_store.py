"""The log in memory only: the same contract as sqlite_store, for tests, simulations and `--ephemeral`."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from volcano.embedded.apiserver.store.contract import ADDED, DELETED, MODIFIED, Change, Stale, Stored, Write
from volcano.embedded.apiserver.store.revision_log import BYTES_KEPT, CHANGES_KEPT, RevisionLog


class MemoryStore:
    """Commits at once."""

    def __init__(self, *, changes_kept: int = CHANGES_KEPT, bytes_kept: int = BYTES_KEPT) -> None:
        self._log = RevisionLog(changes_kept=changes_kept, bytes_kept=bytes_kept)
        self._listeners: list[Callable[[Sequence[Change]], None]] = []
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

    def subscribe(self, listener: Callable[[Sequence[Change]], None]) -> None:
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


def change_for(write: Write, current: Stored | None, revision: int) -> Change:
    """The change a write makes; Stale when the object is not where the writer thought."""
    if (current.revision if current else 0) != write.expected:
        raise Stale
    stored = Stored(write.key, revision, write.encode(revision), write.index)
    kind = DELETED if write.deletes else (MODIFIED if current else ADDED)
    return Change(kind, stored, current)
