"""Reservations: whether a job would start now if no Reservation kept anything, and which window it would run into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace

from volcano.api.durations import format_duration
from volcano.api.times import timestamp
from volcano.api.why.reasons import Finding, finding
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.trials import TrialRules, TriedJob, attempt, opened, standing
from volcano.scheduler.framework.run_time_estimates import default_estimate


def reservation_cause(snapshot: Snapshot, rules: TrialRules, subject: TriedJob) -> Finding | None:
    """None when no Reservation is what the job waits for."""
    if not snapshot.cluster.reservations:
        return None
    with _nothing_kept(snapshot):
        if not attempt(snapshot, rules, subject).runs:
            return None
    with standing(snapshot, subject) as job, opened(snapshot, rules) as session:
        room = session.kept_room
        limiting = room.limiting(job) if room is not None else []
        if not limiting:
            return None
        first = limiting[0]
        return finding(
            "KeptByReservation",
            reservation=first.name,
            holder=first.reservation.holder,
            start=timestamp(first.window.start),
            end=timestamp(first.window.end),
            estimate=format_duration(job.expected_run_time(default_estimate(session.config))),
        )


@contextmanager
def _nothing_kept(snapshot: Snapshot) -> Iterator[None]:
    cluster = snapshot.cluster
    snapshot.cluster = replace(cluster, reservations={})
    try:
        yield
    finally:
        snapshot.cluster = cluster
