"""The nodes on which evictions could make room for a task."""

from __future__ import annotations

import numpy as np

from volcano.scheduler.core.node_table import Mask
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


def could_hold(session: Session, task: Task) -> Mask:
    """Nodes that would have room if every task whose place is not already promised were evicted; an upper bound."""
    table = session.table
    possible: Mask = np.ones(len(table.nodes), dtype=bool)
    for name, asked in task.request.amounts.items():
        place = table.resources.get(name)
        if place is not None:
            possible &= table.idle[place] + table.used[place] - table.pipelined[place] > asked - EPSILON
        elif asked >= EPSILON:
            possible[:] = False  # no node has such a resource
    return possible
