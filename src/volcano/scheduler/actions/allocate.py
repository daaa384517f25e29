"""allocate: give waiting jobs room, queue by queue, job by job, a gang at a time."""

from __future__ import annotations

from volcano.api.jobs.why import ENQUEUE, FIT, GANG, QUOTA, RESERVED, Why
from volcano.scheduler.core.heap import Heap
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import ROOT, Job, Queue
from volcano.scheduler.solve.backlog import JobBacklog
from volcano.scheduler.solve.domains import DomainSearch
from volcano.scheduler.solve.node_ranking import NodeRankings
from volcano.scheduler.solve.nomination import place_as_nominated
from volcano.scheduler.solve.place import Placement


def allocate(session: Session) -> None:
    Allocation(session).run()


class Allocation:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._queues = Heap[Queue](session.ask.queue_before)
        self._jobs: dict[str, Heap[Job]] = {}
        self._backlogs: dict[str, JobBacklog] = {}
        self._rankings = NodeRankings(session)
        for job in session.waiting:
            if self._may_be_placed(job):
                self._collect(job)

    def run(self) -> None:
        """Whose turn it is is asked anew after every job, for shares have changed."""
        session = self._session
        while self._queues:
            queue = self._queues.pop()
            jobs = self._jobs[queue.name]
            if session.ask.overused(queue):
                self._tell_overused(queue, jobs)
                continue
            if not jobs:
                continue
            job = jobs.pop()
            if self._may_start(job) and self._place(job):
                jobs.push(job)
            self._queues.push(queue)

    # -- who takes part ------------------------------------------------------------------------------------------------
    def _may_be_placed(self, job: Job) -> bool:
        session = self._session
        if job.is_pending:
            if session.is_enabled("enqueue"):
                session.record.refuse(job.id, Why(ENQUEUE, "waits to enter its queue"))
                return False
            session.moves.set_phase(job, "Inqueue")
        refusal = session.ask.job_valid(job)
        if refusal is not None:
            session.record.refuse(job.id, Why(GANG, refusal.reason, message=refusal.message))
            return False
        if not session.domains.ready and job.needs_topology:
            session.record.refuse(job.id, Why(FIT, "the hypernodes contradict each other", "", session.domains.problem))
            return False
        return True

    def _collect(self, job: Job) -> None:
        backlog = JobBacklog(self._session, job)
        if not backlog:
            return
        self._backlogs[job.id] = backlog
        if job.queue not in self._jobs:
            self._jobs[job.queue] = Heap(self._session.ask.job_before)
            self._queues.push(self._session.queues[job.queue])
        self._jobs[job.queue].push(job)

    def _tell_overused(self, queue: Queue, jobs: Heap[Job]) -> None:
        for job in jobs.items():
            self._session.record.refuse(job.id, Why(QUOTA, f"queue {queue.name} uses all it deserves"))

    def _may_start(self, job: Job) -> bool:
        refusal = self._session.ask.job_startable(job)
        if refusal is not None:
            self._session.record.refuse(job.id, Why(RESERVED, refusal.reason, message=refusal.message))
        return refusal is None

    # -- one turn ------------------------------------------------------------------------------------------------------
    def _place(self, job: Job) -> bool:
        """Whether the job has more to place and shall have another turn."""
        if job.has_hard_topology or job.has_policies:
            return self._place_in_domains(job)
        return self._place_anywhere(job)

    def _place_anywhere(self, job: Job) -> bool:
        session, backlog = self._session, self._backlogs[job.id]
        sub_job = job.sub_jobs[job.id]
        statement = None
        if sub_job.nominated_domain:
            statement = place_as_nominated(session, job, sub_job, backlog.line(sub_job))
        if statement is None:
            placement = Placement(session, job, sub_job, session.domains.by_name[ROOT], self._rankings)
            statement = placement.run(backlog.line(sub_job))
        # A result that is only promised stays applied but undecided: the room is kept for this cycle.
        if statement is None or not session.ask.job_ready(job):
            if statement is None:
                session.ask.job_not_placed(job)
            return False
        statement.commit()
        sub_job.nominated_domain = ""
        return bool(backlog.line(sub_job))

    def _place_in_domains(self, job: Job) -> bool:
        session = self._session
        found = DomainSearch(session, job, self._rankings).run(self._backlogs[job.id])
        if found is None:
            session.ask.job_not_placed(job)
            return False
        self._backlogs[job.id] = found.backlog
        if not session.ask.job_ready(job):
            return False
        found.statement.commit()
        found.keep_places(session, job)
        return bool(found.backlog)
