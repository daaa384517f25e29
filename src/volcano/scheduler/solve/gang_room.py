"""Make room for a whole gang: in one domain after the other, evict bundle after bundle until all of it fits.

Victims leave and tasks are promised their places on trial; what turns out to be needed goes into a statement.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from volcano.api.jobs.why import FIT
from volcano.scheduler.core.fit import fits_row
from volcano.scheduler.core.node_table import Column, Mask, Rows
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Operation, Statement
from volcano.scheduler.model import ROOT, Domain, Job, Status, Task
from volcano.scheduler.model.resources import total
from volcano.scheduler.solve.backlog import JobBacklog
from volcano.scheduler.solve.bundles import Bundle, BundleOrder, bundles_of
from volcano.scheduler.solve.gang_promise import EVICT, Promise
from volcano.scheduler.solve.guarantees import within_guarantees

DEFAULT_MAX_DOMAINS: Final = 8


class Exposed:
    """Tasks that may be victims, with where they are and how much they hold; made once for many gangs."""

    def __init__(self, session: Session, tasks: Iterable[Task]) -> None:
        table = session.table
        self.tasks = [task for task in tasks if task.node in table.index]
        self.rows: Rows = np.array([table.index[task.node] for task in self.tasks], dtype=np.intp)
        vectors = [table.vector(task.request) for task in self.tasks]
        self._amounts: Column = np.array(vectors) if vectors else np.zeros((0, len(table.resources)))
        self._bundles: dict[tuple[str, str], tuple[int, list[Bundle]]] = {}
        self.failed_searches: dict[Hashable, tuple[int, int]] = {}  # → evictions so far, candidates

    def within(self, mask: Mask, statuses: tuple[Status, ...]) -> tuple[list[Task], Column]:
        """Those there that still have such a status, and how much they hold together."""
        places = [at for at in np.flatnonzero(mask[self.rows]).tolist() if self.tasks[at].status in statuses]
        return [self.tasks[at] for at in places], self._amounts[places].sum(axis=0)

    def bundles(self, domain: Domain, job: Job, members: list[Task]) -> list[Bundle]:
        """Of one job in one domain; they stay the same while the job does."""
        known = self._bundles.get((domain.name, job.id))
        if known is None or known[0] != job.version:
            known = self._bundles[domain.name, job.id] = job.version, bundles_of(job, members)
        return known[1]


@dataclass(slots=True, frozen=True)
class Purpose:
    """What distinguishes preempting from reclaiming."""

    action: str
    kind: str  # as plugins are asked
    statuses: tuple[Status, ...]
    between_queues: bool


class GangRoom:
    """On behalf of one job."""

    def __init__(self, session: Session, job: Job, purpose: Purpose, exposed: Exposed) -> None:
        self._session, self._job, self._purpose, self._exposed = session, job, purpose, exposed
        self._arguments = session.config.arguments_of(purpose.action)
        self._backlog = JobBacklog(session, job, gated=False)
        self.waiting = self._attempted()
        self._need = total(task.request for task in self.waiting)
        self._candidates = 0

    def _attempted(self) -> list[Task]:
        """The tasks room is sought for: all, or of a job that is whole already those of the next sub-group."""
        if not self._backlog:
            return []
        if self._session.ask.job_ready(self._job):
            return list(self._backlog.line(self._backlog.copy().pop()))
        return [task for line in self._backlog.lines.values() for task in line]

    def make(self, statement: Statement) -> bool:
        """Evict and promise into the statement; False, with nothing changed, when no domain can be freed."""
        alike, evictions = self._alike(), len(self._session.record.evictions)
        known = self._exposed.failed_searches.get(alike) if alike is not None else None
        if known is not None and known[0] == evictions:
            self._candidates = known[1]
        elif any(self._free(domain, statement) for domain in self._domains()):
            return True
        if alike is not None:
            self._exposed.failed_searches[alike] = evictions, self._candidates
        self._explain_failure()
        return False

    def _alike(self) -> Hashable:
        """A key that two gangs share if a failed search for one holds for the other; None for gangs with policies."""
        job = self._job
        if job.has_policies or job.role_minimums:
            return None
        shapes = Counter(task.shape.number for task in self.waiting)
        lacking = job.min_available - job.counts.ready_or_free - job.counts.waiting
        return frozenset(shapes.items()), lacking, job.topology, job.allocated_domain

    def _domains(self) -> list[Domain]:
        session, job = self._session, self._job
        root = session.domains.by_name[ROOT]
        most = self._arguments.integer("maxDomains", DEFAULT_MAX_DOMAINS)
        found = [d for tier in session.ask.domain_gradients(job, root, EVICT) for d in tier]
        if not found and not job.has_hard_topology:
            found = [root]
        return list(dict.fromkeys(found))[: most if most > 0 else DEFAULT_MAX_DOMAINS]

    # -- one domain ------------------------------------------------------------------------------------------------
    def _free(self, domain: Domain, statement: Statement) -> bool:
        session, table = self._session, self._session.table
        rows = session.domain_columns.rows_of(domain.name)
        tasks, held = self._exposed.within(session.domain_columns.mask_of(domain.name), self._purpose.statuses)
        self._candidates = max(self._candidates, len(tasks))
        room: Column = (table.idle[:, rows] + table.releasing[:, rows]).sum(axis=1)
        if not tasks or not fits_row(table, self._need, room + held):
            return False
        trial = Trial(session)
        promise = Promise(session, self._job, self._backlog)
        for bundle in self._allowed(domain, tasks):
            trial.evict(bundle)
            for task in bundle.tasks:
                room = room + table.vector(task.request)
            if fits_row(table, self._need, room) and promise.could_be_kept(domain, self.waiting):
                placed = promise.make(domain)
                if placed is not None:
                    self._settle(trial, placed, statement)
                    return True
        trial.undo()
        return False

    def _allowed(self, domain: Domain, tasks: Sequence[Task]) -> list[Bundle]:
        """Bundles in the order in which they go, as far as the plugins agree."""
        session, by_job = self._session, dict[str, list[Task]]()
        for task in tasks:
            by_job.setdefault(task.job_id, []).append(task)
        order = BundleOrder(session, self._job, self._need, between_queues=self._purpose.between_queues)
        of_jobs = (self._exposed.bundles(domain, session.jobs[id], members) for id, members in by_job.items())
        bundles = order.sorted(bundle for bundles in of_jobs for bundle in bundles)
        offered = [task for bundle in bundles for task in bundle.tasks]
        victims = session.ask.evictable(self._purpose.kind, self._job, offered)
        if self._purpose.between_queues:
            victims = within_guarantees(session, self._job.queue, victims)
        agreed = {task.uid for task in victims}
        if len(agreed) < len(offered):
            refused = {task.uid for task in offered if task.uid not in agreed}
            bundles = order.sorted(left for bundle in bundles if (left := bundle.without(refused)) is not None)
        takes_whole = self._arguments.flag("allowWholeBundle", True)
        return [bundle for bundle in bundles if takes_whole or bundle.is_spare]

    # -- what comes of it ------------------------------------------------------------------------------------------
    def _settle(self, trial: Trial, placed: Statement, statement: Statement) -> None:
        """Bring back spare tasks that need not be evicted; then repeat in the statement what was done on trial."""
        trial.spare(self._job, placed.operations)
        operations, victims = placed.operations, trial.victims
        placed.roll_back()
        trial.undo()
        beside = {operation.node: operation.task.key for operation in reversed(operations)}
        for victim in victims:
            preemptor = beside.get(victim.node, operations[0].task.key)
            statement.evict(victim, self._purpose.action, preemptor=preemptor)
        statement.replay(operations)

    def _explain_failure(self) -> None:
        why = self._session.record.why.get(self._job.id)
        if why is not None and why.stage == FIT:
            count = f"{self._candidates} {'task' if self._candidates == 1 else 'tasks'} that could be evicted"
            message = f"{why.message or why.cause}; {self._purpose.action}: {count} would not make room for all"
            self._session.record.why[self._job.id] = msgspec.structs.replace(why, message=message)


class Trial:
    """Evictions that leave no trace when they are undone."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._evicted: list[tuple[Task, Status, bool]] = []  # with the status before, and whether it can be spared

    @property
    def victims(self) -> list[Task]:
        return [task for task, _, _ in self._evicted]

    def evict(self, bundle: Bundle) -> None:
        for task in bundle.tasks:
            self._evicted.append((task, task.status, bundle.is_spare))
            self._session.moves.evict(task)

    def spare(self, job: Job, operations: Iterable[Operation]) -> None:
        """Bring back, the most important first, tasks that have room beside what was promised."""
        session, table = self._session, self._session.table
        if not all(session.nodes.is_local(task) for task in {o.task.shape: o.task for o in operations}.values()):
            return  # tasks that stay on other nodes could matter to them
        for entry in reversed(self._evicted.copy()):
            task, status, is_spare = entry
            room = table.future_idle[:, table.index[task.node]]
            if not is_spare or task.shape.notable or not fits_row(table, task.request, room):
                continue
            theirs = session.jobs[task.job_id]
            if theirs.queue != job.queue or session.ask.allocatable(session.queues[job.queue], task):
                session.moves.bring_back(task, status)
                self._evicted.remove(entry)

    def undo(self) -> None:
        for task, status, _ in reversed(self._evicted):
            self._session.moves.bring_back(task, status)
        self._evicted.clear()
