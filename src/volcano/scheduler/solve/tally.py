"""Tally: how many tasks of a job fitted in each domain that was tried, to explain why none of them took it."""

from __future__ import annotations

from volcano.api.jobs.why import FIT, Why
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import MEMORY, PODS, ROOT, Domain, Job, Resources, Status


class Tally:
    def __init__(self) -> None:
        self._tried: dict[int, set[str]] = {}  # by tier
        self._most: dict[int, tuple[int, str]] = {}  # by tier: tasks placed at best, and where

    def enter(self, domain: Domain) -> None:
        self._tried.setdefault(domain.tier, set()).add(domain.name)

    def reach(self, domain: Domain, placed: int) -> None:
        """`placed` more tasks of the job could be placed in this domain."""
        self.enter(domain)
        if placed > self._most.get(domain.tier, (-1, ""))[0]:
            self._most[domain.tier] = placed, domain.name

    def explain(self, session: Session, job: Job) -> None:
        """Set the job's reason, unless something other than room blocked it."""
        known = session.record.why.get(job.id)
        if known is not None and known.stage != FIT:
            return
        already = job.counts.ready + job.counts.waiting
        most = max((placed for placed, _ in self._most.values()), default=0)
        numbers = {"placed": float(already + most), "needed": float(job.min_available)}
        reports = [self._of_tier(session, job, tier, already, numbers) for tier in self._tiers(session, job)]
        cause = "no hypernode has room for the tasks together"
        message = f"{already + most} of {job.min_available} tasks fit together; {'; '.join(reports)}"
        counts = known.counts if known is not None else {}
        session.record.why[job.id] = Why(FIT, cause, "", message, counts, numbers)
        if not session.record.fit_errors.get(job.id):
            session.record.job_fit_errors[job.id] = message

    def _tiers(self, session: Session, job: Job) -> list[int]:
        """Those the job may use, as far as there are domains; the root is listed only if it was tried."""
        topologies = (job.topology, *(sub_job.topology for sub_job in job.sub_jobs.values()))
        stated = [t.highest_tier for t in topologies if t is not None and t.highest_tier is not None]
        top = session.domains.by_name[ROOT].tier
        return [t for t in session.domains.tiers if t in self._tried or (t != top and t <= max(stated, default=-1))]

    def _of_tier(self, session: Session, job: Job, tier: int, already: int, numbers: dict[str, float]) -> str:
        domains = session.domains.of_tier(tier)
        tried = self._tried.get(tier, set())
        placed, where = self._most.get(tier, (0, ""))
        numbers |= {f"tier {tier} hypernodes": float(len(domains)), f"tier {tier} tried": float(len(tried))}
        counted = f"tier {tier}: {len(domains)} {'hypernode' if len(domains) == 1 else 'hypernodes'}"
        if domains[0].name == ROOT:
            counted, where = "all nodes", ""
        if tried:
            numbers[f"tier {tier} placed"] = float(already + placed)
            small = len(domains) - len(tried)
            counted += f", {small} too full" if small else ""
            return f"{counted}, at most {already + placed} tasks{f' (in {where})' if where else ''}"
        return f"{counted}, {_shortage(session, job, tier)}"


def _shortage(session: Session, job: Job, tier: int) -> str:
    """What is asked for and the most that any domain of the tier has left of it: the scarcest resource."""
    asked = Resources()
    for task in job.by_status[Status.PENDING].values():
        asked.add(task.request)
    columns, table = session.domain_columns, session.table
    free = columns.sums(table.future_idle)[:, columns.tiers == tier]
    most = {name: float(free[table.resources[name]].max(initial=0.0)) for name in asked.names}
    scarce = min(most, key=lambda name: (most[name] / asked[name], name), default="")
    if not scarce or most[scarce] >= asked[scarce]:
        return "none with enough of everything"
    left, needed = _formatted(scarce, most[scarce]), _formatted(scarce, asked[scarce])
    return f"all too full: at most {left} of {needed} {scarce} free"


def _formatted(name: str, amount: float) -> str:
    if name == MEMORY:
        return f"{amount / 2**30:.4g}Gi"
    return f"{amount if name == PODS else amount / 1000:.6g}"
