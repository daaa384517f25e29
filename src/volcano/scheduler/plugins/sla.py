"""sla: a job that has waited long enough is admitted and served, whatever other plugins answer."""

from __future__ import annotations

from datetime import datetime, timedelta

from volcano.scheduler.framework.answers import Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job


class Sla(Plugin):
    name = "sla"
    argument_names = frozenset({"sla-waiting-time"})

    def open(self, session: Session) -> None:
        super().open(session)
        stated = self.arguments.duration("sla-waiting-time")
        self._waiting_time = stated if stated is not None and stated > timedelta(0) else None

    def job_order(self, one: Job, other: Job) -> int:
        mine, theirs = self._deadline(one), self._deadline(other)
        if mine is None or theirs is None:
            return (mine is None) - (theirs is None)
        return (mine > theirs) - (mine < theirs)

    def job_enqueueable(self, job: Job) -> Vote:
        return self._vote(job)

    def job_pipelined(self, job: Job) -> Vote:
        return self._vote(job)

    def _vote(self, job: Job) -> Vote:
        deadline = self._deadline(job)
        return Vote.ABSTAIN if deadline is None or self.session.now < deadline else Vote.PERMIT

    def _deadline(self, job: Job) -> datetime | None:
        limit = job.waiting_time or self._waiting_time
        if limit is None:
            return None
        try:
            return job.created + limit
        except OverflowError:
            return None
