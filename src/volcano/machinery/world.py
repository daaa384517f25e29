"""What a decision may read: API objects by key and by index, and the time. Read-only.

`World` is the protocol that controllers and admission rules see. `Mirror` is the one implementation: informers
keep it true to the API server; tests and replays fill it by hand.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Any, Final, Generic, Protocol, TypeVar

import msgspec

from volcano.api.indexes import Indexes, IndexRule
from volcano.api.meta import Key, Resource

R = TypeVar("R", bound=Resource)
MAX_TOMBSTONES: Final = 4096


class World(Protocol):
    """Objects as last seen. Results are in key order, so that equal worlds give equal decisions."""

    @property
    def now(self) -> datetime: ...

    def get(self, kind: type[R], key: Key) -> R | None: ...

    def all(self, kind: type[R]) -> list[R]: ...

    def where(self, kind: type[R], index: str, value: str) -> list[R]: ...


class Change(msgspec.Struct, Generic[R], frozen=True):
    """What happened to an object: `old` is None when it was added, `new` is None when it is gone."""

    old: R | None
    new: R | None

    @property
    def object(self) -> R:
        found = self.new if self.new is not None else self.old
        assert found is not None, "a change concerns an object"
        return found


def _owners(resource: Resource) -> list[str]:
    return [owner.uid for owner in resource.metadata.owner_references]


EVERY_KIND: Final[Mapping[str, IndexRule]] = {
    "namespace": lambda resource: [resource.namespace],
    "owner": _owners,  # by the owner's UID
}
"""The indexes that every kind has; components declare the others that they read."""


class _Table:
    """All objects of one kind, with their indexes."""

    def __init__(self, rules: Mapping[str, IndexRule]) -> None:
        self.objects: dict[Key, Resource] = {}
        self._rules: dict[str, IndexRule] = dict(rules)
        self._indexed: dict[str, dict[str, set[Key]]] = {name: {} for name in rules}

    def add_index(self, name: str, rule: IndexRule) -> None:
        if name in self._rules:
            if self._rules[name] is not rule:
                raise ValueError(f"two rules for one index: {name}")
            return
        self._rules[name] = rule
        self._indexed[name] = {}
        for key, resource in self.objects.items():
            for value in rule(resource):
                self._indexed[name].setdefault(value, set()).add(key)

    def put(self, key: Key, resource: Resource) -> Resource | None:
        old = self.objects.get(key)
        self.objects[key] = resource
        for name, rule in self._rules.items():
            values = list(rule(resource))
            if old is not None:
                before = list(rule(old))
                if before == values:
                    continue  # most changes leave what objects are found by as it is
                self._unlist(name, before, key)
            for value in values:
                self._indexed[name].setdefault(value, set()).add(key)
        return old

    def remove(self, key: Key) -> Resource | None:
        old = self.objects.pop(key, None)
        if old is not None:
            for name, rule in self._rules.items():
                self._unlist(name, rule(old), key)
        return old

    def _unlist(self, name: str, values: Iterable[str], key: Key) -> None:
        for value in values:
            keys = self._indexed[name].get(value)
            if keys is not None:
                keys.discard(key)
                if not keys:
                    del self._indexed[name][value]

    def where(self, index: str, value: str) -> list[Resource]:
        if index not in self._rules:
            raise LookupError(f"the index {index!r} is not declared; there are {', '.join(self._rules)}")
        return [self.objects[key] for key in sorted(self._indexed[index].get(value, ()))]


class Mirror:
    """Objects kept in step with the API server, and the listeners called on each change."""

    def __init__(self, now: Callable[[], datetime] | None = None, indexes: Indexes | None = None) -> None:
        self._tables: dict[type[Resource], _Table] = {}
        self._listeners: dict[type[Resource], list[Callable[[Change[Any]], None]]] = {}
        self._gone: OrderedDict[str, str] = OrderedDict()  # the last ones removed: UID → resource version
        self._now = now or (lambda: datetime(2026, 1, 1, tzinfo=UTC))
        self.add_indexes(indexes or {})

    @property
    def now(self) -> datetime:
        return self._now()

    def get(self, kind: type[R], key: Key) -> R | None:
        return self._table(kind).objects.get(key)  # type: ignore[return-value]

    def all(self, kind: type[R]) -> list[R]:
        objects = self._table(kind).objects
        return [objects[key] for key in sorted(objects)]  # type: ignore[misc]

    def where(self, kind: type[R], index: str, value: str) -> list[R]:
        return self._table(kind).where(index, value)  # type: ignore[return-value]

    def keys(self, kind: type[Resource]) -> Iterator[Key]:
        return iter(tuple(self._table(kind).objects))

    def add_indexes(self, indexes: Indexes) -> None:
        """Declare what will be asked for; the same rule may be declared again."""
        for kind, rules in indexes.items():
            for name, rule in rules.items():
                self._table(kind).add_index(name, rule)

    def listen(self, kind: type[R], listener: Callable[[Change[R]], None]) -> None:
        """Call `listener` for every present object as an addition, now, and for every later change."""
        self._listeners.setdefault(kind, []).append(listener)
        for resource in self.all(kind):
            listener(Change(None, resource))

    def put(self, resource: Resource) -> None:
        """Store a newer state; one that is older than the known one is ignored."""
        kind = type(resource)
        gone = self._gone.get(resource.uid) if resource.uid else None
        if gone is not None and not is_newer(resource, than=gone):
            return  # the answer to a write that arrived after the deletion
        key, table = resource.key, self._table(kind)
        known = table.objects.get(key)
        if known is not None and known.uid != resource.uid:
            self.remove(kind, key)
        elif known is not None and not is_newer(resource, than=known.metadata.resource_version):
            return
        old = table.put(key, resource)
        self._notify(kind, Change(old, resource))

    def remove(self, kind: type[Resource], key: Key, last: Resource | None = None) -> None:
        """Remove an object; `last` is its final state, if the server sent it."""
        old = self._table(kind).remove(key)
        if old is not None:
            self._keep_tombstone(last if last is not None else old)
            self._notify(kind, Change(last if last is not None else old, None))

    def _keep_tombstone(self, gone: Resource) -> None:
        if gone.uid:
            self._gone[gone.uid] = gone.metadata.resource_version
            if len(self._gone) > MAX_TOMBSTONES:
                self._gone.popitem(last=False)

    def _notify(self, kind: type[Resource], change: Change[Any]) -> None:
        for listener in self._listeners.get(kind, ()):
            listener(change)

    def _table(self, kind: type[Resource]) -> _Table:
        table = self._tables.get(kind)
        if table is None:
            table = self._tables[kind] = _Table(EVERY_KIND)
        return table


def is_newer(resource: Resource, *, than: str) -> bool:
    """Resource versions are ordered numbers on every server we know; anything else counts as newer."""
    new = resource.metadata.resource_version
    if new.isdecimal() and than.isdecimal():
        return int(new) > int(than)
    return new != than or not new


def frozen_world(*resources: Resource, now: datetime | None = None, indexes: Indexes | None = None) -> World:
    """A World that holds just these objects: what a decision's test starts from."""
    mirror = Mirror((lambda: now) if now is not None else None, indexes)
    for resource in resources:
        mirror.put(resource)
    return mirror
