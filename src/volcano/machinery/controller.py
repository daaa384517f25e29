"""What a controller is: a declaration of what wakes it, and one pure decision.

machinery.runner owns work queues, retries, leader election and writing. A controller imports no client and no clock.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any, ClassVar, NamedTuple, TypeAlias

from volcano.api.indexes import Indexes
from volcano.api.meta import Key, Resource
from volcano.machinery.plan import NOTHING, Plan
from volcano.machinery.world import Change, World


class Wake(NamedTuple):
    """Decide on this object; `cause` is what happened, for decisions that depend on it."""

    key: Key
    cause: Hashable = None


Waker: TypeAlias = Callable[[Change[Any]], Iterable[Wake]]


class PlanFailed(NamedTuple):
    """A plan that failed: which step, on which object, why, and how many times in a row."""

    step: str  # "Create", "Patch", "Delete" …
    kind: str
    object: str
    message: str
    tries: int
    refused: bool = True  # a retry is not expected to help: neither a conflict nor an unreachable server


class Controller(ABC):
    """Keeps one kind of thing as it should be."""

    name: ClassVar[str]
    indexes: ClassVar[Indexes] = {}

    @property
    @abstractmethod
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        """Which changes of which kinds concern which keys. The kinds listed are the ones `decide` may read."""

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        """Kinds that `decide` reads without being woken by them."""
        return ()

    @abstractmethod
    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        """What to do about `key`. Causes come in the order they happened and may be empty."""

    def on_failure(self, key: Key, world: World, failure: PlanFailed) -> Plan:
        """What to do besides the retry: record an event, or give up. By default nothing."""
        return NOTHING


def self_key(change: Change[Any]) -> Iterable[Wake]:
    """Woken by the object itself."""
    return (Wake(change.object.key),)


def owner_key(kind: str) -> Waker:
    """Woken by objects whose controlling owner is of this kind."""

    def wakes(change: Change[Any]) -> Iterable[Wake]:
        owner = change.object.controller
        return (Wake(Key(change.object.namespace, owner.name)),) if owner and owner.kind == kind else ()

    return wakes


def by(find: Callable[[Any], Key | None]) -> Waker:
    """Woken through a function from an object to the key it concerns; asked for the old and the new state."""

    def wakes(change: Change[Any]) -> Iterable[Wake]:
        states = (state for state in (change.old, change.new) if state is not None)
        keys = {key: None for state in states if (key := find(state)) is not None}
        return [Wake(key) for key in keys]

    return wakes
