"""Jobs nothing is to be decided about: what a cycle said of them holds until they change."""

from __future__ import annotations

from collections.abc import Mapping

from volcano.scheduler.core.snapshot import Settled
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Resources


def settle(session: Session, statuses: Mapping[str, object], counts: Mapping[str, Mapping[str, int]]) -> None:
    """Remember what was said of jobs that wait for nothing and were left alone; forget jobs that are gone."""
    settled, jobs, waiting = session.snapshot.settled, session.jobs, {job.id for job in session.waiting}
    for id, version in session.open_versions.items():
        job = jobs[id]
        if job.version == version and id not in waiting:
            settled[id] = Settled(job, version, statuses[id], dict(counts[id]))
    if len(settled) > len(jobs):
        for id in [id for id in settled if id not in jobs]:
            del settled[id]


def held_by_queues(session: Session) -> dict[str, Resources]:
    """What the jobs of each queue hold now: what they held when the session opened, and what it changed."""
    ledger = session.snapshot.ledger
    held = {name: ledger.queues[name].allocated.copy() for name in session.queues if name in ledger.queues}
    for id in session.moves.touched_jobs & session.jobs.keys():
        job = session.jobs[id]
        held[job.queue].add(job.allocated).withdraw(ledger.allocated_of(id))
    return held
