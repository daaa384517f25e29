"""Loads: what the domains have, how much of it is taken, and how full a request makes them; columns over domains."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from volcano.scheduler.core.domain_columns import DomainColumns
from volcano.scheduler.core.node_table import Column, Mask, NodeTable
from volcano.scheduler.model import EPSILON, Resources, Task


class Loads:
    """As the session opened; only `used` follows what happens in it."""

    def __init__(self, columns: DomainColumns, table: NodeTable) -> None:
        self._columns, self._table = columns, table
        self._allocatable = columns.sums(table.allocatable)
        self._used = columns.sums(table.used)
        self._idle = columns.sums(table.idle)
        self._future_idle = columns.sums(table.future_idle)
        self.version = 0  # of `used`

    def change(self, task: Task, sign: float) -> None:
        """A task came to its node, or left it."""
        row = self._table.index.get(task.node)
        if row is not None:
            self._used[:, self._columns.places_of(row)] += sign * self._table.vector(task.request)[:, None]
            self.version += 1

    # -- questions, answered for every domain ----------------------------------------------------------------------
    def offers(self, amount: Resources) -> Mask:
        """Where this amount is free, or will be once all tasks being released have left."""
        return self._holds(amount, self._idle) | self._holds(amount, self._future_idle)

    def could_offer(self, amount: Resources) -> Mask:
        """Where this amount would be free on empty nodes."""
        return self._holds(amount, self._allocatable)

    def _holds(self, amount: Resources, room: Column) -> Mask:
        holds = np.ones(room.shape[1], dtype=bool)
        for name, asked in amount.amounts.items():
            place = self._table.resources.get(name)
            holds &= asked < EPSILON if place is None else room[place] > asked - EPSILON
        return holds

    def fullness(self, request: Resources, weights: Mapping[str, int]) -> Column:
        """Between 0 and 1, by the weights of what is asked for; 0 where the request does not fit."""
        chosen = {name: weights[name] for name in request.names if name in weights}
        total = sum(chosen.values())
        full = np.zeros(self._used.shape[1])
        if total <= 0:
            return full
        fits = np.ones(len(full), dtype=bool)
        for name, weight in chosen.items():
            place = self._table.resources.get(name)
            if place is None:
                return np.zeros(len(full))
            capacity, filled = self._allocatable[place], self._used[place] + request[name]
            fits &= filled <= capacity
            full += np.divide(weight * filled, capacity, out=np.zeros(len(full)), where=capacity > 0.0)
        return np.where(fits, full / total, 0.0)
