"""The API server's disk: the real SQLite store without its thread, and what a crash or a full disk does to its files.

A crash leaves the files as the operating system has them: a process that is killed in the middle of a commit leaves a
write-ahead log that ends somewhere within that commit. No client was answered by then.
"""

from __future__ import annotations

import asyncio
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

from volcano.embedded.apiserver.store.log_file import acknowledged_path, keys_path
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore, _Compaction, _Entry, _Item, _Task
from volcano.testing.faults.chance import Chance


class Disk:
    """Where the database is, and what is wrong with it."""

    def __init__(self, folder: Path, chance: Chance) -> None:
        self._folder, self._chance = folder, chance
        self._lives = 0
        self.path = folder / "0" / "volcano.db"
        self.is_full = False
        self.crash_at_commit = ""  # what of the next commit survives: "crash-uncommitted", "-torn" or "-committed"

    def after_crash(self, commit_began_at: int | None = None) -> None:
        """Go on with a copy of the files as they are now; a log that was being written ends within the last commit."""
        self._lives += 1
        target = self._folder / str(self._lives)
        target.mkdir(mode=0o700)
        for each in (self.path, wal_of(self.path), keys_path(self.path), acknowledged_path(self.path)):
            if each.exists():
                shutil.copy2(each, target / each.name)
        self.path = target / self.path.name
        if commit_began_at is not None and (wal := wal_of(self.path)).exists():
            size = wal.stat().st_size
            if commit_began_at < size:  # otherwise the log began anew, and the commit lies before its end
                with wal.open("r+b") as file:
                    file.truncate(self._chance.randint(commit_began_at, size - 1))


class InlineSqliteStore(SqliteStore):
    """Commits on the event loop, all writes of one round together: the order of everything is the same each time."""

    def __init__(self, disk: Disk, crash: Callable[[], None], **limits: Any) -> None:
        self._disk, self._crash = disk, crash
        self._items: list[_Item] = []
        self.is_dead = False
        super().__init__(disk.path, **limits)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        self._loop = asyncio.get_running_loop()
        return self._loop

    def _hand_over(self, item: _Item) -> None:
        if not self._items:
            asyncio.get_running_loop().call_soon(self._flush)
        self._items.append(item)

    def abandon(self) -> None:
        """The process is gone: nothing more is written, and the files are left to the next life."""
        self.is_dead = True
        self._is_closed = True
        self._connection.close()
        self._acknowledged.close()

    def _flush(self) -> None:
        items, self._items = self._items, []
        if self.is_dead:
            return
        batch = [item for item in items if isinstance(item, _Entry)]
        compactions = [item for item in items if isinstance(item, _Compaction)]
        if batch and self._disk.crash_at_commit:
            self._die_committing(batch, compactions)
            return
        failure: Exception | None = None
        try:
            if self._disk.is_full:
                raise sqlite3.OperationalError("database or disk is full")
            self._commit(batch, compactions)
        except sqlite3.Error as error:
            failure = error
        if batch:
            self._settle(batch, failure)
        for item in items:
            if isinstance(item, _Task):
                self._run_task(item)

    def _die_committing(self, batch: list[_Entry], compactions: list[_Compaction]) -> None:
        how, self._disk.crash_at_commit = self._disk.crash_at_commit, ""
        began: int | None = None
        if how != "crash-uncommitted":
            wal = wal_of(self.path)
            if how == "crash-torn":
                began = wal.stat().st_size if wal.exists() else 0
            acknowledged = acknowledged_path(self.path).read_bytes()
            self._commit(batch, compactions)
            acknowledged_path(self.path).write_bytes(acknowledged)  # it is written after the commit
        self._disk.after_crash(began)
        self.abandon()
        self._crash()


def wal_of(path: Path) -> Path:
    return path.with_name(path.name + "-wal")
