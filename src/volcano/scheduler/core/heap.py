"""A binary heap whose order is asked anew at every step, because shares change while things wait in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Generic, TypeVar

T = TypeVar("T")


class Heap(Generic[T]):
    """`before(a, b)` is whether a comes first; with a total order the order of insertion is irrelevant."""

    __slots__ = ("_before", "_items")

    def __init__(self, before: Callable[[T, T], bool], items: Iterable[T] = ()) -> None:
        self._before = before
        self._items: list[T] = []
        for item in items:
            self.push(item)

    def __len__(self) -> int:
        return len(self._items)

    def copy(self) -> Heap[T]:
        copied = Heap(self._before)
        copied._items = self._items.copy()
        return copied

    def items(self) -> list[T]:
        """All items, in no particular order."""
        return list(self._items)

    def push(self, item: T) -> None:
        items, before = self._items, self._before
        items.append(item)
        child = len(items) - 1
        while child:
            parent = (child - 1) // 2
            if not before(items[child], items[parent]):
                return
            items[child], items[parent] = items[parent], items[child]
            child = parent

    def pop(self) -> T:
        items = self._items
        items[0], items[-1] = items[-1], items[0]
        first = items.pop()
        self._sink()
        return first

    def _sink(self) -> None:
        items, before, parent = self._items, self._before, 0
        while (child := 2 * parent + 1) < len(items):
            if child + 1 < len(items) and before(items[child + 1], items[child]):
                child += 1
            if not before(items[child], items[parent]):
                return
            items[child], items[parent] = items[parent], items[child]
            parent = child
