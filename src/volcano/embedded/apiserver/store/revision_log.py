"""The log as both stores hold it in memory: current objects in key order, and a bounded window of recent changes.

A list at an older revision undoes the changes since; a watch reads a resource's changes from a position on.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final, TypeAlias

from volcano.embedded.apiserver.store.contract import (
    DELETED,
    Compacted,
    FutureRevision,
    LoggedChange,
    ObjectKey,
    Stored,
)

MAX_LOG_CHANGES: Final = 50_000
MAX_LOG_BYTES: Final = 64 * 2**20
MAX_ENCODED_CHANGES: Final = 256
"""The newest changes keep their encoded events for further watchers; keeping more would double the window's memory."""
_AFTER_ANY_NAME: Final = "\U0010ffff"

Place: TypeAlias = tuple[str, str]
"""Namespace and name."""
Undone: TypeAlias = dict[Place, Stored | None]


class _ResourceLog:
    """One resource: its objects, and its part of the window with absolute positions."""

    __slots__ = ("changes", "dropped", "keys", "objects")

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str], Stored] = {}
        self.keys: list[tuple[str, str]] = []
        self.changes: list[LoggedChange] = []
        self.dropped = 0

    def apply(self, change: LoggedChange) -> None:
        _, namespace, name = change.stored.key
        place = (namespace, name)
        if change.kind == DELETED:
            if self.objects.pop(place, None) is not None:
                del self.keys[bisect_left(self.keys, place)]
        else:
            if place not in self.objects:
                insort(self.keys, place)
            self.objects[place] = change.stored
        self.changes.append(change)

    def places(self, namespace: str) -> list[tuple[str, str]]:
        """The keys of one namespace or of all, in order."""
        if not namespace:
            return self.keys
        first = bisect_left(self.keys, (namespace, ""))
        return self.keys[first : bisect_left(self.keys, (namespace, _AFTER_ANY_NAME))]

    def drop_through(self, revision: int) -> None:
        number = bisect_right(self.changes, revision, key=_revision)
        del self.changes[:number]
        self.dropped += number


def _revision(change: LoggedChange) -> int:
    return change.stored.revision


