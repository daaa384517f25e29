"""What the queues hold and want, and how well the free room can be used, as time passes; kept while a policy runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from volcano.api import core
from volcano.api.quantity import parse_quantity
from volcano.simulator.jobs import WorkloadJob, amounts_of_role

Amounts = dict[str, float]
FIT_TOLERANCE: Final = 1e-6


@dataclass(slots=True)
class QueuePoint:
    """From this time on a queue holds and wants these amounts, until its next point."""

    seconds: float
    held: Amounts
    wanted: Amounts  # held, and requested by what waits


@dataclass(slots=True)
class Timelines:
    queues: dict[str, list[QueuePoint]] = field(default_factory=dict)
    capacity: list[tuple[float, Amounts]] = field(default_factory=list)
    unusable_seconds: dict[str, float] = field(default_factory=dict)  # free amount × seconds that no typical pod fits
    free_seconds: dict[str, float] = field(default_factory=dict)


class Recorder:
    """Follows pods and nodes of a run and writes a point where something has changed."""

    def __init__(self) -> None:
        self.timelines = Timelines()
        self._held: dict[str, Amounts] = {}
        self._wanted: dict[str, Amounts] = {}
        self._changed: set[str] = set()
        self._columns: dict[str, int] = {}
        self._rows: dict[str, int] = {}
        self._free = np.zeros((0, 0))
        self._capacity: dict[str, Amounts] = {}  # by node
        self._capacity_changed = False
        self._typical: Amounts = {}
        self._since = 0.0
        self._fragmented: tuple[Amounts, Amounts] | None = None

    # -- what there is ------------------------------------------------------------------------------------------------
    def expect(self, jobs: Iterable[WorkloadJob]) -> None:
        """The typical pod: for each resource the median of what pods that ask for it request."""
        asked: dict[str, Counter[float]] = {}
        for job in jobs:
            for role in job.roles:
                for name, amount in amounts_of_role(role).items():
                    asked.setdefault(name, Counter())[amount] += role.count
        self._typical = {name: _median(counts) for name, counts in asked.items()}

    def add_node(self, node: core.Node) -> None:
        offered = {name: float(parse_quantity(text)) for name, text in (node.status.allocatable or {}).items()}
        self._capacity[node.metadata.name] = offered
        row = self._rows.setdefault(node.metadata.name, len(self._rows))
        for name in offered:
            self._columns.setdefault(name, len(self._columns))
        grown = np.zeros((max(len(self._columns), len(self._free)), max(len(self._rows), self._free.shape[1])))
        grown[: self._free.shape[0], : self._free.shape[1]] = self._free
        self._free = grown
        for name, amount in offered.items():
            self._free[self._columns[name], row] = amount
        self._capacity_changed = True
        self._fragmented = None

    def remove_node(self, name: str) -> None:
        """Its pods must have left."""
        self._capacity.pop(name, None)
        if name in self._rows:
            self._free[:, self._rows[name]] = 0.0
        self._capacity_changed = True
        self._fragmented = None

    # -- what happens -------------------------------------------------------------------------------------------------
    def want(self, queue: str, amounts: Mapping[str, float], sign: float) -> None:
        self._change(self._wanted, queue, amounts, sign)

    def hold(self, queue: str, node: str, amounts: Mapping[str, float], sign: float) -> None:
        self._change(self._held, queue, amounts, sign)
        row = self._rows.get(node)
        if row is not None and node in self._capacity:
            for name, amount in amounts.items():
                if name in self._columns:
                    self._free[self._columns[name], row] -= sign * amount
        self._fragmented = None

    def _change(self, table: dict[str, Amounts], queue: str, amounts: Mapping[str, float], sign: float) -> None:
        held = table.setdefault(queue, {})
        for name, amount in amounts.items():
            held[name] = held.get(name, 0.0) + sign * amount
        self._changed.add(queue)

    def mark(self, now: float) -> None:
        """All that happened up to this moment has happened."""
        for queue in sorted(self._changed):
            points = self.timelines.queues.setdefault(queue, [])
            point = QueuePoint(now, dict(self._held.get(queue, {})), dict(self._wanted.get(queue, {})))
            if points and points[-1].seconds == now:
                points[-1] = point
            else:
                points.append(point)
        self._changed.clear()
        if self._capacity_changed:
            total: Amounts = {}
            for offered in self._capacity.values():
                for name, amount in offered.items():
                    total[name] = total.get(name, 0.0) + amount
            self.timelines.capacity.append((now, total))
            self._capacity_changed = False

    def pass_time(self, until: float) -> None:
        """Nothing changes until that moment: count how much of the free room is of use to a typical pod."""
        seconds, self._since = until - self._since, until
        if seconds <= 0.0 or not any(amounts.get("cpu", 0.0) for amounts in self._wanted.values()):
            return
        if self._fragmented is None:
            self._fragmented = self._unusable()
        free, unusable = self._fragmented
        for name, amount in free.items():
            self.timelines.free_seconds[name] = self.timelines.free_seconds.get(name, 0.0) + amount * seconds
            lost = unusable.get(name, 0.0) * seconds
            self.timelines.unusable_seconds[name] = self.timelines.unusable_seconds.get(name, 0.0) + lost

    def _unusable(self) -> tuple[Amounts, Amounts]:
        """What is free by resource, and of that what lies on nodes where no typical pod fits."""
        full = np.zeros(self._free.shape[1], dtype=bool)
        typical = {name: amount for name, amount in self._typical.items() if name in self._columns}
        for name, amount in typical.items():
            if name in ("cpu", "memory"):
                full |= self._free[self._columns[name]] < amount - FIT_TOLERANCE
        free, unusable = {}, {}
        for name, amount in typical.items():
            room = np.maximum(self._free[self._columns[name]], 0.0)
            short = full if name in ("cpu", "memory") else full | (room < amount - FIT_TOLERANCE)
            free[name], unusable[name] = float(room.sum()), float(room[short].sum())
        return free, unusable


def _median(counts: Counter[float]) -> float:
    ordered = sorted(counts.items())
    half, seen = (sum(counts.values()) + 1) // 2, 0
    for amount, count in ordered:
        seen += count
        if seen >= half:
            return amount
    return 0.0
