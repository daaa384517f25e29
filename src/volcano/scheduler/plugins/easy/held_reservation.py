"""HeldReservation: the reservation of one job while a cycle lasts; HeldReservations: those that agree with each other.

They agree when at every time what they have taken until then fits beside what still runs. Three rules keep it so: a
reservation is made, moved or given other nodes only where it fits beside all others; a task that would still run at
the time of a reservation takes only what is left at that time; and what was promised is restored in the next cycle
before anything else is decided. So with exact estimates no promise is ever broken, however many there are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import numpy as np

from volcano.scheduler.core.node_table import Column, Rows
from volcano.scheduler.model import Job, Task
from volcano.scheduler.plugins.easy.earliest_fit import TOLERANCE, Demand, GangFit


class HeldReservation:
    def __init__(
        self,
        job: Job,
        demands: Sequence[Demand],
        fit: GangFit,
        *,
        free: Column,
        left: Column,
        after: Iterable[str],
        made: datetime,
        has_plan: bool,
    ) -> None:
        self.job, self.demands, self.after, self.made = job, demands, tuple(after), made
        self.seconds, self.counts = fit.seconds, fit.counts
        requests = np.array([demand.request for demand in demands])
        self.taken: Column = requests.T @ fit.counts  # resources × nodes
        self.free = free  # at its time, without regard to any reservation
        self.left = left - self.taken  # beside all reservations that begin by then, and this one
        self._plan: dict[int, Column] = {}  # by shape
        for at, demand in enumerate(demands if has_plan else ()):
            self._plan[demand.shape] = self._plan.get(demand.shape, 0.0) + fit.counts[at]

    @property
    def is_due(self) -> bool:
        return self.seconds <= TOLERANCE

    def planned(self, task: Task, rows: Rows) -> Column | None:
        """How many such tasks these nodes shall still take; None: any node may be chosen.

        A gang of several shapes must be placed as it was planned when its time has come: chosen one by one, the nodes
        of small tasks can leave no room for large ones.
        """
        if not self.is_due or task.shape.number not in self._plan:
            return None
        return self._plan[task.shape.number][rows]

    def follow(self, task: Task, row: int, sign: float) -> None:
        """A task of the job itself was placed (sign -1) or removed."""
        if task.shape.number in self._plan:
            self._plan[task.shape.number][row] += sign


class HeldReservations:
    """In the order in which room was sought, each with its scope: a queue, or the whole cluster."""

    def __init__(self) -> None:
        self._all: list[tuple[str, HeldReservation]] = []
        self._counted = 0  # reservations that `left` of each takes into account
        self.generation = 0  # grows with every change

    def __iter__(self) -> Iterator[HeldReservation]:
        """Those whose jobs have not started in this cycle."""
        return iter(self.waiting())

    def waiting(self) -> list[HeldReservation]:
        return [held for _, held in self._all if not held.job.is_ready]

    def of(self, job: Job) -> HeldReservation | None:
        return next((held for _, held in self._all if held.job is job), None)

    def others(self, job: Job) -> list[HeldReservation]:
        return [held for held in self.waiting() if held.job is not job]

    def count(self, scope: str) -> int:
        return sum(each == scope and not held.job.is_ready for each, held in self._all)

    def add(self, scope: str, held: HeldReservation) -> None:
        self._all.append((scope, held))
        self._changed()

    def remove(self, held: HeldReservation) -> None:
        self._all = [pair for pair in self._all if pair[1] is not held]
        self._changed()

    def replace(self, held: HeldReservation, by: HeldReservation) -> None:
        self._all = [(scope, by if each is held else each) for scope, each in self._all]
        self._changed()

    def _changed(self) -> None:
        self.generation += 1
        self._counted = -1

    def left_for(self, held: HeldReservation, job: Job, rows: Rows) -> Column:
        """What a job may take on these nodes and keep beyond the time of a reservation.

        Room that was set aside for a job is there for it; once it has started, it has the room that it really got.
        """
        self.count_again()
        left = held.left[:, rows]
        own = self.of(job)
        if own is not None and not job.is_ready and own.seconds <= held.seconds + TOLERANCE:
            left = left + own.taken[:, rows]
        return left

    def count_again(self) -> None:
        """What each leaves, if jobs have started or reservations have changed since."""
        waiting = self.waiting()
        if self._counted == len(waiting):
            return
        self._counted = len(waiting)
        ordered = sorted(waiting, key=lambda held: held.seconds)
        begun, taken = 0, np.zeros_like(ordered[0].free) if ordered else np.zeros(0)
        for held in ordered:
            while begun < len(ordered) and ordered[begun].seconds <= held.seconds + TOLERANCE:
                taken, begun = taken + ordered[begun].taken, begun + 1
            held.left = held.free - taken

    def take(self, job: Job, task: Task, row: int, amount: Column, left_seconds: float) -> bool:
        """A task was placed (amount below zero) or removed; whether a reservation could now use its node instead."""
        may_move = False
        for _, held in self._all:
            if held.job is job:
                held.follow(task, row, -1.0 if amount.sum() < 0.0 else 1.0)
            elif held.job.is_ready:
                continue
            elif left_seconds > held.seconds + TOLERANCE:
                held.free[:, row] += amount
                held.left[:, row] += amount
            else:
                may_move = True
        return may_move
