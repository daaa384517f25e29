"""Reserver: finds the earliest room for a job's gang, from what is free, what will be released, and what is promised.

What counts: requests, every filter that speaks of nodes, limits of queues, and the HyperNode that a gang must stay
in. A node that refuses a task now, but would not if others left it, counts once all of them have left.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta

import numpy as np

from volcano.api.jobs.reservations import StartReservation
from volcano.scheduler.core.node_table import Column, Rows
from volcano.scheduler.core.releases import Releases, releases
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import ROOT, Job, Status, Task
from volcano.scheduler.plugins.easy.earliest_fit import Demand, GangFit, earliest_fit
from volcano.scheduler.plugins.easy.quota import quota_opens


class HeldReservation:
    """A reservation while the session lasts: what it leaves to jobs that would still run at its time."""

    def __init__(self, job: Job, fit: GangFit, after: Iterable[str], beside: Iterable[HeldReservation]) -> None:
        self.job, self.after, self._beside = job, tuple(after), tuple(beside)
        self.seconds, self.taken, self.spare = fit.seconds, fit.taken, fit.spare

    def left_for(self, job: Job, rows: Rows) -> Column:
        """What a job may take on these nodes and keep beyond the time of this reservation.

        Room that was set aside for an earlier reservation is there for its own job; once that has started, it takes
        the room that it really got.
        """
        left = self.spare[:, rows]
        for other in self._beside:
            if other.job is job or other.job.is_ready:
                left = left + other.taken[:, rows]
        return left


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

    def reserve(
        self, job: Job, others: Iterable[HeldReservation], *, not_before: float = 0.0
    ) -> HeldReservation | None:
        """The earliest room that is left beside other reservations; None when there is no such time."""
        demands = self.demands(job)
        if not demands:
            return None
        table, expected, beside = self._session.table, self.expected_releases(), list(others)
        free = table.future_idle.copy()
        for other in beside:
            free = free - other.taken
        wanted = sum((demand.request * demand.count for demand in demands), np.zeros(len(table.resources)))
        opens = max(not_before, quota_opens(self._session, job, wanted, expected))
        room = self._session.kept_room
        fit = earliest_fit(
            free,
            expected,
            demands,
            not_before=opens,
            domains=self._domains(job),
            preferred=self._known(job),
            closures=room.closures(job) if room is not None else (),
        )
        if fit is None:
            return None
        after = expected.jobs_before(fit.seconds, np.flatnonzero(fit.taken.any(axis=0))) if fit.seconds > 0.0 else []
        return HeldReservation(job, fit, after, beside)

    def next_change(self) -> float:
        """When something is released next, or a Reservation's window begins or ends; infinite when never."""
        later = self.expected_releases().seconds
        later = later[later > 0.0]
        room = self._session.kept_room
        boundaries = room.boundaries() if room is not None else []
        return min((*map(float, later[:1]), *boundaries), default=float("inf"))

    def written(self, held: HeldReservation, place: int) -> StartReservation:
        """The reservation as it is shown."""
        nodes = tuple(self._session.table.nodes[row].name for row in np.flatnonzero(held.taken.any(axis=0)))
        start = self._session.now + timedelta(seconds=held.seconds)
        return StartReservation(start, nodes, len(nodes), held.after, place)

    def _known(self, job: Job) -> Rows:
        """With several reservations, the nodes that the job was promised before: they leave the same to the others."""
        index = self._session.table.index
        names = job.reservation.nodes if job.reservation is not None and self.keeps_nodes else ()
        return np.array([index[name] for name in names if name in index], dtype=np.intp)

    # -- what is asked for ----------------------------------------------------------------------------------------
    def demands(self, job: Job) -> list[Demand]:
        """What the gang still lacks, one demand for each shape of task."""
        missing = job.min_available - job.counts.ready
        by_shape: dict[int, list[Task]] = {}
        for task in job.with_status(Status.PENDING)[: max(missing, 0)]:
            by_shape.setdefault(task.shape.number, []).append(task)
        self.is_asking = True
        room = self._session.kept_room
        if room is not None:
            room.is_forecasting = True
        try:
            vector = self._session.table.vector
            return [Demand(len(tasks), vector(tasks[0].request), self._opens(tasks[0])) for tasks in by_shape.values()]
        finally:
            self.is_asking = False
            if room is not None:
                room.is_forecasting = False

    def _opens(self, task: Task) -> Column:
        filtered = self._session.nodes.filtered(task)
        if filtered.ok.all():
            return np.zeros(len(filtered.ok))
        empties = self.expected_releases().node_empties(len(filtered.ok))
        return np.where(filtered.ok, 0.0, np.where(filtered.aborted, np.inf, empties))

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
