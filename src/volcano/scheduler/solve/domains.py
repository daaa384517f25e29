"""Place a job whose tasks must be close together: try domains gradient by gradient, keep the best.

Scores of domains do not depend on how a trial goes, so within a gradient the best is tried first and the first that
works is taken; only jobs of several sub-groups, whose sum of scores shows at the end, are tried in every domain.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Operation, Statement
from volcano.scheduler.model import ROOT, Domain, Job, SubJob
from volcano.scheduler.solve.backlog import JobBacklog, TaskBacklog
from volcano.scheduler.solve.bounds import bounds_of, needed
from volcano.scheduler.solve.node_ranking import NodeRankings
from volcano.scheduler.solve.nomination import place_as_nominated
from volcano.scheduler.solve.place import Placement
from volcano.scheduler.solve.tally import Tally

ALLOCATE = "Allocate"


@dataclass(slots=True)
class JobPlacement:
    """A way to place the job: operations (applied by `statement`), what remains, and which domains it lies in."""

    statement: Statement
    backlog: JobBacklog
    domain: str
    score: float = 0.0
    places: dict[str, str] = field(default_factory=dict)  # sub-job → domain

    def keep_places(self, session: Session, job: Job) -> None:
        """Keep the domains of the placement, so that later tasks are placed near it."""
        common = session.domains.common
        job.allocated_domain = common(job.allocated_domain, self.domain)
        session.record.allocated_domains[job.id] = job.allocated_domain
        for id, place in self.places.items():
            sub_job = job.sub_jobs[id]
            sub_job.allocated_domain = common(sub_job.allocated_domain, place)
            sub_job.nominated_domain = ""
            session.record.allocated_domains[id] = sub_job.allocated_domain


@dataclass(slots=True)
class SubJobPlacement:
    """A turn of one sub-job: what was done, what remains of it, and where."""

    statement: Statement
    line: TaskBacklog
    score: float = 0.0


class DomainSearch:
    """One turn of one job."""

    def __init__(self, session: Session, job: Job, rankings: NodeRankings | None = None) -> None:
        self._session = session
        self._job = job
        self._rankings = rankings
        self._failed: set[tuple[str, str]] = set()  # sub-job and domain, as long as nothing else is placed
        self._bounds: dict[str, Column] = {}  # sub-job → how many of its tasks each domain could hold at most
        self._tally = Tally()

    def run(self, backlog: JobBacklog) -> JobPlacement | None:
        """The best domain of the first gradient that has any, with the tasks placed; None with nothing changed."""
        root = self._session.domains.by_name[ROOT]
        self._bounds = bounds_of(self._session, self._job, backlog)
        for gradient in self._session.ask.domain_gradients(self._job, root, ALLOCATE):
            in_turn = self._can_go_in_turn(gradient)
            found = self._first(backlog, gradient) if in_turn else self._best(backlog, gradient)
            if found is not None:
                return found
        self._tally.explain(self._session, self._job)
        return None

    # -- the job ---------------------------------------------------------------------------------------------------
    def _can_go_in_turn(self, gradient: Sequence[Domain]) -> bool:
        """Whether a domain's score is the job's: with one sub-group, and nothing left to try further down."""
        if self._job.has_policies or not gradient:
            return False
        sub_job, root = self._job.sub_jobs[self._job.id], self._session.domains.by_name[ROOT]
        lowest = min(domain.tier for domain in gradient)
        return not any(
            domain.tier < lowest and (sub_job.id, domain.name) not in self._failed
            for tier in self._session.ask.domain_gradients(sub_job, root, ALLOCATE)
            for domain in tier
        )

    def _first(self, backlog: JobBacklog, gradient: Sequence[Domain]) -> JobPlacement | None:
        sub_job = self._job.sub_jobs[self._job.id]
        waiting = self._large_enough(sub_job, gradient)
        while waiting:
            best, _ = self._pick(sub_job, waiting)
            waiting.remove(best)
            found = self._enter(backlog.copy(), best)
            if found is not None:
                return found
        return None

    def _best(self, backlog: JobBacklog, gradient: Sequence[Domain]) -> JobPlacement | None:
        best: tuple[JobPlacement, tuple[Operation, ...]] | None = None
        for domain in gradient:
            found = self._enter(backlog.copy(), domain)
            if found is not None:
                operations = found.statement.operations
                found.statement.discard()
                if best is None or found.score > best[0].score:
                    best = found, operations
        if best is None:
            return None
        if best[0].statement.replay(best[1]) is not None:
            best[0].statement.discard()
            return None
        return best[0]

    def _enter(self, backlog: JobBacklog, domain: Domain) -> JobPlacement | None:
        """Place sub-job after sub-job within the domain; None, with nothing changed, when that does not make a job."""
        session, job = self._session, self._job
        session.record.forget_fit_errors(job.id)
        before = {id: sub_job.allocated_domain for id, sub_job in job.sub_jobs.items()}
        found = JobPlacement(Statement(session), backlog, domain.name)
        self._tally.enter(domain)
        while backlog:
            sub_job = backlog.pop()
            placed = self._place(sub_job, backlog.line(sub_job), domain, is_first=not len(found.statement))
            if placed is None:
                continue
            found.statement.merge(placed.statement)
            found.score += placed.score
            found.places[sub_job.id] = sub_job.allocated_domain
            backlog.lines[sub_job.id] = placed.line
            backlog.push(sub_job)
            self._tally.reach(domain, len(found.statement))
            if session.ask.job_ready(job):
                break
        for id, place in before.items():
            job.sub_jobs[id].allocated_domain = place
        if len(found.statement) and (session.ask.job_ready(job) or session.ask.job_pipelined(job)):
            return found
        found.statement.discard()
        return None

    # -- a sub-job -------------------------------------------------------------------------------------------------
    def _place(self, sub_job: SubJob, line: TaskBacklog, within: Domain, *, is_first: bool) -> SubJobPlacement | None:
        """In the best domain below the given one."""
        if sub_job.nominated_domain:
            copied = line.copy()
            statement = place_as_nominated(self._session, self._job, sub_job, copied)
            if statement is not None:
                return SubJobPlacement(statement, copied)
        for gradient in self._session.ask.domain_gradients(sub_job, within, ALLOCATE):
            untried = [d for d in gradient if not is_first or (sub_job.id, d.name) not in self._failed]
            waiting = self._large_enough(sub_job, untried)
            while waiting:
                domain, score = self._pick(sub_job, waiting)
                waiting.remove(domain)
                placed = self._try(sub_job, line.copy(), domain)
                if placed is not None:
                    placed.score = score
                    common = self._session.domains.common
                    sub_job.allocated_domain = common(sub_job.allocated_domain, domain.name)
                    return placed
                if is_first:
                    self._failed.add((sub_job.id, domain.name))
        return None

    def _large_enough(self, sub_job: SubJob, domains: Sequence[Domain]) -> list[Domain]:
        """Those that may have room for as many tasks as are needed, by what was free when the turn began."""
        least, most = needed(self._session, self._job, sub_job), self._bounds.get(sub_job.id)
        if most is None:
            return list(domains)
        place, large_enough = self._session.domain_columns.place, []
        for domain in domains:
            if most[place[domain.name]] >= least:
                large_enough.append(domain)
            else:
                self._tally.reach(domain, int(most[place[domain.name]]))
                self._failed.add((sub_job.id, domain.name))
        return large_enough

    def _try(self, sub_job: SubJob, line: TaskBacklog, domain: Domain) -> SubJobPlacement | None:
        self._session.record.forget_fit_errors(self._job.id, sub_job.id, sub_job.tasks)
        placement = Placement(self._session, self._job, sub_job, domain, self._rankings)
        statement = placement.run(line)
        self._tally.reach(domain, placement.reached)
        return SubJobPlacement(statement, line) if statement is not None and len(statement) else None

    def _pick(self, sub_job: SubJob, domains: Sequence[Domain]) -> tuple[Domain, float]:
        """The highest sum of the plugins' scores; chance decides between equals."""
        totals = self._session.ask.domain_score(sub_job, domains)
        top = max(totals.values())
        equals = [domain for domain in domains if totals[domain.name] == top]
        return equals[0 if len(equals) == 1 else self._session.chance.below(len(equals))], top
