"""The log in one SQLite table: one connection in one writer thread, group commit, WAL with synchronous=FULL.

A write returns only after its commit returned. log_file verifies the whole file before it is opened for writing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import queue
import sqlite3
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final, TypeAlias

import msgspec

from volcano.embedded.apiserver.store.acknowledged import AcknowledgedRevision
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
from volcano.embedded.apiserver.store.log_file import StoredValue, acknowledged_path, explained, open_verified
from volcano.embedded.apiserver.store.log_rows import UPDATE_STATE, delete_rows, insert_rows, make_row
from volcano.embedded.apiserver.store.memory_store import change_for
from volcano.embedded.apiserver.store.private_files import touch_private
from volcano.embedded.apiserver.store.revision_log import MAX_LOG_BYTES, MAX_LOG_CHANGES, RevisionLog

log = logging.getLogger(__name__)

MAX_BATCH_WRITES: Final = 512
"""A commit takes no more once it has this many; what one round of the event loop wrote stays together."""


class _Entry(msgspec.Struct):
    """A write that is on its way to the disk."""

    change: LoggedChange
    done: asyncio.Future[Stored]
    followers: list[asyncio.Future[None]]  # of writes to the same object, which wait until this one is settled


class _Compaction(msgspec.Struct):
    revision: int
    superseded: list[int]


class _Task(msgspec.Struct):
    """Something else that is done with the connection between two commits."""

    work: Callable[[sqlite3.Connection], None]
    done: asyncio.Future[None]


_Item: TypeAlias = _Entry | _Compaction | _Task


class SqliteStore:
    """Open with `SqliteStore(path)`; the file is made if it does not exist."""

    def __init__(self, path: Path, *, max_changes: int = MAX_LOG_CHANGES, max_bytes: int = MAX_LOG_BYTES) -> None:
        self.path = path
        self._log = RevisionLog(max_changes=max_changes, max_bytes=max_bytes)
        self._listeners: list[Callable[[Sequence[LoggedChange]], None]] = []
        self._pending: dict[ObjectKey, _Entry] = {}
        self._collected: list[_Item] = []
        self._work: queue.SimpleQueue[list[_Item] | None] = queue.SimpleQueue()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._is_closed = False
        self._connection, contents = open_verified(path)
        self._keys, self._state = contents.keys, contents.state
        self._acknowledged = AcknowledgedRevision(acknowledged_path(path), self._state.revision)
        self._load(contents.values)
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
        loop = self._running_loop()
        while (pending := self._pending.get(write.key)) is not None:
            settled: asyncio.Future[None] = loop.create_future()
            pending.followers.append(settled)
            await settled
        if self._is_closed:
            raise StoreFailed("the store is closed")
        change = change_for(write, self._log.find(write.key), self._assigned + 1)
        self._assigned += 1
        done: asyncio.Future[Stored] = loop.create_future()
        entry = self._pending[write.key] = _Entry(change, done, [])
        self._hand_over(entry)
        return await done

    async def close(self) -> None:
        """Commit what was accepted, then close the file."""
        if self._is_closed:
            return
        self._is_closed = True
        if self._thread is not None:
            self._pass_on()
            self._work.put(None)
            await asyncio.get_running_loop().run_in_executor(None, self._thread.join)
        self._connection.close()
        self._acknowledged.close()

    async def backup(self, path: Path) -> None:
        """A copy of the database as it is between two commits, in a new file for its owner only."""
        touch_private(path)
        await self._between_commits(lambda connection: _copy(connection, path))

    async def probe(self) -> None:
        """Write the state row again; StoreFailed when no write would last."""
        await self._between_commits(self._write_state)

    def _write_state(self, connection: sqlite3.Connection) -> None:
        connection.execute(UPDATE_STATE, self._state.columns())

    async def _between_commits(self, work: Callable[[sqlite3.Connection], None]) -> None:
        if self._is_closed:
            raise StoreFailed("the store is closed")
        done: asyncio.Future[None] = self._running_loop().create_future()
        self._hand_over(_Task(work, done))
        await asyncio.shield(done)

    def _hand_over(self, item: _Item) -> None:
        """To the writer thread, with all that comes in this round of the loop: the thread is woken once for them.

        A simulation, which has no threads, overrides it.
        """
        self._collected.append(item)
        if len(self._collected) == 1:
            self._running_loop().call_soon(self._pass_on)

    def _pass_on(self) -> None:
        if self._collected:
            collected, self._collected = self._collected, []
            self._work.put(collected)

    def _running_loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            self._loop = asyncio.get_running_loop()
            self._thread = threading.Thread(target=self._write_batches, name="store-writer", daemon=True)
            self._thread.start()
        return self._loop

    def _load(self, values: Sequence[StoredValue]) -> None:
        compacted = self._state.compacted
        self._log.compacted = compacted
        for revision, key, is_deleted, raw in values:
            stored = Stored(key, revision, raw)
            if revision <= compacted:
                self._log.restore(stored)
                continue
            current = self._log.find(key)
            kind = DELETED if is_deleted else (MODIFIED if current else ADDED)
            self._log.apply(LoggedChange(kind, stored, current))
        self._log.revision = self._state.revision
        if excess := self._log.excess():
            self._commit([], [_Compaction(excess, self._log.forget(excess))])

    # ── the writer thread ──

    def _write_batches(self) -> None:
        while True:
            batch, compactions, tasks, is_last = self._next_batch()
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
            for task in tasks:
                self._run_task(task)
            self._acknowledged.sync_now_and_then()
            if is_last:
                return

    def _next_batch(self) -> tuple[list[_Entry], list[_Compaction], list[_Task], bool]:
        batch: list[_Entry] = []
        compactions: list[_Compaction] = []
        tasks: list[_Task] = []
        items = self._work.get()
        while items is not None:
            for item in items:
                if isinstance(item, _Entry):
                    batch.append(item)
                elif isinstance(item, _Compaction):
                    compactions.append(item)
                else:
                    tasks.append(item)
            if len(batch) >= MAX_BATCH_WRITES:
                return batch, compactions, tasks, False
            try:
                items = self._work.get_nowait()
            except queue.Empty:
                return batch, compactions, tasks, False
        return batch, compactions, tasks, True

    def _commit(self, batch: list[_Entry], compactions: list[_Compaction]) -> None:
        if not batch and not compactions:
            return
        state = msgspec.structs.replace(self._state)
        rows = [make_row(entry.change.stored, entry.change.kind == DELETED, self._keys) for entry in batch]
        try:
            self._connection.execute("BEGIN IMMEDIATE")
            insert_rows(self._connection, rows)
            for row in rows:
                state.add(row)
            for compaction in compactions:
                delete_rows(self._connection, compaction.superseded, state)
                state.compacted = max(state.compacted, compaction.revision)
            self._connection.execute(UPDATE_STATE, state.columns())
            self._connection.execute("COMMIT")
        except BaseException:
            if self._connection.in_transaction:
                self._connection.execute("ROLLBACK")
            raise
        self._state = state
        try:
            self._acknowledged.write(state.revision)
        except OSError as error:  # never a reason to fail: the writes are durable by now
            log.warning("%s: %s: a log that is cut after this would not be noticed", self.path, error)

    def _run_task(self, task: _Task) -> None:
        failure: StoreFailed | None = None
        try:
            task.work(self._connection)
        except (sqlite3.Error, OSError) as error:
            failure = StoreFailed(explained(self.path, error))
        assert self._loop is not None
        with contextlib.suppress(RuntimeError):  # the event loop is closed: no caller waits
            self._loop.call_soon_threadsafe(_finish, task.done, failure)

    # ── back on the event loop ──

    def _settle(self, batch: list[_Entry], failure: Exception | None) -> None:
        for entry in batch:
            del self._pending[entry.change.stored.key]
            for settled in entry.followers:
                if not settled.done():
                    settled.set_result(None)
        if failure is not None:
            error = StoreFailed(explained(self.path, failure))
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
            self._hand_over(_Compaction(excess, self._log.forget(excess)))


def _copy(connection: sqlite3.Connection, path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as target:
        connection.backup(target)


def _finish(done: asyncio.Future[None], failure: StoreFailed | None) -> None:
    if done.done():
        return
    if failure is None:
        done.set_result(None)
    else:
        done.set_exception(failure)
        done.exception()  # a caller that was cancelled must not make asyncio log it
