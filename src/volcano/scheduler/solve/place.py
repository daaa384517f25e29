"""Place a list of tasks of one job, one after the other, until the job (or sub-job) is whole."""

from __future__ import annotations

from collections import Counter

import numpy as np

from volcano.api.jobs.why import FIT, QUOTA, Why
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.framework.answers import Code
from volcano.scheduler.framework.record import FitErrors
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.model import ROOT, Domain, Job, Node, Queue, Status, SubJob, Task
from volcano.scheduler.solve.backlog import TaskBacklog
from volcano.scheduler.solve.choose import node_for
from volcano.scheduler.solve.node_ranking import NodeRanking, NodeRankings


class Placement:
    """One attempt to place tasks of a sub-job within a domain."""

    def __init__(
        self, session: Session, job: Job, sub_job: SubJob, domain: Domain, rankings: NodeRankings | None = None
    ) -> None:
        self._session = session
        self._rankings = rankings
        self._job = job
        self._sub_job = sub_job
        self._queue: Queue = session.queues[job.queue]
        self._domain = domain
        self._within: Mask | None = None
        if domain.name != ROOT:
            self._within = session.domain_columns.mask_of(domain.name)
        self._seen_failing: dict[str, Mask] = {}  # by role; remembered for the attempt, as Volcano does
        self._remembers = session.config.arguments_of("allocate").flag("predicateErrorCacheEnable", True)
        self._mixed: frozenset[str] = frozenset()  # roles whose tasks differ: what refused one then refuses the next
        self._running_domain = sub_job.allocated_domain
        self.statement = Statement(session)
        self.reached = 0  # tasks that could be placed, whether or not that was enough

    def run(self, line: TaskBacklog) -> Statement | None:
        """Place tasks until whole. None (and nothing changed) when not even promises would make it whole."""
        if self._nodes_count() == 0:
            return None
        ask = self._session.ask
        if self._remembers:
            self._mixed = line.mixed
        while line:
            if self._sweep(line):
                if ask.sub_job_ready(self._job, self._sub_job):
                    break
                continue
            task = line.pop()
            goes_on = self._try(task, 1 + len(line))
            if not goes_on or (self._placed(task) and ask.sub_job_ready(self._job, self._sub_job)):
                break
        self.reached = len(self.statement)
        if ask.sub_job_ready(self._job, self._sub_job) or ask.sub_job_pipelined(self._job, self._sub_job):
            return self.statement
        self.statement.discard()
        return None

    @staticmethod
    def _placed(task: Task) -> bool:
        return task.status in (Status.ALLOCATED, Status.PIPELINED)

    def _nodes_count(self) -> int:
        return len(self._session.table) if self._within is None else int(self._within.sum())

    def _try(self, task: Task, expected: int) -> bool:
        """Place one task if possible; False when the rest need not be tried."""
        session, job = self._session, self._job
        if not session.ask.allocatable(self._queue, task):
            session.record.refuse(job.id, Why(QUOTA, f"queue {self._queue.name} may not hold more"))
            return True
        if task.is_gated:
            self._ask_for_admission(task)
            return True
        if task.role and session.record.has_failed(job.id, self._sub_job.id, task.role):
            skipped = f"Task {task.name} with role spec {task.role} has already predicated failed, skip"
            session.record.fit_errors.setdefault(job.id, {}).setdefault(task.uid, FitErrors(base=skipped))
            return True
        refusal = session.ask.pre_filter(task)
        if refusal is not None:
            self._note(task, FitErrors(self._nodes_count(), Counter({refusal.message: self._nodes_count()})))
            return self._continues()
        alike = task.role not in self._mixed
        ranking = self._rankings.of(task) if self._rankings is not None and alike else None
        if ranking is not None:
            if self._put_by_ranking(task, ranking, expected):
                return True
            self._note(task, self._fit_errors(task))
            return self._continues()
        feasible = self._feasible(task)
        if feasible is None:
            self._note(task, self._fit_errors(task))
            return self._continues()
        self._put(task, feasible)
        return True

    def _sweep(self, line: TaskBacklog) -> bool:
        """Place the next tasks, if they are alike, in one step; False, with nothing changed, when that is not possible.

        It places them where `_try` would place them one after the other.
        """
        session, job = self._session, self._job
        if len(line) < 2 or self._rankings is None or self._within is not None or self._sub_job.topology is not None:
            return False
        tasks = line.alike()
        if len(tasks) < 2 or job.has_policies or tasks[0].role in self._mixed:
            return False
        if session.record.has_failed(job.id, self._sub_job.id, tasks[0].role):
            return False
        number = session.alike.limit(job, tasks[0], len(tasks))
        ranking = self._rankings.of_all_alike(tasks[0]) if number else None
        rows = ranking.sweep(tasks[0], number, len(line), session.chance) if ranking is not None else []
        if ranking is None or not rows:
            return False
        self.statement.allocate_alike(job, tasks[: len(rows)], rows)
        ranking.swept()
        line.drop(len(rows))
        return True

    # -- nodes ---------------------------------------------------------------------------------------------------------
    def _feasible(self, task: Task) -> Mask | None:
        """The nodes that have (or will have) room and pass every filter; the nominated one alone if it does."""
        session = self._session
        filtered = session.nodes.filtered(task)
        passing: Mask = filtered.ok & session.nodes.room(task).future
        if self._within is not None:
            passing &= self._within
        row = session.table.index.get(task.nominated_node) if task.nominated_node else None
        if row is not None and passing[row]:
            alone: Mask = np.zeros(len(session.table), dtype=bool)
            alone[row] = True
            return alone
        if filtered.local and task.role in self._mixed and self._remembers:  # what a placement changes is asked anew
            failing = self._seen_failing.get(task.role)
            if failing is not None:
                passing &= ~failing
            self._seen_failing[task.role] = ~passing
        return passing if passing.any() else None

    def _put_by_ranking(self, task: Task, ranking: NodeRanking, expected: int) -> bool:
        """False when no node takes the task."""
        session = self._session
        ranking.refresh(task, expected, self._within)
        if self._sub_job.topology is not None:
            task.allocated_domain = self._running_domain
        found = ranking.choose(task, session.chance, self._within)
        if found is None:
            return False
        row, now = found
        node = session.table.nodes[row]
        if not now:
            objection = self.statement.pipeline(task, node)
        elif (objection := self.statement.allocate(task, node)) is None and task.status is Status.ALLOCATED:
            ranking.advance(row)
        if objection is None:
            self._come_near(node)
        return True

    def _put(self, task: Task, feasible: Mask) -> None:
        session = self._session
        if self._sub_job.topology is not None:
            task.allocated_domain = self._running_domain
        found = node_for(session, task, feasible)
        if found is None:
            return
        node, now = found
        objection = self.statement.allocate(task, node) if now else self.statement.pipeline(task, node)
        if objection is None:
            self._come_near(node)

    def _come_near(self, node: Node) -> None:
        """The tasks placed so far now lie in the lowest domain that also holds this node."""
        if self._sub_job.topology is not None:
            columns = self._session.domain_columns
            lowest = columns.domains[columns.lowest[node.row]].name
            self._running_domain = self._session.domains.common(lowest, self._running_domain)

    # -- when it does not fit ------------------------------------------------------------------------------------------
    def _fit_errors(self, task: Task) -> FitErrors:
        nodes = self._session.nodes
        fitting = nodes.room(task).future
        here = np.ones(len(self._session.table), dtype=bool) if self._within is None else self._within
        filtered = nodes.filtered(task)
        reasons = filtered.histogram(here & fitting)
        for (_, reason), rows in nodes.shortages(task).items():
            count = int((rows & here).sum())
            if count:
                reasons[reason] += count
        unresolvable = np.zeros(len(here), dtype=bool)
        for (code, _), rows in filtered.causes.items():
            if code == Code.UNRESOLVABLE:
                unresolvable |= rows & fitting & here
        domain = "" if self._domain.name == ROOT else self._domain.name
        return FitErrors(self._nodes_count(), reasons, domain=domain, unresolvable=unresolvable)

    def _note(self, task: Task, errors: FitErrors) -> None:
        record, job = self._session.record, self._job
        record.cannot_fit(job.id, task.uid, errors, sub_job=self._sub_job.id, role=task.role)
        cause = errors.reasons.most_common(1)[0][0] if errors.reasons else str(errors)
        placed = job.counts.ready + job.counts.waiting
        message = f"{placed} of {job.min_available} tasks fit"
        numbers = {"placed": float(placed), "needed": float(job.min_available)}
        record.why[job.id] = Why(FIT, cause, "", message, dict(errors.reasons), numbers)

    def _continues(self) -> bool:
        """After a failure: whether the rest could still make the job whole."""
        job, sub_job, record = self._job, self._sub_job, self._session.record
        if job.min_available == len(job.tasks) or sub_job.min_available >= len(sub_job.tasks):
            return False
        if job.has_policies:
            return True
        failed = {role for place, role in record.failed_roles.get(job.id, ()) if place == sub_job.id}
        if job.min_available < sum(job.role_minimums.values()):
            still_possible = sum(
                counts.by_status[Status.PENDING] for role, counts in job.roles.items() if role not in failed
            )
            return job.counts.ready + still_possible >= job.min_available
        return all(job.role_occupied(role) >= job.role_minimums.get(role, 0) for role in failed)

    def _ask_for_admission(self, task: Task) -> None:
        session = self._session
        if session.admits_by_gate and task.asks_for_queue_admission and not task.is_externally_gated:
            session.record.gates_to_remove.append(task.key)
