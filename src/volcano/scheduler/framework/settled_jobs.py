"""Settled jobs: they wait for nothing, and have not changed since a cycle computed their status, which is reused."""

from __future__ import annotations

from collections.abc import Mapping

from volcano.scheduler.core.snapshot import Settled
from volcano.scheduler.framework.session import Session


def settle(session: Session, statuses: Mapping[str, object], counts: Mapping[str, Mapping[str, int]]) -> None:
    """Keep the status of jobs that wait for nothing and were not touched; drop jobs that no longer exist."""
    settled, jobs, waiting = session.snapshot.settled, session.jobs, {job.id for job in session.waiting}
    for id, version in session.open_versions.items():
        job = jobs[id]
        if job.version == version and id not in waiting:
            settled[id] = Settled(job, version, statuses[id], dict(counts[id]))
    if len(settled) > len(jobs):
        for id in [id for id in settled if id not in jobs]:
            del settled[id]
