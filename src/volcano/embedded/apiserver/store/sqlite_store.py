"""The log in one SQLite table: one connection in one writer thread, group commit, WAL with synchronous=FULL.

A write returns only after its commit returned. A file that is damaged, foreign or of a newer format is left exactly
as it is, and the error names it.
"""

from __future__ import annotations

import asyncio
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import msgspec

from volcano.embedded.apiserver.store.contract import (
    ADDED,
    DELETED,
    MODIFIED,
    LoggedChange,
    ObjectKey,
    Stored,
    StoreFailed,
    Write,
)
from volcano.embedded.apiserver.store.memory_store import change_for
from volcano.embedded.apiserver.store.revision_log import MAX_LOG_BYTES, MAX_LOG_CHANGES, RevisionLog

log = logging.getLogger(__name__)

APPLICATION_ID: Final = 0x766F6C63
FILE_FORMAT: Final = 1
MAX_BATCH_WRITES: Final = 512
_SCHEMA: Final = """
CREATE TABLE log (
    revision INTEGER PRIMARY KEY, resource TEXT NOT NULL, namespace TEXT NOT NULL, name TEXT NOT NULL,
    deleted INTEGER NOT NULL, value BLOB NOT NULL
) STRICT;
CREATE TABLE compaction (only_row INTEGER PRIMARY KEY CHECK (only_row = 1), revision INTEGER NOT NULL) STRICT;
INSERT INTO compaction VALUES (1, 0);
"""


class UnusableFile(Exception):
    """The store's file cannot be used; it was not changed."""


class _Entry(msgspec.Struct):
    change: LoggedChange
    done: asyncio.Future[Stored]


class _Compaction(msgspec.Struct):
    revision: int
    superseded: list[int]


