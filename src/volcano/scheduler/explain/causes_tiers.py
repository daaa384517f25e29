"""Network topology: why no HyperNode of the allowed tiers holds a job, and the lowest tier at which one would."""

from __future__ import annotations

import msgspec
import numpy as np

from volcano.api.scheduling import NetworkTopology
from volcano.api.why.reasons import Finding, finding
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.amounts_text import amount_text
from volcano.scheduler.explain.causes_queues import needed_of
from volcano.scheduler.explain.trials import TrialRules, TriedJob, attempt, opened, standing
from volcano.scheduler.model import PODS, ROOT


def stated_tier(snapshot: Snapshot, subject: TriedJob) -> int | None:
    """The highest tier that the job, or the first of its sub-groups with a topology, allows."""
    spec = subject.group.spec
    for topology in (spec.network_topology, *(policy.network_topology for policy in spec.sub_group_policy)):
        if topology is not None and topology.mode != "soft":
            if topology.highest_tier_allowed is not None:
                return topology.highest_tier_allowed
            return snapshot.domains.tier_named(topology.highest_tier_name)
    return None


def at_tier(subject: TriedJob, tier: int) -> TriedJob:
    """The same job, allowed to lie in HyperNodes up to this tier."""

    def raised(topology: NetworkTopology | None) -> NetworkTopology | None:
        if topology is None or topology.mode == "soft":
            return topology
        return msgspec.structs.replace(topology, highest_tier_allowed=tier, highest_tier_name="")

    spec = subject.group.spec
    policies = [
        msgspec.structs.replace(policy, network_topology=raised(policy.network_topology))
        for policy in spec.sub_group_policy
    ]
    return subject.with_spec(network_topology=raised(spec.network_topology), sub_group_policy=policies)


def fitting_tier(snapshot: Snapshot, rules: TrialRules, subject: TriedJob) -> int | None:
    """The lowest tier above the stated one at which the job starts."""
    stated = stated_tier(snapshot, subject)
    for tier in snapshot.domains.tiers:
        if (stated is None or tier > stated) and attempt(snapshot, rules, at_tier(subject, tier), let_in=True).runs:
            return tier
    return None


def tier_too_small_cause(empty: Snapshot, rules: TrialRules, subject: TriedJob) -> Finding:
    tier = fitting_tier(empty, rules, subject)
    better = f"; at tier {tier} it fits" if tier is not None else "; without a tier it fits"
    stated = stated_tier(empty, subject)
    if stated is None or not any(each <= stated for each in empty.domains.tiers):
        return finding("NoHyperNode", tier=str(stated if stated is not None else "(unnamed)"), better=better)
    return _told("TierTooSmall", empty, rules, subject, stated, better)


def tier_full_cause(snapshot: Snapshot, rules: TrialRules, subject: TriedJob) -> Finding:
    return _told("TierFull", snapshot, rules, subject, stated_tier(snapshot, subject) or 0, "")


def _told(reason: str, snapshot: Snapshot, rules: TrialRules, subject: TriedJob, tier: int, better: str) -> Finding:
    """The scarcest resource: what is needed, and the most that any HyperNode of the tier has free."""
    with standing(snapshot, subject, let_in=True) as job, opened(snapshot, rules, job) as session:
        needed, columns, table = needed_of(job), session.domain_columns, session.table
        allowed = (columns.tiers <= tier) & np.array([domain.name != ROOT for domain in columns.domains], dtype=bool)
        free = columns.sums(np.maximum(table.future_idle, 0.0))[:, allowed]
        most = {name: float(free[table.resources[name]].max(initial=0.0)) for name in needed.names if name != PODS}
        scarce = min(most, key=lambda name: (most[name] / needed[name], name), default="cpu")
        return finding(
            reason,
            tier=tier,
            needed=amount_text(needed[scarce], scarce),
            resource=scarce,
            most=amount_text(most.get(scarce, 0.0), scarce),
            better=better,
        )
