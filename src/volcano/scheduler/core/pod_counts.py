"""Which pods are where, by namespace and labels, so that "how many such pods on each node" is a column.

A question that was asked once is kept current as pods come and go; pods are found through their labels, not by
looking at all of them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from volcano.api.selectors import Selector
from volcano.scheduler.model.node import Node
from volcano.scheduler.model.task import Task

Numbers: TypeAlias = npt.NDArray[np.int64]

MAX_CACHED_QUERIES: Final = 256


@dataclass(slots=True, frozen=True)
class PodSelection:
    """Pods of some namespaces (None: of all) with certain labels."""

    namespaces: frozenset[str] | None
    selector: Selector

    def holds(self, task: Task) -> bool:
        if self.namespaces is not None and task.namespace not in self.namespaces:
            return False
        return self.selector.matches(task.pod.labels)


@dataclass(slots=True, frozen=True)
class Query:
    """Pods for which all selections hold; `living` leaves out those being deleted."""

    selections: tuple[PodSelection, ...]
    living: bool = False

    def holds(self, task: Task) -> bool:
        if self.living and task.pod.is_deleting:
            return False
        return all(condition.holds(task) for condition in self.selections)


class PodCounts:
    def __init__(self, nodes: Sequence[Node]) -> None:
        self._size = len(nodes)
        self._rows: dict[str, int] = {}
        self._tasks: dict[str, Task] = {}
        self._of_namespace: dict[str, set[str]] = {}
        self._labelled: dict[tuple[str, str, str], set[str]] = {}
        self._kept: OrderedDict[Query, Numbers] = OrderedDict()
        for row, node in enumerate(nodes):
            for task in node.present_tasks:
                self._enter(row, task)

    def count(self, query: Query) -> Numbers:
        """How many pods of the query each node has. Kept and changed in place: read it, do not keep it."""
        column = self._kept.get(query)
        if column is None:
            column = np.zeros(self._size, dtype=np.int64)
            for uid in self._candidates(query):
                if query.holds(self._tasks[uid]):
                    column[self._rows[uid]] += 1
            self._kept[query] = column
            if len(self._kept) > MAX_CACHED_QUERIES:
                self._kept.popitem(last=False)
        else:
            self._kept.move_to_end(query)
        return column

    def change(self, row: int, task: Task, comes: bool) -> None:
        if comes:
            self._enter(row, task)
        else:
            self._leave(task)
        for query, column in self._kept.items():
            if query.holds(task):
                column[row] += 1 if comes else -1

    def _enter(self, row: int, task: Task) -> None:
        uid, namespace = task.uid, task.namespace
        self._rows[uid] = row
        self._tasks[uid] = task
        self._of_namespace.setdefault(namespace, set()).add(uid)
        for key, value in task.pod.labels.items():
            self._labelled.setdefault((namespace, key, value), set()).add(uid)

    def _leave(self, task: Task) -> None:
        uid, namespace = task.uid, task.namespace
        self._rows.pop(uid, None)
        self._tasks.pop(uid, None)
        self._of_namespace.get(namespace, set()).discard(uid)
        for key, value in task.pod.labels.items():
            place = (namespace, key, value)
            alike = self._labelled.get(place)
            if alike is not None:
                alike.discard(uid)
                if not alike:
                    del self._labelled[place]

    def _candidates(self, query: Query) -> Iterable[str]:
        """Candidates for a match: the smallest set that one selection allows."""
        best: set[str] | None = None
        for condition in query.selections:
            found = self._selected(condition)
            if best is None or len(found) < len(best):
                best = found
        return self._tasks if best is None else best

    def _selected(self, condition: PodSelection) -> set[str]:
        namespaces = self._of_namespace if condition.namespaces is None else condition.namespaces
        required = [r for r in condition.selector.requirements if r.operator == "In"]
        found: set[str] = set()
        for namespace in namespaces:
            if not required:
                found |= self._of_namespace.get(namespace, set())
                continue
            sets = [
                set().union(*(self._labelled.get((namespace, r.key, value), ()) for value in r.values))
                for r in required
            ]
            found |= min(sets, key=len)
        return found