class SqliteStore:
    """Open with `SqliteStore(path)`; the file is made if it does not exist."""

    def __init__(self, path: Path, *, max_changes: int = MAX_LOG_CHANGES, max_bytes: int = MAX_LOG_BYTES) -> None:
        self.path = path
        self._log = RevisionLog(max_changes=max_changes, max_bytes=max_bytes)
        self._listeners: list[Callable[[Sequence[LoggedChange]], None]] = []
        self._pending: dict[ObjectKey, asyncio.Future[Stored]] = {}
        self._work: queue.SimpleQueue[_Entry | _Compaction | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._connection = open_log(path)
        self._load()
        self._assigned = self._log.revision
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
        while (pending := self._pending.get(write.key)) is not None:
            await asyncio.wait([pending])
        if self._is_closed:
            raise StoreFailed("the store is closed")
        change = change_for(write, self._log.find(write.key), self._assigned + 1)
        self._assigned += 1
        done: asyncio.Future[Stored] = self._running_loop().create_future()
        self._pending[write.key] = done
        self._work.put(_Entry(change, done))
        return await asyncio.shield(done)

    async def close(self) -> None:
        """Commit what was accepted, then close the file."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._thread is not None:
            self._work.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._connection.close()

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._write_batches, name="store-writer", daemon=True)
            self._thread.start()
        return self._loop

    def _load(self) -> None:
        (compacted,) = self._connection.execute("SELECT revision FROM compaction").fetchone()
        self._log.revision = self._log.compacted = compacted
        rows = self._connection.execute(
            "SELECT revision, resource, namespace, name, deleted, value FROM log ORDER BY revision"
        )
        for revision, resource, namespace, name, deleted, value in rows:
            stored = Stored(ObjectKey(resource, namespace, name), revision, value)
            if revision <= compacted:
                self._log.restore(stored)
                continue
            current = self._log.find(stored.key)
            kind = DELETED if deleted else (MODIFIED if current else ADDED)
            self._log.apply(LoggedChange(kind, stored, current))
        if excess := self._log.excess():
            self._forget_on_disk(_Compaction(excess, self._log.forget(excess)))
            self._connection.commit()

    # ── the writer thread ──

    def _write_batches(self) -> None:
        while True:
            batch, compactions, is_last = self._next_batch()
            failure: Exception | None = None
            try:
                self._commit(batch, compactions)
            except Exception as error:
                failure = error
                if compactions:
                    log.warning("%s: superseded revisions stay in the file: %s", self.path, error)
            if batch:
                assert self._loop is not None
                try:
                    self._loop.call_soon_threadsafe(self._settle, batch, failure)
                except RuntimeError:  # the loop is closed; what was committed stays committed
                    return
            if is_last:
                return

    def _next_batch(self) -> tuple[list[_Entry], list[_Compaction], bool]:
        batch: list[_Entry] = []
        compactions: list[_Compaction] = []
        item = self._work.get()
        while True:
            if item is None:
                return batch, compactions, True
            if isinstance(item, _Entry):
                batch.append(item)
            else:
                compactions.append(item)
            if len(batch) >= MAX_BATCH_WRITES:
                return batch, compactions, False
            try:
                item = self._work.get_nowait()
            except queue.Empty:
                return batch, compactions, False

    def _commit(self, batch: list[_Entry], compactions: list[_Compaction]) -> None:
        if not batch and not compactions:
            return
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            self._connection.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?, ?)", map(_row, batch))
            for compaction in compactions:
                self._forget_on_disk(compaction)
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise

    def _forget_on_disk(self, compaction: _Compaction) -> None:
        self._connection.executemany("DELETE FROM log WHERE revision = ?", ((r,) for r in compaction.superseded))
        self._connection.execute("UPDATE compaction SET revision = max(revision, ?)", (compaction.revision,))

    # ── back on the event loop ──

    def _settle(self, batch: list[_Entry], failure: Exception | None) -> None:
        for entry in batch:
            del self._pending[entry.change.stored.key]
        if failure is not None:
            error = StoreFailed(f"{self.path}: {failure}")
            for entry in batch:
                if not entry.done.done():
                    entry.done.set_exception(error)
                    entry.done.exception()  # a caller that was cancelled must not make asyncio log it
            return
        changes = [entry.change for entry in batch]
        for change in changes:
            self._log.apply(change)
        for listener in self._listeners:
            listener(changes)
        for entry in batch:
            if not entry.done.done():
                entry.done.set_result(entry.change.stored)
        if (excess := self._log.excess()) and not self._is_closed:
            self._work.put(_Compaction(excess, self._log.forget(excess)))


def _row(entry: _Entry) -> tuple[int, str, str, str, int, bytes]:
    stored = entry.change.stored
    return (stored.revision, *stored.key, int(entry.change.kind == DELETED), stored.raw)


def open_log(path: Path) -> sqlite3.Connection:
    """The connection, after a read-only check of the file."""
    try:
        if path.exists() and path.stat().st_size > 0:
            _check(path)
        else:
            _make(path)
        connection = sqlite3.connect(path, isolation_level=None, check_same_thread=False, timeout=1.0)
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = FULL")
        connection.execute("PRAGMA wal_autocheckpoint = 4000")
    except (sqlite3.Error, OSError) as error:
        raise UnusableFile(f"{path}: {error}") from error
    return connection


def _make(path: Path) -> None:
    """Under another name first, so that a crash leaves no incomplete file under the real one."""
    aside = path.with_name(path.name + ".making")
    aside.unlink(missing_ok=True)
    connection = sqlite3.connect(aside, isolation_level=None)
    connection.executescript(
        f"BEGIN; PRAGMA application_id = {APPLICATION_ID}; PRAGMA user_version = {FILE_FORMAT}; {_SCHEMA} COMMIT;"
    )
    connection.close()
    aside.rename(path)


def _check(path: Path) -> None:
    probe: sqlite3.Connection | None = None
    try:
        probe = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, timeout=1.0)
        (application,) = probe.execute("PRAGMA application_id").fetchone()
        (version,) = probe.execute("PRAGMA user_version").fetchone()
        if application != APPLICATION_ID:
            raise UnusableFile(f"{path}: not a file of this API server; it was left as it is")
        if version > FILE_FORMAT:
            raise UnusableFile(
                f"{path}: written by a newer release (format {version}, this one reads up to {FILE_FORMAT}); "
                "it was left as it is"
            )
        (verdict,) = probe.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise UnusableFile(f"{path}: damaged: {verdict}; it was left as it is")
    except sqlite3.Error as error:
        raise UnusableFile(f"{path}: damaged or unreadable: {error}; it was left as it is") from error
    finally:
        if probe is not None:
            probe.close()
