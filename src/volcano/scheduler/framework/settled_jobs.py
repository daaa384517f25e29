"""Settled jobs: they wait for nothing, and have not changed since a cycle computed their status, which is reused."""

from __future__ import annotations

from collections.abc import Mapping

from volcano.scheduler.core.snapshot import Settled
from volcano.scheduler.framework.session import Session


def settle(session: Session, statuses: Mapping[str, object], counts: Mapping[str, Mapping[str, int]]) -> None:
    """Keep the status of jobs that wait for nothing and were not touched; drop jobs that no longer exist."""
    snapshot, jobs, waiting = session.snapshot, session.jobs, {job.id for job in session.waiting}
    for id, version in session.open_versions.items():
        job = jobs[id]
        if job.version == version and id not in waiting:
            snapshot.settled[id] = known = Settled(job, version, statuses[id], dict(counts[id]))
            snapshot.settled_groups[id], snapshot.settled_counts[id] = known.status, known.counts
            snapshot.jobs.unsettled.discard(id)


def forget_gone(session: Session) -> None:
    """Drop what is kept of jobs that a session no longer sees: only jobs that changed can be such."""
    snapshot = session.snapshot
    for id in [id for id in snapshot.jobs.unsettled if id not in session.jobs]:
        snapshot.jobs.unsettled.discard(id)
        for kept in (snapshot.settled, snapshot.settled_groups, snapshot.settled_counts):
            kept.pop(id, None)
