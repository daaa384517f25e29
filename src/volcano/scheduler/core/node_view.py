"""NodeView: the nodes a question is asked about. All of them, some rows, or rows with copies of the task added.

Every column a view gives has one entry per row of the view. With `copies`, the amounts are those the node would have
after that many more tasks of the asked shape were allocated to it; this is how one call answers for a whole gang.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from volcano.scheduler.core.labels import LabelColumns
from volcano.scheduler.core.node_table import Column, Mask, NodeTable, Rows
from volcano.scheduler.model import PODS, Node, Task


class AmountView:
    """One kind of amount: `nodes.used["cpu"]` is a column; a resource no node knows is a column of zeros."""

    __slots__ = ("_kind", "_sign", "_view")

    def __init__(self, view: NodeView, kind: str, sign: float) -> None:
        self._view, self._kind, self._sign = view, kind, sign

    def __getitem__(self, resource: str) -> Column:
        return self._view.amount(self._kind, resource, self._sign)

    @property
    def uncounted(self) -> frozenset[str]:
        """Resources that every node has enough of."""
        return self._view.table.uncounted


class NodeView:
    def __init__(
        self, table: NodeTable, rows: Rows | None = None, *, task: Task | None = None, copies: Rows | None = None
    ) -> None:
        self.table = table
        self._rows = rows
        self._task = task
        self._copies = copies
        self._amounts: dict[tuple[str, str], Column] = {}
        self._pairs: dict[tuple[str, int], Column] = {}

    @property
    def allocatable(self) -> AmountView:
        return AmountView(self, "allocatable", 0.0)

    @property
    def capacity(self) -> AmountView:
        return AmountView(self, "capacity", 0.0)

    @property
    def releasing(self) -> AmountView:
        return AmountView(self, "releasing", 0.0)

    @property
    def pipelined(self) -> AmountView:
        return AmountView(self, "pipelined", 0.0)

    @property
    def idle(self) -> AmountView:
        return AmountView(self, "idle", -1.0)

    @property
    def used(self) -> AmountView:
        return AmountView(self, "used", 1.0)

    @property
    def future_idle(self) -> AmountView:
        return AmountView(self, "future_idle", -1.0)

    @property
    def requested(self) -> AmountView:
        return AmountView(self, "requested", 1.0 if self.table.track_presence else 0.0)

    def __len__(self) -> int:
        return len(self.table) if self._rows is None else len(self._rows)

    @property
    def is_whole(self) -> bool:
        """All nodes as they are: row i of the view is row i of the table."""
        return self._rows is None and self._copies is None

    @cached_property
    def rows(self) -> Rows:
        """The table's row of each entry."""
        return np.arange(len(self.table), dtype=np.intp) if self._rows is None else self._rows

    @cached_property
    def copies(self) -> Rows:
        """How many tasks of the asked shape are imagined on each entry, beyond what is there."""
        return np.zeros(len(self), dtype=np.intp) if self._copies is None else self._copies

    # -- columns --------------------------------------------------------------------------------------------------
    def zeros(self) -> Column:
        return np.zeros(len(self))

    def all(self) -> Mask:
        return np.ones(len(self), dtype=bool)

    def none(self) -> Mask:
        return np.zeros(len(self), dtype=bool)

    def take(self, column: np.ndarray) -> np.ndarray:
        """A column over the whole table (for example a plugin's own), cut to the rows of this view."""
        return column if self._rows is None else column.take(self._rows, axis=0)

    def amount(self, kind: str, resource: str, sign: float) -> Column:
        """Shared between callers: not to be written to."""
        known = self._amounts.get((kind, resource))
        if known is None:
            place = self.table.resources.get(resource)
            if place is None:
                return self.zeros()
            column: Column = self.take(getattr(self.table, kind)[place])
            each = 0.0 if self._task is None else self._task.request[resource]
            known = self._amounts[(kind, resource)] = self._shifted(column, sign, each)
        return known

    def _shifted(self, column: Column, sign: float, each: float) -> Column:
        if self._copies is None or sign == 0.0 or each == 0.0:
            return column
        return column + self._copies * (each * sign)

    def cpu_and_memory(self, kind: str, *, more: int = 0) -> Column:
        """Two columns of one kind of amount (`allocatable`, `requested`, `used` or `assumed`) as one array.

        With `more` tasks of the asked shape than the view imagines. Shared between callers: not to be written to.
        """
        known = self._pairs.get((kind, more))
        if known is None:
            known = self._pairs[(kind, more)] = self._pair(kind, more)
        return known

    def _pair(self, kind: str, more: int) -> Column:
        columns: Column = getattr(self.table, kind)[:2]
        if self._rows is not None:
            columns = columns.take(self._rows, axis=1)
        if self._task is None or kind == "allocatable":
            return columns
        copies = self._copies
        if kind != "used" and not self.table.track_presence:
            copies = None  # what is imagined does not count there; the asked task does
        if copies is None and not more:
            return columns
        each = self._task.shape.presence[:2] if kind == "assumed" else self.table.vector(self._task.request)[:2]
        if copies is None:
            return columns + (each * more if more != 1 else each)[:, None]
        return columns + each[:, None] * (copies + more if more else copies)

    def all_have(self, resource: str) -> bool:
        """Whether every node of the table has some of the resource, so that nothing divides by zero."""
        return self.table.all_have(resource)

    @property
    def assumed_cpu(self) -> Column:
        """Kubernetes' non-zero requests of cpu."""
        return self._present(self.table.assumed[0], self._task.shape.assumed_cpu if self._task else 0.0)

    @property
    def assumed_memory(self) -> Column:
        return self._present(self.table.assumed[1], self._task.shape.assumed_memory if self._task else 0.0)

    @property
    def pod_count(self) -> Column:
        """Pods present, as Kubernetes counts them."""
        return self._present(self.table.pod_count, 1.0)

    def _present(self, column: Column, each: float) -> Column:
        cut: Column = self.take(column)
        return self._shifted(cut, 1.0, each) if self.table.track_presence else cut

    @property
    def max_pods(self) -> Column:
        return self.allocatable[PODS]

    @property
    def unschedulable(self) -> Mask:
        return self.take(self.table.unschedulable)

    # -- labels and taints: evaluate over the whole table, then `take` --------------------------------------------
    @property
    def labels(self) -> LabelColumns:
        """Over the whole table; cut the answer with `take`."""
        return self.table.labels

    @property
    def taint_group(self) -> Rows:
        """The place of each node's taints in `table.taint_sets`."""
        return self.take(self.table.taint_group)

    @cached_property
    def nodes(self) -> list[Node]:
        """The node of each entry, for code that works node by node."""
        everyone = self.table.nodes
        return everyone if self._rows is None else [everyone[row] for row in self._rows]
