"""The log → many streams. Each watcher holds a position in its resource's log, so a slow one does not delay the others.

Event bytes are encoded once per change and form and shared among watchers. A watcher that falls further behind than
the bound, or whose position was compacted, is cut off with 410 and starts over.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import Final, Protocol

import msgspec

from volcano.api.errors import Gone
from volcano.api.meta import JSON
from volcano.embedded.apiserver.registry.selection import Selection
from volcano.embedded.apiserver.store.contract import ADDED, DELETED, MODIFIED, Compacted, LoggedChange, Store, Stored

MAX_LAG_CHANGES: Final = 20_000
MAX_CHUNK_BYTES: Final = 128 * 1024
"""Of events that are sent in one piece."""
BOOKMARK_INTERVAL_SECONDS: Final = 60.0
"""About as often as Kubernetes sends them."""
INITIAL_EVENTS_END: Final = "k8s.io/initial-events-end"


class Form(Protocol):
    """The form in which a watcher gets objects: as stored, metadata only, or as a table."""

    @property
    def key(self) -> object:
        """Equal for forms that encode an object to the same bytes."""
        ...

    def of(self, raw: bytes) -> bytes: ...

    def bookmark(self, metadata: JSON) -> bytes: ...


class Watch(msgspec.Struct, frozen=True):
    """What a watcher asked for."""

    selection: Selection
    form: Form
    seconds: float
    bookmarks: bool = False


class WatchHub:
    def __init__(self, store: Store, *, max_lag: int = MAX_LAG_CHANGES) -> None:
        self._store = store
        self._max_lag = max_lag
        self._idle: dict[str, list[_Watcher]] = {}
        self._watchers: set[_Watcher] = set()
        self._is_closed = False
        store.subscribe(self._publish)

    @property
    def watchers(self) -> int:
        return len(self._watchers)

    def stream(
        self, watch: Watch, *, since: int, initial: Sequence[Stored] = (), announces_end: bool = False
    ) -> AsyncIterator[bytes]:
        """Events from a revision on, after the initial objects if any. Raises Compacted or FutureRevision at once."""
        position = self._store.position(watch.selection.served.storage, since)
        watcher = _Watcher(watch, self._store, position=position, max_lag=self._max_lag)
        return self._run(watcher, since, initial, announces_end=announces_end)

    def close(self) -> None:
        """End every stream, so that the server can stop."""
        self._is_closed = True
        for watcher in list(self._watchers):
            watcher.end()

    async def _run(
        self, watcher: _Watcher, since: int, initial: Sequence[Stored], *, announces_end: bool
    ) -> AsyncIterator[bytes]:
        resource = watcher.watch.selection.served.storage
        self._watchers.add(watcher)
        timer = asyncio.get_running_loop().call_later(watcher.watch.seconds, watcher.end)
        watcher.start_bookmarks()
        try:
            if self._is_closed:
                return
            async for chunk in watcher.initial_events(initial, since, announces_end=announces_end):
                yield chunk
            while not watcher.is_over:
                chunk = watcher.next_chunk()
                if chunk:
                    yield chunk
                elif not watcher.is_over:
                    self._idle.setdefault(resource, []).append(watcher)
                    await watcher.rest()
        finally:
            timer.cancel()
            watcher.end()
            self._watchers.discard(watcher)
            idle = self._idle.get(resource, [])
            if watcher in idle:
                idle.remove(watcher)

    def _publish(self, changes: Sequence[LoggedChange]) -> None:
        touched: dict[str, set[str]] = {}
        for change in changes:
            key = change.stored.key
            touched.setdefault(key.resource, set()).add(key.namespace)
        for resource, namespaces in touched.items():
            idle = self._idle.get(resource)
            if not idle:
                continue
            head = self._store.position(resource, self._store.revision)
            still_idle: list[_Watcher] = []
            for watcher in idle:
                namespace = watcher.watch.selection.namespace
                if namespace and namespace not in namespaces:
                    watcher.position = head  # no change of this batch is in its namespace
                    still_idle.append(watcher)
                else:
                    watcher.wake()
            self._idle[resource] = still_idle


class _Watcher:
    """One stream's position in the log."""

    def __init__(self, watch: Watch, store: Store, *, position: int, max_lag: int) -> None:
        self.watch = watch
        self.position = position
        self.is_over = False
        self._store = store
        self._max_lag = max_lag
        self._sleep: asyncio.Future[None] | None = None
        self._sent_revision = 0  # the newest revision that was sent to the client
        self._bookmark_due = False
        self._bookmarks: asyncio.TimerHandle | None = None

    def start_bookmarks(self) -> None:
        """One timer for the whole stream: a busy watcher wakes often, and a timer for each wake would cost more."""
        if self.watch.bookmarks and not self.is_over:
            loop = asyncio.get_running_loop()
            self._bookmarks = loop.call_later(BOOKMARK_INTERVAL_SECONDS, self._request_bookmark)

    def end(self) -> None:
        self.is_over = True
        if self._bookmarks is not None:
            self._bookmarks.cancel()
        self.wake()

    def wake(self) -> None:
        if self._sleep is not None and not self._sleep.done():
            self._sleep.set_result(None)

    async def rest(self) -> None:
        """Wait for a change, for the end of the stream, or for the next bookmark."""
        self._sleep = asyncio.get_running_loop().create_future()
        await self._sleep

    def _request_bookmark(self) -> None:
        self._bookmark_due = True
        self.start_bookmarks()
        self.wake()

    async def initial_events(
        self, initial: Sequence[Stored], revision: int, *, announces_end: bool
    ) -> AsyncIterator[bytes]:
        form, chunk, size = self.watch.form, [], 0
        for stored in initial:
            event = _event(ADDED, form.of(stored.raw))
            chunk.append(event)
            size += len(event)
            if size > MAX_CHUNK_BYTES:
                yield b"".join(chunk)
                chunk, size = [], 0
        if announces_end:
            chunk.append(
                _event(
                    "BOOKMARK",
                    form.bookmark({"resourceVersion": str(revision), "annotations": {INITIAL_EVENTS_END: "true"}}),
                )
            )
        self._sent_revision = revision
        if chunk:
            yield b"".join(chunk)

    def next_chunk(self) -> bytes:
        """The events that can be sent now; empty when there are none."""
        storage = self.watch.selection.served.storage
        try:
            changes = self._store.changes(storage, self.position)
        except Compacted as gone:
            return self._cut_off(gone.oldest)
        if len(changes) > self._max_lag:
            return self._cut_off(changes[-1].revision)
        chunk, size = [], 0
        for change in changes:
            self.position += 1
            event = event_for(change, self.watch.selection, self.watch.form)
            if event:
                chunk.append(event)
                size += len(event)
                self._sent_revision = change.revision
                if size > MAX_CHUNK_BYTES:
                    return b"".join(chunk)
        if self._bookmark_due:
            self._bookmark_due = False
            if self._store.revision > self._sent_revision:
                self._sent_revision = self._store.revision
                chunk.append(
                    _event("BOOKMARK", self.watch.form.bookmark({"resourceVersion": str(self._sent_revision)}))
                )
        return b"".join(chunk)

    def _cut_off(self, oldest: int) -> bytes:
        self.is_over = True
        error = Gone(f"too old resource version: {self._sent_revision} ({oldest})")
        return _event("ERROR", msgspec.json.encode(error.status()))


