"""KeptRoom: what Reservations keep on which nodes in a cycle, and what is left there for jobs of others.

A reservation of nodes keeps them whole. One of amounts keeps them on nodes that are chosen in each cycle: those that
will have most room when the window begins, by the estimated ends of what runs, and of these the ones busy now. Jobs
of others that would still run at that time may take only what is left beside it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Final

import numpy as np

from volcano.api.quantity import QuantityError
from volcano.api.reservation import Reservation, ReservedWindow, windows
from volcano.scheduler.core.node_table import Column, Mask, NodeTable
from volcano.scheduler.core.releases import Releases, expected_end, releases, started_at
from volcano.scheduler.framework.run_time_estimates import default_estimate
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Queue, Task, resources_from

TOLERANCE: Final = 1e-6
MAX_RESERVATIONS: Final = 1000
"""So many are looked at in a cycle, by name; admission refuses more."""
WINDOWS_AHEAD: Final = 2
"""The present window and the one after it: a job that starts now may meet both. Of windows to come, one matters."""
MAX_QUEUE_DEPTH: Final = 64


@dataclass(slots=True, eq=False)
class KeptWindow:
    """One window of a reservation, in seconds after now; it has begun when `start` is not above zero."""

    reservation: Reservation
    window: ReservedWindow
    start: float
    end: float
    whole: Mask  # nodes of which nothing is left for others
    kept: Column  # resources × nodes
    spare: Column  # resources × nodes: what others may take and hold when the window begins
    total: Column  # by resource: what is kept, or used by the holder
    missing: Column  # by resource: what others are expected to use
    rows: Mask  # the nodes that keep it, as the cycle began

    @property
    def name(self) -> str:
        return self.reservation.name


@dataclass(slots=True, frozen=True, eq=False)
class Closure:
    """From `begin` to `end` (seconds after now) a job cannot start on what is kept: it would run into the window."""

    begin: float
    end: float
    kept: Column  # resources × nodes; more than a node has where it is kept whole


class KeptRoom:
    """Exists only while there are reservations with windows to come."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._default = default_estimate(session.config)
        self._lines: dict[str, frozenset[str]] = {}
        self._holders: dict[tuple[str, str], bool] = {}
        self._taken: dict[str, list[tuple[KeptWindow, Column, Column]]] = {}  # by task: what it took of kept and spare
        self.is_forecasting = False  # nodes are being asked about for a later time, so windows must not answer
        self.windows = self._windows()

    # -- who and when -------------------------------------------------------------------------------------------------
    def limiting(self, job: Job) -> list[KeptWindow]:
        """The windows of others that the job would run into if it started now."""
        seconds = self.estimate(job)
        return [each for each in self.windows if seconds > each.start + TOLERANCE and not self.is_holder(each, job)]

    def is_holder(self, window: KeptWindow, job: Job) -> bool:
        place = (window.name, job.id)
        known = self._holders.get(place)
        if known is None:
            known = self._holders[place] = self._is_held_by(window.reservation, job)
        return known

    def _is_held_by(self, reservation: Reservation, job: Job) -> bool:
        annotations = job.group.annotations if job.group is not None else {}
        return reservation.is_held_by(
            queues=self._line(job.queue), namespace=job.namespace, annotations=dict(annotations)
        )

    def estimate(self, job: Job) -> float:
        return job.expected_run_time(self._default).total_seconds()

    def closures(self, job: Job) -> list[Closure]:
        """When the job cannot start where; for reservations of waiting jobs."""
        seconds, table = self.estimate(job), self._session.table
        return [
            Closure(each.start - seconds, each.end, np.where(each.whole, table.allocatable + 1.0, each.kept))
            for each in self.windows
            if not self.is_holder(each, job)
        ]

    def boundaries(self) -> list[float]:
        """When windows begin and end, in seconds after now; only those that lie ahead."""
        moments = {moment for each in self.windows for moment in (each.start, each.end)}
        return sorted(moment for moment in moments if moment > 0.0)

    def _line(self, name: str) -> frozenset[str]:
        """The queue and those above it."""
        known = self._lines.get(name)
        if known is None:
            line: list[str] = []
            queue: Queue | None = self._session.queues.get(name)
            while queue is not None and queue.name not in line and len(line) < MAX_QUEUE_DEPTH:
                line.append(queue.name)
                queue = self._session.queues.get(queue.parent)
            known = self._lines[name] = frozenset(line)
        return known

    # -- what is kept where -------------------------------------------------------------------------------------------
    def _windows(self) -> list[KeptWindow]:
        now = self._session.now
        ahead: list[tuple[ReservedWindow, str, Reservation]] = []
        objects = self._session.snapshot.cluster.reservations
        for name in sorted(objects)[:MAX_RESERVATIONS]:
            found = windows(objects[name].spec, now, WINDOWS_AHEAD)
            has_begun = bool(found) and found[0].start <= now
            ahead += [(window, name, objects[name]) for window in found[: 2 if has_begun else 1]]
        built: list[KeptWindow] = []
        for _, _, reservation in ahead:
            self._wanted(reservation)  # a resource that no node has must be a column before others are measured
        for window, _, reservation in sorted(ahead, key=lambda each: each[:2]):
            kept = self._kept(reservation, window, built)
            if kept is not None:
                built.append(kept)
        return built

    def _kept(
        self, reservation: Reservation, window: ReservedWindow, earlier: Sequence[KeptWindow]
    ) -> KeptWindow | None:
        session, spec = self._session, reservation.spec
        table = session.table
        start = max((window.start - session.now).total_seconds(), 0.0)
        end = (window.end - session.now).total_seconds()
        chosen = _rows_named(table, spec.nodes)
        nothing = np.zeros_like(table.future_idle)
        if spec.resources is None:
            missing = (self._late_use(reservation, start, others=True) * chosen).sum(axis=1)
            kept = np.where(chosen, table.allocatable, 0.0)
            total = kept.sum(axis=1) - missing
            return KeptWindow(reservation, window, start, end, chosen, kept, nothing, total, missing, chosen)
        wanted = self._wanted(reservation)
        if wanted is None:
            return None
        held = (self._late_use(reservation, start, others=False) * chosen).sum(axis=1)
        room = self._room_at(start)
        for other in earlier:
            if other.window.overlaps(window):
                room = np.where(other.whole, 0.0, room - other.kept)
        open_nodes = chosen & ~table.unschedulable
        left = np.maximum(wanted - held, 0.0)
        kept = _distributed(left, np.where(open_nodes, np.maximum(room, 0.0), 0.0), table)
        missing = left - kept.sum(axis=1)
        rows: Mask = np.any(kept > TOLERANCE, axis=0)
        none, total = np.zeros(len(table), dtype=bool), np.maximum(wanted - missing, 0.0)
        return KeptWindow(reservation, window, start, end, none, kept, room - kept, total, missing, rows)

    def _wanted(self, reservation: Reservation) -> Column | None:
        """None when the amounts cannot be read, or nodes are kept whole."""
        stated = reservation.spec.resources
        try:
            wanted: Column | None = None if stated is None else self._session.table.vector(resources_from(stated))
        except QuantityError:
            return None
        return wanted

    def _room_at(self, seconds: float) -> Column:
        expected = self._releases
        room: Column = self._session.table.future_idle.copy()
        until = int(np.searchsorted(expected.seconds, seconds + TOLERANCE, side="right"))
        np.add.at(room.T, expected.rows[:until], expected.amounts[:until])
        return room

    def _late_use(self, reservation: Reservation, seconds: float, *, others: bool) -> Column:
        """What tasks of the holder, or of others, will still use at a time; resources × nodes."""
        expected = self._releases
        used: Column = np.zeros_like(self._session.table.future_idle)
        held = np.array([self._is_held_by(reservation, job) for job in expected.jobs], dtype=bool)
        if not len(expected):
            return used
        late = (expected.seconds > seconds + TOLERANCE) & (held[expected.owners] != others)
        np.add.at(used.T, expected.rows[late], expected.amounts[late])
        return used

    @cached_property
    def _releases(self) -> Releases:
        session = self._session
        return releases(session.jobs.values(), session.table, now=session.now, default=self._default)

    # -- what changes in the cycle ------------------------------------------------------------------------------------
    def take(self, task: Task, job: Job, row: int, sign: float) -> None:
        """A task was placed on a row (sign -1) or left it (1)."""
        before = self._taken.pop(task.uid, None) if sign > 0.0 else None
        if before is not None:
            for each, kept, spare in before:
                each.kept[:, row] -= kept
                each.spare[:, row] -= spare
            return
        request, now = self._session.table.vector(task.request), self._session.now
        estimate = timedelta(seconds=self.estimate(job))
        left = (expected_end(started_at(task, now), estimate, now) - now).total_seconds()
        for each in self.windows:
            if left <= each.start + TOLERANCE:
                continue
            of_kept = np.zeros_like(request)
            if self.is_holder(each, job):
                of_kept = np.maximum(sign * request, -each.kept[:, row])
            of_spare = sign * request - of_kept
            each.kept[:, row] += of_kept
            each.spare[:, row] += of_spare
            if sign < 0.0:
                self._taken.setdefault(task.uid, []).append((each, of_kept, of_spare))


def keep_room(session: Session) -> KeptRoom | None:
    """None when nothing is kept: then no question about it is asked."""
    if not session.snapshot.cluster.reservations:
        return None
    room = KeptRoom(session)
    return room if room.windows else None


def _rows_named(table: NodeTable, names: Sequence[str]) -> Mask:
    """All nodes when none is named; names of nodes that are gone count for nothing."""
    rows: Mask = np.full(len(table), not names)
    rows[[table.index[name] for name in names if name in table.index]] = True
    return rows


def _distributed(wanted: Column, room: Column, table: NodeTable) -> Column:
    """An amount over nodes: first those with most room, of equal ones those that are busy now."""
    asked = np.flatnonzero(wanted > TOLERANCE)
    kept = np.zeros_like(room)
    if not len(asked):
        return kept
    most = room[asked[0]]
    order = np.lexsort((np.arange(len(most)), table.idle[asked[0]], -most))
    for resource in asked:
        ordered = room[resource][order]
        before = np.concatenate(([0.0], np.cumsum(ordered)[:-1]))
        kept[resource][order] = np.clip(wanted[resource] - before, 0.0, ordered)
    return kept
