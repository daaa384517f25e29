"""Nodes as columns: amounts, counts, labels, taints; and which rows changed since when.

The table is the only place where node amounts live. Rows follow the order in which nodes arrived. Plugins see it
through a NodeView (core.node_view), never directly.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from volcano.api.core import Taint
from volcano.scheduler.core.labels import LabelColumns
from volcano.scheduler.core.pod_counts import PodCounts
from volcano.scheduler.model import CPU, MEMORY, PODS, Node, Resources, Shape, Status, Task

Column: TypeAlias = npt.NDArray[np.float64]
Mask: TypeAlias = npt.NDArray[np.bool_]
Rows: TypeAlias = npt.NDArray[np.intp]

AMOUNTS: Final = ("allocatable", "capacity", "idle", "used", "releasing", "pipelined", "future_idle", "requested")

_SIGNS: Final = {  # what a task does to each kind of amount, in the order of AMOUNTS
    Status.PIPELINED: (0, 0, 0, 0, 0, 1, -1),
    Status.RELEASING: (0, 0, -1, 1, 1, 0, 0),
}
_ANY_OTHER: Final = (0, 0, -1, 1, 0, 0, -1)


class Vectors:
    """An amount as arrays: over the table's resources, and what it changes on a row, by status and presence."""

    __slots__ = ("_changes", "_restatements", "resources", "vector")

    def __init__(self, resources: dict[str, int], vector: Column) -> None:
        self.resources, self.vector = resources, vector
        self._changes: dict[tuple[Status, bool], Column] = {}
        self._restatements: dict[tuple[tuple[Status, bool], tuple[Status, bool]], Column] = {}

    def change(self, status: Status, *, present: bool) -> Column:
        found = self._changes.get((status, present))
        if found is None:
            signs = np.array((*_SIGNS.get(status, _ANY_OTHER), int(present)), dtype=np.float64)
            found = self._changes[(status, present)] = (signs[:, None] * self.vector[None, :]).ravel()
        return found

    def restatement(self, before: tuple[Status, bool], after: tuple[Status, bool]) -> Column:
        """What a row changes by when a task there gets another status; each with whether the task is present."""
        found = self._restatements.get((before, after))
        if found is None:
            come, go = (self.change(status, present=present) for status, present in (after, before))
            found = self._restatements[(before, after)] = come - go
        return found


