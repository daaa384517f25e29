"""Nodes as columns: amounts, counts, labels, taints; and which rows changed since when.

The table is the only place where node amounts live. Rows follow the order in which nodes arrived. Plugins see it
through a NodeView (core.node_view), never directly.
"""

from __future__ import annotations

from collections.abc import Iterable
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
        self._pods: PodCounts | None = None
        self.track_presence = True
        self._changed: list[int] = []
        self.versions: list[int] = [0] * len(self.nodes)  # how often each row has changed
        for row, node in enumerate(self.nodes):
            self._fill(row, node)
            for task in node.tasks.values():
                self._notice(row, task, 1.0)

    def _shape_columns(self) -> None:
        size = (len(self.resources), len(self.nodes))
        self.allocatable = np.zeros(size)
        self.capacity = np.zeros(size)
        self.idle = np.zeros(size)
        self.used = np.zeros(size)
        self.releasing = np.zeros(size)
        self.pipelined = np.zeros(size)
        self.future_idle = np.zeros(size)
        self.requested = np.zeros(size)
        self.assumed = np.zeros((2, size[1]))
        self.pod_count = np.zeros(size[1])
        self.unschedulable = np.zeros(size[1], dtype=bool)
        self.index: dict[str, int] = {node.name: row for row, node in enumerate(self.nodes)}
        self.labels = LabelColumns(self.nodes)
        self.taint_sets: list[tuple[Taint, ...]] = []
        self.taint_group = np.zeros(size[1], dtype=np.intp)

    def __len__(self) -> int:
        return len(self.nodes)

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
        del self.nodes[row], self.versions[row]
        for kind in (*AMOUNTS, "assumed"):
            setattr(self, kind, np.delete(getattr(self, kind), row, axis=1))
        for kind in ("pod_count", "unschedulable", "taint_group"):
            setattr(self, kind, np.delete(getattr(self, kind), row))
        for place, node in enumerate(self.nodes):
            node.row = place
        self.index = {node.name: place for place, node in enumerate(self.nodes)}
        self.labels = LabelColumns(self.nodes)

    def _widen(self) -> None:
        for kind in (*AMOUNTS, "assumed"):
            matrix = getattr(self, kind)
            setattr(self, kind, np.concatenate([matrix, np.zeros((matrix.shape[0], 1))], axis=1))
        self.versions.append(0)
        self.pod_count = np.append(self.pod_count, 0.0)
        self.unschedulable = np.append(self.unschedulable, False)
        self.taint_group = np.append(self.taint_group, 0)

    def _clear(self, row: int) -> None:
        for kind in (*AMOUNTS, "assumed"):
            getattr(self, kind)[:, row] = 0.0
        self.pod_count[row] = 0.0

    def _fill(self, row: int, node: Node) -> None:
        node.row = row
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
            self._count(row, task, task.status, 1.0)
            self._appear(row, task, 1.0)
        self._touch(row)

    # -- resources as vectors -------------------------------------------------------------------------------------
    def _know(self, amount: Resources) -> None:
        for name in amount:
            if name not in self.resources:
                self.resources[name] = len(self.resources)
                if hasattr(self, "idle"):
                    self._deepen()

    def _deepen(self) -> None:
        for kind in AMOUNTS:
            matrix = getattr(self, kind)
            setattr(self, kind, np.concatenate([matrix, np.zeros((1, matrix.shape[1]))], axis=0))

    def vector(self, amount: Resources) -> Column:
        """The amount in the table's order of resources; kept with the amount as long as it stays valid."""
        kept = amount.vector
        if isinstance(kept, tuple) and kept[0] is self.resources and len(kept[1]) == len(self.resources):
            kept_vector: Column = kept[1]
            return kept_vector
        self._know(amount)
        vector = np.zeros(len(self.resources))
        for name, value in amount.amounts.items():
            vector[self.resources[name]] = value
        amount.vector = (self.resources, vector)
        return vector

    # -- tasks come, move and go ----------------------------------------------------------------------------------
    def occupy(self, task: Task, node: Node) -> None:
        """The task, with the status it has, takes its place on the node."""
        node.tasks[task.key] = task
        self._count(node.row, task, task.status, 1.0)
        if self.track_presence and not task.evicted:
            self._appear(node.row, task, 1.0)
            self._notice(node.row, task, 1.0)
        self._touch(node.row)

    def vacate(self, task: Task, node: Node) -> None:
        """The inverse of occupy, for the status the task has now."""
        del node.tasks[task.key]
        self._count(node.row, task, task.status, -1.0)
        if self.track_presence and not task.evicted:
            self._appear(node.row, task, -1.0)
            self._notice(node.row, task, -1.0)
        self._touch(node.row)

    def restate(self, task: Task, node: Node, status: Status, *, evicted: bool) -> None:
        """A task on a node changes its status; `task.status` and `task.evicted` are still the old ones."""
        self._count(node.row, task, task.status, -1.0)
        self._count(node.row, task, status, 1.0)
        if evicted != task.evicted and self.track_presence:
            self._appear(node.row, task, -1.0 if evicted else 1.0)
            self._notice(node.row, task, -1.0 if evicted else 1.0)
        self._touch(node.row)

    def _count(self, row: int, task: Task, status: Status, sign: float) -> None:
        change = self.vector(task.request)
        if sign < 0.0:
            change = -change
        if status == Status.PIPELINED:
            self.pipelined[:, row] += change
            self.future_idle[:, row] -= change
            return
        self.idle[:, row] -= change
        self.used[:, row] += change
        if status == Status.RELEASING:
            self.releasing[:, row] += change
        else:
            self.future_idle[:, row] -= change

    def _appear(self, row: int, task: Task, sign: float) -> None:
        if task.reprieved:
            return
        self.requested[:, row] += self.vector(task.request) * sign
        self.assumed[0, row] += task.shape.assumed_cpu * sign
        self.assumed[1, row] += task.shape.assumed_memory * sign
        self.pod_count[row] += sign

    def _notice(self, row: int, task: Task, sign: float) -> None:
        if task.shape.notable:
            if sign > 0.0:
                self.notable.setdefault(task.shape, {})[task.uid] = task
            else:
                alike = self.notable.get(task.shape, {})
                alike.pop(task.uid, None)
                if not alike:
                    self.notable.pop(task.shape, None)
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
