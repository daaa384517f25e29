"""Does a request fit? For all rows at once, with the tolerance of model.resources."""

from __future__ import annotations

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask, NodeTable, Rows
from volcano.scheduler.core.node_view import AmountView
from volcano.scheduler.model import CPU, EPSILON, MEMORY, Resources


def fits_in(request: Resources, room: AmountView) -> Mask:
    """Rows where every dimension of the request fits into the room."""
    fitting: Mask | None = None
    for name, amount in request.amounts.items():
        if name in room.uncounted:
            continue
        enough: Mask = room[name] > amount - EPSILON
        fitting = enough if fitting is None else fitting & enough
    assert fitting is not None  # a request always has cpu and memory
    return fitting


class RequestThresholds:
    """A request as thresholds over the table's resources, to compare many rows with at once."""

    __slots__ = ("_least", "_table", "_vector")

    def __init__(self, table: NodeTable, request: Resources) -> None:
        self._table = table
        self._vector = table.vector(request)[:, None]
        self._least = np.full((len(self._vector), 1), -np.inf)
        for name, amount in request.amounts.items():
            if name not in table.uncounted:
                self._least[table.resources[name]] = amount - EPSILON

    def fits(self, room: Column, rows: Rows | None, copies: Rows | None) -> Mask:
        """Where it fits into the room, of all rows or of some, with that many copies of the request there already."""
        left = room if rows is None else room.take(rows, axis=1)
        if copies is not None:
            left = left - self._vector * copies
        fitting: Mask = np.logical_and.reduce(left > self._least, axis=0)
        return fitting


def short_of(request: Resources, room: AmountView) -> list[tuple[str, Mask]]:
    """For every dimension, the rows where it is the first that does not fit: cpu, memory, then by name."""
    found: list[tuple[str, Mask]] = []
    reported: Mask | None = None
    for name in (CPU, MEMORY, *sorted(request.scalars)):
        if name in room.uncounted:
            continue
        lacking: Mask = room[name] <= request[name] - EPSILON
        if reported is not None:
            lacking = lacking & ~reported
        reported = lacking if reported is None else reported | lacking
        if lacking.any():
            found.append((name, lacking))
    return found


def fits_row(table: NodeTable, request: Resources, room: Column) -> bool:
    """The same for one row, given as a vector over the table's resources."""
    for name, amount in request.amounts.items():
        if name in table.uncounted:
            continue
        place = table.resources.get(name)
        if amount - (room[place] if place is not None else 0.0) >= EPSILON:
            return False
    return True
