"""What each queue holds during a session."""

from __future__ import annotations

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Resources


def held_by_queues(session: Session) -> dict[str, Resources]:
    """What the jobs of each queue hold now: what they held when the session opened, with its changes.

    The amounts are not to be changed: those of queues of which this session changed nothing are the ledger's own.
    """
    ledger = session.snapshot.ledger
    held = {name: ledger.queues[name].allocated for name in session.queues if name in ledger.queues}
    changed: set[str] = set()
    for id in session.moves.touched_jobs & session.jobs.keys():
        job = session.jobs[id]
        if job.queue not in changed:
            changed.add(job.queue)
            held[job.queue] = held[job.queue].copy()
        held[job.queue].add(job.allocated).withdraw(ledger.allocated_of(id))
    return held
