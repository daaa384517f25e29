"""Why a job may not enter its queue, although it could run: too much was let in before it, or its queue is full."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from volcano.api.why.reasons import Finding, finding, named
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.amounts_text import amount_text
from volcano.scheduler.explain.causes_queues import needed_of, not_now_cause, owner_name
from volcano.scheduler.explain.trials import attempt
from volcano.scheduler.explain.waiting_case import WaitingCase, subject_of, without_gates
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Status

MAX_LET_IN_TRIED: Final = 4
"""Of jobs that may keep others out for ever, the largest are tried."""


def not_let_in_cause(case: WaitingCase) -> Finding:
    """Only the way into the queue is closed: too much is let in already, or the queue's minimums exceed its limit."""
    found: list[Finding] = []

    def look(session: Session, job: Job) -> None:
        why = session.record.why.get(job.id)
        if why is None:
            found.append(finding("NotLetIn", queue=job.queue, message="it waits to enter its queue"))
        elif why.plugin == "overcommit":
            found.append(_overcommitted(session, job))
        elif why.plugin in ("proportion", "capacity"):
            found.append(not_now_cause(session, job))
        else:
            found.append(finding("NotLetIn", queue=job.queue, message=str(why)))

    attempt(case.snapshot, case.rules, case.subject, inspect=look)
    if found[0].reason == "TooMuchLetIn":
        return _let_in_for_ever(case, found[0]) or found[0]
    return found[0]


def _let_in_for_ever(case: WaitingCase, found: Finding) -> Finding | None:
    """Jobs that entered before it and can never run, if it could enter without them."""
    hopeless = jobs_let_in_for_ever(case)
    with left_out(case.snapshot, hopeless):
        if not hopeless or not attempt(case.snapshot, case.rules, case.subject).runs:
            return None
    facts = {name: found.facts[name] for name in ("resource", "limit")}
    kept = sum(job.min_resources[str(facts["resource"])] for job in hopeless if job.min_resources is not None)
    case.hopeless = hopeless
    return finding(
        "LetInForEver",
        names=named([owner_name(job) for job in hopeless]),
        asked=amount_text(kept, str(facts["resource"])),
        **facts,
    )


def jobs_let_in_for_ever(case: WaitingCase) -> list[Job]:
    """Of the largest jobs that were let in and of which nothing runs: those that an empty cluster would not start."""
    waiting = [
        job
        for job in case.snapshot.jobs.values()
        if job.group is not None
        and not job.is_pending
        and job.min_resources is not None
        and job.by_status[Status.PENDING]
        and not job.counts.ready
        and job.id != case.subject.id
    ]
    waiting.sort(key=lambda job: (-sum(job.min_resources.amounts.values()) if job.min_resources else 0.0, job.id))
    return [
        job
        for job in waiting[:MAX_LET_IN_TRIED]
        if not attempt(case.empty, case.rules, without_gates(subject_of(job)), let_in=True).runs
    ]


@contextmanager
def left_out(snapshot: Snapshot, jobs: Sequence[Job]) -> Iterator[None]:
    """The snapshot as if these jobs had never been submitted."""
    for job in jobs:
        del snapshot.jobs[job.id]
    try:
        yield
    finally:
        for job in jobs:
            snapshot.jobs[job.id] = job


def _overcommitted(session: Session, job: Job) -> Finding:
    needed = job.min_resources or needed_of(job)
    for plugin in session.ask.plugins("job_enqueueable"):
        room, asked = getattr(plugin, "room", None), getattr(plugin, "let_in", None)
        if room is None or asked is None:
            continue
        for name in needed.names:
            if asked[name] + needed[name] > room[name]:
                return finding(
                    "TooMuchLetIn",
                    asked=amount_text(asked[name], name),
                    resource=name,
                    limit=amount_text(room[name], name),
                    needed=amount_text(needed[name], name),
                )
    return finding("NotLetIn", queue=job.queue, message="jobs let in before it wait for as much as may wait")