class NodeTable:
    """One row per node, one column per resource in each kind of amount.

    `idle`, `used`, `releasing`, `pipelined`: as section 5.3 of the scheduler's specification moves them.
    `future_idle` = idle + releasing - pipelined. `requested` and `pod_count` are Kubernetes' view: every pod present,
    promised ones included, those evicted by the session not; `assumed` is the same of cpu and memory with defaults
    for containers that state no request.
    """

    def __init__(self, nodes: Iterable[Node] = ()) -> None:
        self.nodes: list[Node] = list(nodes)
        self.resources: dict[str, int] = {CPU: 0, MEMORY: 1, PODS: 2}
        for node in self.nodes:
            self._know(node.allocatable)
            self._know(node.capacity)
        self._shape_columns()
        self.notable: dict[Shape, dict[str, Task]] = {}  # present tasks whose presence matters to others
        self.sociable: dict[Shape, dict[str, Task]] = {}  # of these, the ones with pod (anti-)affinity
        self._pods: PodCounts | None = None
        self.track_presence = True
        self.uncounted: frozenset[str] = frozenset()  # resources that say something of devices, and of no node
        self._changed: list[int] = []
        self.versions = np.zeros(len(self.nodes), dtype=np.int64)  # how often each row has changed
        for row, node in enumerate(self.nodes):
            self._fill(row, node)
            for task in node.tasks.values():
                self._notice(row, task, 1.0)

    def _shape_columns(self) -> None:
        size = len(self.nodes)
        self._block = np.zeros((len(AMOUNTS), len(self.resources), size))
        self._pods_present = np.zeros((3, size))
        self.promises = np.zeros(size, dtype=np.int32)  # tasks that leave, or are promised room: future_idle differs
        self.unschedulable = np.zeros(size, dtype=bool)
        self.index: dict[str, int] = {node.name: row for row, node in enumerate(self.nodes)}
        self.labels = LabelColumns(self.nodes)
        self.taint_sets: list[tuple[Taint, ...]] = []
        self.taint_group = np.zeros(size, dtype=np.intp)
        self._name_columns()

    def _name_columns(self) -> None:
        """All amounts are one block, so that a task's coming or going is one addition; these are views of it."""
        block = self._block = np.ascontiguousarray(self._block)
        self._flat = block.reshape(
            block.shape[0] * block.shape[1], block.shape[2]
        )  # with one dimension less, a row is changed much faster
        self.allocatable, self.capacity, self.idle, self.used = block[0], block[1], block[2], block[3]
        self.releasing, self.pipelined, self.future_idle, self.requested = block[4], block[5], block[6], block[7]
        self.assumed, self.pod_count = self._pods_present[:2], self._pods_present[2]
        self._all_have: dict[str, bool] = {}

    def __len__(self) -> int:
        return len(self.nodes)

    def all_have(self, resource: str) -> bool:
        """Whether every node has some of the resource."""
        known = self._all_have.get(resource)
        if known is None:
            place = self.resources.get(resource)
            known = self._all_have[resource] = place is not None and bool(self.allocatable[place].all())
        return known

    def no_rows(self) -> Mask:
        return np.zeros(len(self.nodes), dtype=bool)

    # -- nodes come, change and go --------------------------------------------------------------------------------
    def put(self, node: Node) -> None:
        """Add a node, or replace what is known of it; tasks already on it stay."""
        row = self.index.get(node.name)
        self._know(node.allocatable)
        self._know(node.capacity)
        if row is None:
            self.nodes.append(node)
            self._widen()
            row = len(self.nodes) - 1
            self.index[node.name] = row
            self._pods = None
            for task in node.tasks.values():
                self._notice(row, task, 1.0)
        else:
            node.tasks = self.nodes[row].tasks
            self.nodes[row] = node
            self._clear(row)
        self.labels = LabelColumns(self.nodes)
        self._fill(row, node)

    def remove(self, name: str) -> None:
        row = self.index.get(name)
        if row is None:
            return
        for task in self.nodes[row].tasks.values():
            self._notice(row, task, -1.0)
        self._pods = None
        del self.nodes[row]
        self.versions = np.delete(self.versions, row)
        self._block = np.delete(self._block, row, axis=2)
        self._pods_present = np.delete(self._pods_present, row, axis=1)
        self._name_columns()
        self.promises = np.delete(self.promises, row)
        self.unschedulable = np.delete(self.unschedulable, row)
        self.taint_group = np.delete(self.taint_group, row)
        for place, node in enumerate(self.nodes):
            node.row = place
        self.index = {node.name: place for place, node in enumerate(self.nodes)}
        self.labels = LabelColumns(self.nodes)

    def _widen(self) -> None:
        self._block = np.concatenate([self._block, np.zeros((*self._block.shape[:2], 1))], axis=2)
        self._pods_present = np.concatenate([self._pods_present, np.zeros((3, 1))], axis=1)
        self._name_columns()
        self.versions = np.append(self.versions, 0)
        self.promises = np.append(self.promises, np.int32(0))
        self.unschedulable = np.append(self.unschedulable, False)
        self.taint_group = np.append(self.taint_group, 0)

    def _clear(self, row: int) -> None:
        self._block[:, :, row] = 0.0
        self.promises[row] = 0
        self._pods_present[:, row] = 0.0

    def _fill(self, row: int, node: Node) -> None:
        node.row = row
        self._all_have.clear()
        allocatable = self.vector(node.allocatable)
        self.allocatable[:, row] = allocatable
        self.capacity[:, row] = self.vector(node.capacity)
        self.idle[:, row] = allocatable
        self.future_idle[:, row] = allocatable
        self.unschedulable[row] = node.unschedulable
        if node.taints not in self.taint_sets:
            self.taint_sets.append(node.taints)
        self.taint_group[row] = self.taint_sets.index(node.taints)
        for task in node.tasks.values():
            self._add(row, task, task.status, present=not task.evicted)
        self._touch(row)

    # -- resources as vectors -------------------------------------------------------------------------------------
    def _know(self, amount: Resources) -> None:
        for name in amount:
            if name not in self.resources:
                self.resources[name] = len(self.resources)
                if hasattr(self, "idle"):
                    self._deepen()

    def _deepen(self) -> None:
        kinds, _, rows = self._block.shape
        self._block = np.concatenate([self._block, np.zeros((kinds, 1, rows))], axis=1)
        self._name_columns()

    def vector(self, amount: Resources) -> Column:
        """The amount in the table's order of resources; kept with the amount as long as it stays valid."""
        return self._vectors(amount).vector

    def _vectors(self, amount: Resources) -> Vectors:
        kept = amount.vector
        if isinstance(kept, Vectors) and kept.resources is self.resources and len(kept.vector) == len(self.resources):
            return kept
        self._know(amount)
        vector = np.zeros(len(self.resources))
        for name, value in amount.amounts.items():
            vector[self.resources[name]] = value
        amount.vector = made = Vectors(self.resources, vector)
        return made

    # -- tasks come, move and go ----------------------------------------------------------------------------------
    def occupy(self, task: Task, node: Node) -> None:
        """The task, with the status it has, takes its place on the node."""
        node.tasks[task.key] = task
        present = self.track_presence and not task.evicted
        self._add(node.row, task, task.status, present=present)
        if present:
            self._notice(node.row, task, 1.0)
        self._touch(node.row)

    def occupy_alike(self, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """The same for tasks that have one shape and one status, each on its row."""
        nodes, first = self.nodes, tasks[0]
        present = self.track_presence and not first.evicted
        counts: dict[int, int] = {}
        for task, row in zip(tasks, rows, strict=True):
            nodes[row].tasks[task.key] = task
            counts[row] = counts.get(row, 0) + 1
        if present and (first.shape.notable or first.shape.sociable or self._pods is not None):
            for task, row in zip(tasks, rows, strict=True):
                self._notice(row, task, 1.0)
        change = self._vectors(first.request).change(first.status, present=present and not first.reprieved)
        at, number = np.fromiter(counts, np.intp, len(counts)), np.fromiter(counts.values(), np.float64, len(counts))
        self._flat[:, at] += change[:, None] * number
        if first.status in _SIGNS:
            self.promises[at] += number.astype(np.int32)
        if present and not first.reprieved:
            self._pods_present[:, at] += first.shape.presence[:, None] * number
        self._changed.extend(counts)
        self.versions[at] += number.astype(np.int64)

    def vacate(self, task: Task, node: Node) -> None:
        """The inverse of occupy, for the status the task has now."""
        del node.tasks[task.key]
        present = self.track_presence and not task.evicted
        self._subtract(node.row, task, task.status, present=present)
        if present:
            self._notice(node.row, task, -1.0)
        self._touch(node.row)

    def restate(self, task: Task, node: Node, status: Status, *, evicted: bool) -> None:
        """A task on a node changes its status; `task.status` and `task.evicted` are still the old ones."""
        row, counted = node.row, self.track_presence and not task.reprieved
        was_there, is_there = counted and not task.evicted, counted and not evicted
        change = self._vectors(task.request).restatement((task.status, was_there), (status, is_there))
        column = self._flat[:, row]
        np.add(column, change, out=column)
        self.promises[row] += (status in _SIGNS) - (task.status in _SIGNS)
        if was_there != is_there:
            column = self._pods_present[:, row]
            (np.add if is_there else np.subtract)(column, task.shape.presence, out=column)
        if evicted != task.evicted and self.track_presence:
            self._notice(row, task, -1.0 if evicted else 1.0)
        self._touch(row)

    def _add(self, row: int, task: Task, status: Status, *, present: bool) -> None:
        present = present and not task.reprieved
        change = self._vectors(task.request).change(status, present=present)  # before the block: it may grow
        column = self._flat[:, row]
        np.add(column, change, out=column)
        if status in _SIGNS:
            self.promises[row] += 1
        if present:
            column = self._pods_present[:, row]
            np.add(column, task.shape.presence, out=column)

    def _subtract(self, row: int, task: Task, status: Status, *, present: bool) -> None:
        present = present and not task.reprieved
        change = self._vectors(task.request).change(status, present=present)
        column = self._flat[:, row]
        np.subtract(column, change, out=column)
        if status in _SIGNS:
            self.promises[row] -= 1
        if present:
            column = self._pods_present[:, row]
            np.subtract(column, task.shape.presence, out=column)

    def _notice(self, row: int, task: Task, sign: float) -> None:
        shape = task.shape
        if shape.notable:
            _note(self.notable, task, comes=sign > 0.0)
        if shape.sociable:
            _note(self.sociable, task, comes=sign > 0.0)
        if self._pods is not None:
            self._pods.change(row, task, sign > 0.0)

    @property
    def pods(self) -> PodCounts:
        """Which pods are where, by namespace and labels; made when first asked for, then kept current."""
        if self._pods is None:
            self._pods = PodCounts(self.nodes)
        return self._pods

    # -- what changed ---------------------------------------------------------------------------------------------
    @property
    def mark(self) -> int:
        """A point in time, for `changed_since`."""
        return len(self._changed)

    def changed_since(self, mark: int) -> Rows:
        return np.array(self.rows_since(mark), dtype=np.intp)

    def rows_since(self, mark: int) -> list[int]:
        """The same as a list; each row once, in ascending order."""
        if len(self._changed) == mark + 1:
            return self._changed[mark:]
        return sorted(set(self._changed[mark:]))

    def _touch(self, row: int) -> None:
        self._changed.append(row)
        self.versions[row] += 1

    def forget_changes(self) -> None:
        """Start counting anew; marks taken before are void. Done when a session opens."""
        self._changed.clear()


def _note(noted: dict[Shape, dict[str, Task]], task: Task, *, comes: bool) -> None:
    if comes:
        noted.setdefault(task.shape, {})[task.uid] = task
        return
    alike = noted.get(task.shape, {})
    alike.pop(task.uid, None)
    if not alike:
        noted.pop(task.shape, None)
