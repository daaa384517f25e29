"""Reserver: finds the earliest room for a job's gang, from what is free, what will be released, and what is promised.

What counts: requests, every filter that speaks of nodes, limits of queues, and the HyperNode that a gang must stay
in. A node that refuses a task now, but would not if others left it, counts once all of them have left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import numpy as np

from volcano.api.jobs.reservations import StartReservation
from volcano.scheduler.core.node_table import Column, Rows
from volcano.scheduler.core.releases import Releases, releases
from volcano.scheduler.framework.kept_room import Closure
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import ROOT, Job, Status, Task
from volcano.scheduler.plugins.easy.earliest_fit import (
    TOLERANCE,
    Demand,
    GangFit,
    PromisedRoom,
    RoomForecast,
    closed_at,
    earliest_fit,
)
from volcano.scheduler.plugins.easy.held_reservation import HeldReservation
from volcano.scheduler.plugins.easy.quota import quota_leaves, quota_opens


class Reserver:
    def __init__(self, session: Session, default: timedelta) -> None:
        self._session, self._default = session, default
        self._releases: Releases | None = None
        self.keeps_nodes = False  # rather than the nodes that leave most to jobs that start now
        self.is_asking = False  # nodes are being asked about for a reservation, so reservations must not answer

    def forget_releases(self) -> None:
        """What was just placed will be released, too."""
        self._releases = None

    def expected_releases(self) -> Releases:
        if self._releases is None:
            session = self._session
            self._releases = releases(session.jobs.values(), session.table, now=session.now, default=self._default)
            session.record.estimate_extensions.update(self._releases.extensions)
        return self._releases

    # -- a new reservation ----------------------------------------------------------------------------------------
    def reserve(
        self, job: Job, others: Iterable[HeldReservation], *, not_before: float = 0.0
    ) -> HeldReservation | None:
        """The earliest room that is left beside other reservations; None when there is no such time."""
        demands = self.demands(job)
        if not demands:
            return None
        expected, beside = self.expected_releases(), [PromisedRoom(each.seconds, each.taken) for each in others]
        fit = earliest_fit(
            self._session.table.future_idle,
            expected,
            demands,
            not_before=max(not_before, self._quota_opens(job, demands)),
            promised=beside,
            domains=self._domains(job),
            preferred=self._known(job),
            closures=self._closures(job),
        )
        if fit is None:
            return None
        return self._held(job, demands, fit, beside, self._session.now)

    def next_change(self) -> float:
        """When something is released next, or a Reservation's window begins or ends; infinite when never."""
        later = self.expected_releases().seconds
        later = later[later > 0.0]
        room = self._session.kept_room
        boundaries = room.boundaries() if room is not None else []
        return min((*map(float, later[:1]), *boundaries), default=float("inf"))

    # -- one that was promised before -----------------------------------------------------------------------------
    def restore(self, job: Job, others: Iterable[HeldReservation]) -> HeldReservation | None:
        """What the job was promised, at that time on those nodes; None when that is no longer possible."""
        promise, demands = job.reservation, self.demands(job)
        if promise is None or promise.made is None or not demands:
            return None
        counts = self._promised_counts(promise, demands)
        if counts is None:
            return None
        seconds = max((promise.start - self._session.now).total_seconds(), 0.0)
        opens = np.array([demand.opens for demand in demands])
        if np.any((counts > 0.0) & (opens > seconds + TOLERANCE)) or self._quota_opens(job, demands) > seconds:
            return None
        beside = [PromisedRoom(each.seconds, each.taken) for each in others]
        room = RoomForecast(self._session.table.future_idle, self.expected_releases(), beside).left_from(seconds)
        for kept in closed_at(self._closures(job), seconds):
            room = room - kept
        held = self._held(job, demands, GangFit(seconds, counts), beside, promise.made)
        fits = not np.any((held.taken > room + TOLERANCE) & (held.taken > 0.0))
        return held if fits else None

    def _promised_counts(self, promise: StartReservation, demands: Sequence[Demand]) -> Column | None:
        """Demands × nodes; None when not all of it was written, or the gang or the nodes have changed."""
        index, places = self._session.table.index, {demand.name: at for at, demand in enumerate(demands)}
        counts = np.zeros((len(demands), len(self._session.table)))
        if len(promise.nodes) != promise.node_count or len(promise.tasks) != promise.node_count:
            return None
        for node, tasks in zip(promise.nodes, promise.tasks, strict=True):
            for name, count in tasks.items():
                if node not in index or name not in places:
                    return None
                counts[places[name], index[node]] = count
        wanted = np.array([demand.count for demand in demands])
        return counts if np.array_equal(counts.sum(axis=1), wanted) else None

    # -- how it is kept and shown ---------------------------------------------------------------------------------
    def _held(
        self, job: Job, demands: Sequence[Demand], fit: GangFit, beside: Sequence[PromisedRoom], made: datetime
    ) -> HeldReservation:
        expected = self.expected_releases()
        forecast = RoomForecast(self._session.table.future_idle, expected, beside)
        after: list[str] = []
        if fit.seconds > 0.0:
            after = expected.jobs_before(fit.seconds, np.flatnonzero(fit.counts.any(axis=0)))
        # Tasks that the gang does not need may be placed before those it needs: then a plan would be in the way.
        pending = len(job.by_status[Status.PENDING])
        is_whole = sum(demand.count for demand in demands) == pending
        return HeldReservation(
            job,
            demands,
            fit,
            free=forecast.free_at(fit.seconds),
            left=forecast.left_at(fit.seconds),
            after=after,
            made=made,
            has_plan=is_whole and len(demands) > 1,
        )

    def written(self, held: HeldReservation, place: int) -> StartReservation:
        """The reservation as it is shown."""
        rows = np.flatnonzero(held.counts.any(axis=0))
        nodes = tuple(self._session.table.nodes[row].name for row in rows)
        columns = held.counts[:, rows].astype(int).T.tolist()
        names = [demand.name for demand in held.demands]
        tasks = tuple({name: count for name, count in zip(names, each, strict=True) if count} for each in columns)
        start = self._session.now + timedelta(seconds=held.seconds)
        return StartReservation(start, nodes, len(nodes), held.after, place, tasks, held.made)

    def _known(self, job: Job) -> Rows:
        """With several reservations, the nodes that the job was promised before: they leave the same to the others."""
        index = self._session.table.index
        names = job.reservation.nodes if job.reservation is not None and self.keeps_nodes else ()
        return np.array([index[name] for name in names if name in index], dtype=np.intp)

    # -- what is asked for ----------------------------------------------------------------------------------------
    def demands(self, job: Job) -> list[Demand]:
        """What the gang still lacks, one demand for each shape of task, the largest first."""
        by_shape: dict[tuple[str, int], list[Task]] = {}
        for task in _missing(job):
            by_shape.setdefault((task.role, task.shape.number), []).append(task)
        self.is_asking = True
        room = self._session.kept_room
        if room is not None:
            room.is_forecasting = True
        try:
            vector = self._session.table.vector
            found = [
                Demand(name, tasks[0].shape.number, len(tasks), vector(tasks[0].request), self._opens(tasks[0]))
                for name, tasks in _named(by_shape)
            ]
        finally:
            self.is_asking = False
            if room is not None:
                room.is_forecasting = False
        if len(found) < 2:
            return found
        most = np.maximum(self._session.table.allocatable.max(axis=1), 1.0)
        return sorted(found, key=lambda demand: -float((demand.request / most).max()))

    def _opens(self, task: Task) -> Column:
        filtered = self._session.nodes.filtered(task)
        if filtered.ok.all():
            return np.zeros(len(filtered.ok))
        empties = self.expected_releases().node_empties(len(filtered.ok))
        return np.where(filtered.ok, 0.0, np.where(filtered.aborted, np.inf, empties))

    def _quota_opens(self, job: Job, demands: Sequence[Demand]) -> float:
        wanted = sum(
            (demand.request * demand.count for demand in demands), np.zeros(len(self._session.table.resources))
        )
        return quota_opens(self._session, job, wanted, self.expected_releases())

    def quota_leaves(self, held: HeldReservation, others: Iterable[HeldReservation], task: Task, queue: str) -> bool:
        """Whether the limits of queues leave room for a task that still runs at the time of a reservation."""
        promised: dict[str, Column] = {}
        for each in others:
            if each.seconds <= held.seconds + TOLERANCE:
                promised[each.job.queue] = promised.get(each.job.queue, 0.0) + each.taken.sum(axis=1)
        return quota_leaves(self._session, queue, task.request, promised, held.seconds, self.expected_releases())

    def _closures(self, job: Job) -> Sequence[Closure]:
        room = self._session.kept_room
        return room.closures(job) if room is not None else ()

    def _domains(self, job: Job) -> list[Rows] | None:
        """The largest HyperNodes that may hold the gang; None when it may be anywhere."""
        if job.topology is None or not job.topology.is_hard or job.topology.highest_tier is None:
            return None
        domains, highest = self._session.domains.by_name, job.topology.highest_tier
        if domains[ROOT].tier <= highest:
            return None
        columns = self._session.domain_columns
        return [
            columns.rows_of(domain.name)
            for domain in domains.values()
            if domain.tier <= highest and domains[domain.parent or ROOT].tier > highest
        ]


def _missing(job: Job) -> list[Task]:
    """As many waiting tasks as the gang lacks, first those that its roles need."""
    count = max(job.min_available - job.counts.ready, 0)
    pending = job.with_status(Status.PENDING)
    if count >= len(pending) or not job.role_minimums:
        return pending[:count]
    lacks = {role: least - job.roles[role].ready for role, least in job.role_minimums.items() if role in job.roles}
    needed: list[Task] = []
    others: list[Task] = []
    for task in pending:
        is_needed = lacks.get(task.role, 0) > 0
        (needed if is_needed else others).append(task)
        if is_needed:
            lacks[task.role] -= 1
    return (needed + others)[:count]


def _named(by_shape: dict[tuple[str, int], list[Task]]) -> list[tuple[str, list[Task]]]:
    """Tasks of one shape under the name of their role, which is the same in every cycle."""
    by_role: dict[str, list[list[Task]]] = {}
    for (role, _), tasks in by_shape.items():
        by_role.setdefault(role, []).append(tasks)
    return [
        (role if len(shapes) == 1 else f"{role}/{number}", tasks)
        for role, shapes in by_role.items()
        for number, tasks in enumerate(sorted(shapes, key=lambda tasks: tasks[0].uid))
    ]