class RevisionLog:
    """Current state and window. `apply` and `forget` are the only ways it changes."""

    def __init__(self, *, max_changes: int = MAX_LOG_CHANGES, max_bytes: int = MAX_LOG_BYTES) -> None:
        self.revision = 0
        self.compacted = 0
        self._resources: dict[str, _ResourceLog] = {}
        self._window: deque[LoggedChange] = deque()
        self._bytes = 0
        self._max_changes = max_changes
        self._max_bytes = max_bytes

    def restore(self, stored: Stored) -> None:
        """Put an object in place without a change: it is older than the window."""
        log = self._resource(stored.key.resource)
        place = stored.key[1:]
        if place not in log.objects:
            insort(log.keys, place)
        log.objects[place] = stored

    def apply(self, change: LoggedChange) -> None:
        self._resource(change.stored.key.resource).apply(change)
        self._window.append(change)
        if len(self._window) > MAX_ENCODED_CHANGES:
            self._window[-MAX_ENCODED_CHANGES].encoded.clear()
        self._bytes += _weight(change)
        self.revision = max(self.revision, change.revision)

    def excess(self) -> int:
        """The revision up to which the window should be forgotten to keep its bounds; 0 when it is within them."""
        if len(self._window) <= self._max_changes and self._bytes <= self._max_bytes:
            return 0
        surplus, size, last = len(self._window) - self._max_changes * 3 // 4, self._bytes, 0
        for number, change in enumerate(self._window):
            if number >= surplus and size <= self._max_bytes * 3 // 4:
                break
            size -= _weight(change)
            last = change.revision
        return last

    def forget(self, revision: int) -> list[int]:
        """Compact. Returns the revisions that can be deleted from disk: superseded objects and deletions."""
        revision = min(revision, self.revision)
        superseded: list[int] = []
        touched: set[str] = set()
        while self._window and self._window[0].revision <= revision:
            change = self._window.popleft()
            self._bytes -= _weight(change)
            touched.add(change.stored.key.resource)
            if change.previous is not None:
                superseded.append(change.previous.revision)
            if change.kind == DELETED:
                superseded.append(change.revision)
        for resource in touched:
            self._resources[resource].drop_through(revision)
        self.compacted = max(self.compacted, revision)
        return superseded

    def find(self, key: ObjectKey) -> Stored | None:
        log = self._resources.get(key.resource)
        return log.objects.get((key.namespace, key.name)) if log else None

    def count(self, resource: str) -> int:
        log = self._resources.get(resource)
        return len(log.objects) if log else 0

    def resources(self) -> Sequence[str]:
        return list(self._resources)

    def scan(self, resource: str, namespace: str = "", *, revision: int | None = None) -> Sequence[Stored]:
        log = self._resources.get(resource)
        if revision is not None and revision != self.revision:
            return self._scan_at(log, namespace, revision)
        return [log.objects[place] for place in log.places(namespace)] if log is not None else []

    def _scan_at(self, log: _ResourceLog | None, namespace: str, revision: int) -> Sequence[Stored]:
        undone = self._undone(log, namespace, revision)
        return list(_then(log, _places_then(log, namespace, undone), undone)) if log is not None else []

    def page(
        self, resource: str, namespace: str, *, revision: int, after: Place | None, limit: int
    ) -> tuple[Sequence[Stored], int]:
        """At most `limit` objects after a (namespace, name), as of a revision, and how many more follow."""
        log = self._resources.get(resource)
        undone = self._undone(log, namespace, revision)
        if log is None:
            return [], 0
        places = _places_then(log, namespace, undone, after=after)
        found = list(islice(_then(log, places, undone), limit))
        if len(found) < limit:
            return found, 0
        last: Place = found[-1].key[1:]
        later = sum(previous is None and place > last and place in log.objects for place, previous in undone.items())
        return found, len(places) - bisect_right(places, last) - later

    def _undone(self, log: _ResourceLog | None, namespace: str, revision: int) -> Undone:
        """Of every object that changed since a revision, its state then."""
        if revision > self.revision:
            raise FutureRevision
        if revision < self.compacted:
            raise Compacted(self.compacted)
        undone: Undone = {}
        for change in reversed(log.changes if log is not None else ()):
            if change.revision <= revision:
                break
            place = change.stored.key[1:]
            if not namespace or place[0] == namespace:
                undone[place] = change.previous
        return undone

    def position(self, resource: str, revision: int) -> int:
        if revision < self.compacted:
            raise Compacted(self.compacted)
        if revision > self.revision:
            raise FutureRevision
        log = self._resource(resource)
        return log.dropped + bisect_right(log.changes, revision, key=_revision)

    def changes(self, resource: str, position: int) -> Sequence[LoggedChange]:
        log = self._resources.get(resource)
        if log is None:
            return []
        if position < log.dropped:
            raise Compacted(self.compacted)
        return log.changes[position - log.dropped :]

    def _resource(self, resource: str) -> _ResourceLog:
        log = self._resources.get(resource)
        if log is None:
            log = self._resources[resource] = _ResourceLog()
        return log


def _places_then(log: _ResourceLog, namespace: str, undone: Undone, *, after: Place | None = None) -> list[Place]:
    """Where objects are or were, in order."""
    places = log.places(namespace)
    if after is not None:
        places = places[bisect_right(places, after) :]
    gone = [place for place, previous in undone.items() if previous is not None and place not in log.objects]
    gone = [place for place in gone if after is None or place > after]
    return sorted([*places, *sorted(gone)]) if gone else places  # two sorted runs, which Python merges in linear time


def _then(log: _ResourceLog, places: Iterable[Place], undone: Undone) -> Iterator[Stored]:
    for place in places:
        stored = undone[place] if place in undone else log.objects[place]
        if stored is not None:
            yield stored


def _weight(change: LoggedChange) -> int:
    """The bytes that only the window keeps in memory: objects that are no longer current."""
    size = 200
    if change.previous is not None:
        size += len(change.previous.raw)
    if change.kind == DELETED:
        size += len(change.stored.raw)
    return size
