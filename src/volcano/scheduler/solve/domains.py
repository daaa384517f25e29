"""Place a job whose tasks must be close together: try domains gradient by gradient, keep the best."""

from __future__ import annotations

from dataclasses import dataclass

from volcano.scheduler.framework.session import Session
from volcano.scheduler.framework.statement import Operation, Statement
from volcano.scheduler.model import ROOT, Domain, Job, SubJob
from volcano.scheduler.solve.nomination import place_as_nominated
from volcano.scheduler.solve.place import Placement
from volcano.scheduler.solve.worksheet import TaskLine, Worksheet

ALLOCATE = "Allocate"


@dataclass(slots=True)
class Found:
    """A way to place the job: operations (applied by `statement`), what remains, and which domains it lies in."""

    statement: Statement
    worksheet: Worksheet
    domain: str
    places: dict[str, str]  # sub-job → domain

    def keep_places(self, session: Session, job: Job) -> None:
        """The job now has a home; later tasks are to be near it."""
        common = session.domains.common
        job.allocated_domain = common(job.allocated_domain, self.domain)
        session.record.allocated_domains[job.id] = job.allocated_domain
        for id, place in self.places.items():
            sub_job = job.sub_jobs[id]
            sub_job.allocated_domain = common(sub_job.allocated_domain, place)
            sub_job.nominated_domain = ""
            session.record.allocated_domains[id] = sub_job.allocated_domain


@dataclass(slots=True)
class Trial:
    operations: tuple[Operation, ...]
    worksheet: Worksheet
    score: float
    domain: str
    places: dict[str, str]


@dataclass(slots=True)
class SubTrial:
    operations: tuple[Operation, ...]
    line: TaskLine
    domain: str
    score: float


def gradients(session: Session, point: str, owner: Job | SubJob, within: Domain) -> list[list[Domain]]:
    """Domains to try, the better ones first; without a plugin, only the one given."""
    answers = session.ask.methods(point)
    if not answers:
        return [[within]]
    answer: list[list[Domain]] | None = answers[0](owner, within, ALLOCATE)
    return answer or []


def place_in_domains(session: Session, job: Job, worksheet: Worksheet) -> Found | None:
    root = session.domains.by_name[ROOT]
    for gradient in gradients(session, "domain_gradient_for_job", job, root):
        trials = [t for t in (_try_domain(session, job, worksheet.copy(), d) for d in gradient) if t is not None]
        if not trials:
            continue
        best = max(trials, key=lambda trial: trial.score)
        statement = Statement(session)
        if statement.replay(best.operations) is not None:
            statement.discard()
            return None
        return Found(statement, best.worksheet, best.domain, best.places)
    return None


def _try_domain(session: Session, job: Job, worksheet: Worksheet, domain: Domain) -> Trial | None:
    """Place sub-job after sub-job within the domain; nothing remains applied."""
    session.record.forget_fit_errors(job.id)
    before = {id: sub_job.allocated_domain for id, sub_job in job.sub_jobs.items()}
    whole, score, places = Statement(session), 0.0, dict[str, str]()
    while worksheet:
        sub_job = worksheet.pop()
        found = _place_sub_job(session, job, sub_job, worksheet.line(sub_job), domain)
        if found is None:
            continue
        statement, trial = found
        worksheet.lines[sub_job.id] = trial.line
        whole.merge(statement)
        score += trial.score
        places[sub_job.id] = trial.domain
        worksheet.push(sub_job)
        if session.ask.job_ready(job):
            break
    for id, place in before.items():
        job.sub_jobs[id].allocated_domain = place
    worthwhile = len(whole) and (session.ask.job_ready(job) or session.ask.job_pipelined(job))
    operations = whole.operations
    whole.discard()
    return Trial(operations, worksheet, score, domain.name, places) if worthwhile else None


def _place_sub_job(
    session: Session, job: Job, sub_job: SubJob, line: TaskLine, domain: Domain
) -> tuple[Statement, SubTrial] | None:
    """The best domain below the given one for this sub-job, applied."""
    if sub_job.nominated_domain:
        nominated = sub_job.nominated_domain
        mine = line.copy()
        statement = place_as_nominated(session, job, sub_job, mine)
        if statement is not None:
            return statement, SubTrial(statement.operations, mine, nominated, 0.0)
    for gradient in gradients(session, "domain_gradient_for_sub_job", sub_job, domain):
        trials = []
        for candidate in gradient:
            trial = _try_sub_job(session, job, sub_job, line.copy(), candidate)
            if trial is not None:
                trials.append(trial)
        if not trials:
            continue
        best = _best(session, sub_job, trials)
        statement = Statement(session)
        statement.replay(best.operations)
        sub_job.allocated_domain = session.domains.common(sub_job.allocated_domain, best.domain)
        return statement, best
    return None


def _try_sub_job(session: Session, job: Job, sub_job: SubJob, line: TaskLine, domain: Domain) -> SubTrial | None:
    session.record.forget_fit_errors(job.id, sub_job.id, frozenset(sub_job.tasks))
    statement = Placement(session, job, sub_job, domain).run(line)
    if statement is None or not len(statement):
        return None
    operations = statement.operations
    statement.discard()
    return SubTrial(operations, line, domain.name, 0.0)


def _best(session: Session, sub_job: SubJob, trials: list[SubTrial]) -> SubTrial:
    """The highest sum of the plugins' domain scores; chance decides between equals."""
    domains = [session.domains.by_name[trial.domain] for trial in trials]
    for method in session.ask.methods("domain_score"):
        scores: dict[str, float] = method(sub_job, domains)
        for trial in trials:
            trial.score += scores.get(trial.domain, 0.0)
    top = max(trial.score for trial in trials)
    equals = [trial for trial in trials if trial.score == top]
    return equals[0] if len(equals) == 1 else equals[session.chance.below(len(equals))]
