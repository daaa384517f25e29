"""overcommit: jobs enter their queues only while, all together, they stay within a multiple of the cluster."""

from __future__ import annotations

from volcano.api.jobs.why import ENQUEUE, Why
from volcano.scheduler.framework.answers import Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.record import Note
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Resources

FACTOR = 1.2


class Overcommit(Plugin):
    name = "overcommit"
    argument_names = frozenset({"overcommit-factor"})

    def open(self, session: Session) -> None:
        super().open(session)
        factor = self.arguments.number("overcommit-factor", FACTOR)
        self.room = session.total * (factor if factor >= 1.0 else FACTOR)
        used = session.table.used.sum(axis=1)
        self.room.subtract(Resources({name: float(used[place]) for name, place in session.table.resources.items()}))
        self.let_in = Resources()
        for sums in session.snapshot.ledger.queues.values():
            self.let_in.add(sums.minimum)

    def job_enqueueable(self, job: Job) -> Vote:
        if job.min_resources is None:
            return Vote.PERMIT
        over = (self.let_in + job.min_resources).exceeds_requested(self.room, job.min_resources)
        if not over:
            return Vote.PERMIT
        message = "resource in cluster is overused: " + ", ".join(f"overused {name}" for name in over)
        self.session.record.notes.append(Note(job.id, "Unschedulable", message))
        self.session.record.refuse(job.id, Why(ENQUEUE, "resource in cluster is overused", self.name, message))
        return Vote.REJECT

    def job_enqueued(self, job: Job) -> None:
        if job.min_resources is not None:
            self.let_in.add(job.without_gated(job.min_resources))