def event_for(change: LoggedChange, selection: Selection, form: Form) -> bytes:
    """The event a watcher with this selection sees of a change; empty when it sees none."""
    is_in = change.kind != DELETED and selection.matches(change.stored)
    was_in = change.previous is not None and selection.matches(change.previous)
    if is_in:
        kind = MODIFIED if was_in else ADDED
        return _shared(change, (kind, form.key), lambda: _event(kind, form.of(change.stored.raw)))
    if not was_in:
        return b""
    if change.kind == DELETED:
        return _shared(change, (DELETED, form.key), lambda: _event(DELETED, form.of(change.stored.raw)))
    # It no longer matches: the client gets the last state that matched, at the revision of this change.
    previous = change.previous
    assert previous is not None
    return _shared(
        change, ("LEFT", form.key), lambda: _event(DELETED, form.of(with_revision(previous.raw, change.revision)))
    )


def _shared(change: LoggedChange, key: object, encode: Callable[[], bytes]) -> bytes:
    found = change.encoded.get(key)
    if found is None:
        found = change.encoded[key] = encode()
    return found


def _event(kind: str, raw: bytes) -> bytes:
    return b'{"type":"%s","object":%s}\n' % (kind.encode(), raw)


def with_revision(raw: bytes, revision: int) -> bytes:
    obj = msgspec.json.decode(raw)
    obj["metadata"]["resourceVersion"] = str(revision)
    return msgspec.json.encode(obj)
