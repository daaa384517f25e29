"""Promise every waiting task of a gang a place within a domain, as it is after the evictions being tried."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import Domain, Job, SubJob, Task
from volcano.scheduler.solve.backlog import JobBacklog
from volcano.scheduler.solve.bounds import most_tasks
from volcano.scheduler.solve.choose import node_for

EVICT: Final = "Evict"


class Promise:
    def __init__(self, session: Session, job: Job, backlog: JobBacklog) -> None:
        self._session, self._job, self._backlog = session, job, backlog
        self._queue = session.queues[job.queue]

    def could_be_kept(self, domain: Domain, tasks: Sequence[Task]) -> bool:
        """False when the domain has too few places in any case; an upper bound, quickly computed."""
        shapes = {task.shape.number: task for task in tasks}
        most = most_tasks(self._session, list(shapes.values()))
        return bool(most[self._session.domain_columns.place[domain.name]] >= len(tasks))

    def make(self, domain: Domain) -> Statement | None:
        """Sub-job after sub-job until the job would be whole; None, with nothing changed, when one finds no place."""
        session, job = self._session, self._job
        was_ready, backlog, whole = session.ask.job_ready(job), self._backlog.copy(), Statement(session)
        while backlog:
            sub_job = backlog.pop()
            placed = self._place(sub_job, list(backlog.line(sub_job)), domain)
            if placed is None:
                break
            whole.merge(placed)
            if was_ready or session.ask.job_pipelined(job):
                break
        if len(whole) and placed is not None and session.ask.job_pipelined(job):
            return whole
        whole.roll_back()
        return None

    def _place(self, sub_job: SubJob, tasks: Sequence[Task], within: Domain) -> Statement | None:
        domains = [within]
        if sub_job.topology is not None and sub_job.topology.is_hard:
            tiers = self._session.ask.domain_gradients(sub_job, within, EVICT)
            domains = [domain for tier in tiers for domain in tier]
        for domain in domains:
            statement = self._fill(sub_job, tasks, domain)
            if statement is not None:
                return statement
        return None

    def _fill(self, sub_job: SubJob, tasks: Sequence[Task], domain: Domain) -> Statement | None:
        session, statement = self._session, Statement(self._session)
        mask = session.domain_columns.mask_of(domain.name)
        if all(self._promise(task, mask, statement) for task in tasks) and (
            session.ask.sub_job_ready(self._job, sub_job) or session.ask.sub_job_pipelined(self._job, sub_job)
        ):
            return statement
        statement.roll_back()
        return None

    def _promise(self, task: Task, mask: Mask, statement: Statement) -> bool:
        session = self._session
        if not session.ask.allocatable(self._queue, task) or session.ask.pre_filter(task) is not None:
            return False
        feasible = session.nodes.filtered(task).ok & session.nodes.room(task).future & mask & ~self._unresolvable(task)
        found = node_for(session, task, feasible)
        return found is not None and statement.pipeline(task, found[0], eviction_occurred=True) is None

    def _unresolvable(self, task: Task) -> Mask:
        errors = self._session.record.fit_errors.get(task.job_id, {}).get(task.uid)
        none = np.zeros(len(self._session.table), dtype=bool)
        return none if errors is None or errors.unresolvable is None else errors.unresolvable
