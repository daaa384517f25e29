"""Network topology as a session uses it: tier names become numbers, and soft becomes hard at the highest tier.

The domain of a job is derived from the nodes of its tasks in every cycle. `Moves.restore` undoes both.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import ROOT, Job, Topology
from volcano.scheduler.model.status import ALLOCATED


def resolve_topology(session: Session) -> None:
    for job in session.waiting:
        if not job.needs_topology and not job.has_policies:
            continue
        session.moves.set_topology(job, _resolved(session, job.topology, top=_root_tier(session)))
        job_tier = job.topology.highest_tier if job.topology is not None else None
        for sub_job in job.sub_jobs.values():
            top = _root_tier(session) if job_tier is None else job_tier
            session.moves.set_topology(sub_job, _resolved(session, sub_job.topology, top=top))
        if session.domains.ready and job.needs_topology:
            _derive_domains(session, job)


def _root_tier(session: Session) -> int:
    return session.domains.by_name[ROOT].tier


def _resolved(session: Session, topology: Topology | None, *, top: int) -> Topology | None:
    if topology is None:
        return None
    if topology.highest_tier is None and topology.highest_tier_name:
        topology = replace(topology, highest_tier=session.domains.tier_named(topology.highest_tier_name))
    if topology.mode == "soft":
        return replace(topology, mode="hard", highest_tier=top)
    return topology


def _derive_domains(session: Session, job: Job) -> None:
    """Drop domains that no longer exist or hold no task; without one, take the lowest that holds all placed tasks."""
    for sub_job in job.sub_jobs.values():
        held = [task.node for task in sub_job.tasks.values() if task.status in ALLOCATED and task.node]
        if sub_job.allocated_domain not in session.domains.by_name or not held:
            sub_job.allocated_domain = ""
        if held and not sub_job.allocated_domain:
            sub_job.allocated_domain = _lowest_with(session, held)
    if job.allocated_domain not in session.domains.by_name or not job.allocated_count:
        job.allocated_domain = ""
    if not job.allocated_domain:
        common = ""
        for sub_job in job.sub_jobs.values():
            common = session.domains.common(common, sub_job.allocated_domain)
        job.allocated_domain = common


def _lowest_with(session: Session, nodes: list[str]) -> str:
    """The lowest domain that contains all these nodes; empty when none does, or when one of them is unknown."""
    index, columns = session.table.index, session.domain_columns
    rows = {index.get(name, -1) for name in nodes}
    if -1 in rows:
        return ""
    counts = np.zeros(len(columns.domains), dtype=np.intp)
    for row in rows:
        counts[columns.places_of(row)] += 1
    shared = np.flatnonzero(counts == len(rows))
    found = [columns.domains[place] for place in shared.tolist()]
    return min(found, key=lambda domain: (domain.tier, domain.name)).name if found else ""
