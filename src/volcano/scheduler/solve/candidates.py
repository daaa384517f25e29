"""The nodes on which evictions could make room for a task."""

from __future__ import annotations

import numpy as np

from volcano.scheduler.core.node_table import Mask, Rows
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, Task


class Candidates:
    """Remembers, per role, nodes that no eviction could free, for its lifetime (an action's run, or one task)."""

    def __init__(self, session: Session, action: str) -> None:
        self._session = session
        self._remembers = session.config.arguments_of(action).flag("predicateErrorCacheEnable", True)
        self._not_freeable: dict[tuple[str, str], Mask] = {}

    def of(self, task: Task) -> Mask:
        session = self._session
        filtered = session.nodes.filtered(task)
        freeable: Mask = ~filtered.aborted
        if task.role and self._remembers and filtered.local:  # what a placement changes is asked anew
            key = (task.job_id, task.role)
            if key in self._not_freeable:
                freeable &= ~self._not_freeable[key]
            self._not_freeable[key] = ~freeable
        errors = session.record.fit_errors.get(task.job_id, {}).get(task.uid)
        if errors is not None and errors.unresolvable is not None:
            freeable &= ~errors.unresolvable
        return freeable


class CouldHold:
    """Nodes that would have room if every task whose place is not already promised were evicted; an upper bound.

    Kept for each shape, so that only nodes that changed are looked at again.
    """

    def __init__(self, session: Session) -> None:
        self._table = session.table
        self._kept: dict[int, tuple[int, Mask]] = {}  # by the shape's number: as of mark, the rows

    def of(self, task: Task) -> Mask:
        """Not to be written to."""
        table = self._table
        mark, possible = self._kept.get(task.shape.number, (table.mark, None))
        if possible is None:
            possible = self._look(task, slice(None))
        elif mark != table.mark:
            rows = table.changed_since(mark)
            possible[rows] = self._look(task, rows)
        self._kept[task.shape.number] = (table.mark, possible)
        return possible

    def _look(self, task: Task, rows: Rows | slice) -> Mask:
        table, possible = self._table, None
        for name, asked in task.request.amounts.items():
            place = table.resources.get(name)
            if place is None:
                if asked >= EPSILON:
                    return np.zeros(len(table.idle[0, rows]), dtype=bool)  # no node has such a resource
                continue
            most = table.idle[place, rows] + table.used[place, rows]
            most -= table.pipelined[place, rows]
            enough: Mask = most > asked - EPSILON
            possible = enough if possible is None else possible & enough
        assert possible is not None  # a request always has cpu and memory
        return possible
