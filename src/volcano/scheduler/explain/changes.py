"""The smallest changes that let a job run: candidates in order of cost, each tried on the present snapshot."""

from __future__ import annotations

from typing import Final

from msgspec.structs import replace

from volcano.api.why.answers import LATER, ProposedChange
from volcano.api.why.reasons import Finding
from volcano.api.why.tiers import Tier
from volcano.scheduler.explain.causes_before import pre_scheduling_cause
from volcano.scheduler.explain.change_costs import LIMIT, REMEDY, ChangeCandidate
from volcano.scheduler.explain.command_lines import patch_command
from volcano.scheduler.explain.owners import ChangedOwner
from volcano.scheduler.explain.proposed_conditions import condition_candidates, queue_candidates
from volcano.scheduler.explain.proposed_names import name_candidates
from volcano.scheduler.explain.proposed_sizes import gang_candidates, replica_candidates, request_candidates
from volcano.scheduler.explain.remedies import ADMINISTRATOR, remedies_of
from volcano.scheduler.explain.trials import attempt
from volcano.scheduler.explain.waiting_case import WaitingCase, without_gates

MAX_CHANGES: Final = 5
MAX_TRIALS: Final = 24
UNTRIED: Final = frozenset({"BeingPlaced", "WillPreempt", "RoomPromised", "SchedulingGate", "TaskDependsOn"})
"""Reasons for which nothing needs to be changed."""
RAISED_BY_ADMINISTRATORS: Final = frozenset(
    {"QueueTooSmall", "QueueFull", "OthersGuaranteed", "QuotaTooSmall", "QuotaUsed", "QueueNotFound",
     "PriorityClassNotFound"}
)  # fmt: skip
"""Reasons for which a change of the job itself comes before the administrator's."""


def changes_for(case: WaitingCase, owner: ChangedOwner | None, found: Finding) -> list[ProposedChange]:
    """At most MAX_CHANGES, the cheapest first; each was tried and lets the job run now.

    Where no waiting helps and no change lets it run now, because others hold the room: those after which it waits for
    its turn, tried on the cluster as it is when everything else has ended.
    """
    if found.reason in UNTRIED or found.tier in (Tier.STARTING, Tier.NOTHING):
        return []
    changes = _tried(case, owner, found)
    if changes or found.tier.waiting_helps:
        return changes
    return [replace(change, starts=LATER) for change in _tried(case.eventually(), owner, found)]


def _tried(case: WaitingCase, owner: ChangedOwner | None, found: Finding) -> list[ProposedChange]:
    late = found.reason in RAISED_BY_ADMINISTRATORS
    proposals: list[tuple[int, ProposedChange]] = [
        (LIMIT if late and change.by == ADMINISTRATOR else REMEDY, change) for change in remedies_of(case, found)
    ]
    if owner is not None:
        for trial, candidate in enumerate(_candidates(case, owner)):
            if trial >= MAX_TRIALS or sum(cost <= candidate.cost for cost, _ in proposals) >= MAX_CHANGES:
                break
            if _lets_it_run(case, owner, candidate):
                proposals.append((candidate.cost, _proposed(owner, candidate)))
    proposals.sort(key=lambda item: item[0])
    return [change for _, change in proposals[:MAX_CHANGES]]


def _candidates(case: WaitingCase, owner: ChangedOwner) -> list[ChangeCandidate]:
    found = [
        *name_candidates(case, owner),
        *gang_candidates(case, owner),
        *request_candidates(case, owner),
        *condition_candidates(case, owner),
        *queue_candidates(case, owner),
        *replica_candidates(case, owner),
    ]
    unique = {(candidate.sentence, str(candidate.operations)): candidate for candidate in found}
    return sorted(unique.values(), key=lambda candidate: candidate.cost)


def _lets_it_run(case: WaitingCase, owner: ChangedOwner, candidate: ChangeCandidate) -> bool:
    """The owner with the patch, made anew: nothing before scheduling is in the way, and it starts."""
    subject = owner.patched(candidate.operations)
    if subject is None:
        return False
    if case.is_eventual:
        subject = without_gates(subject)
    changed = WaitingCase(case.snapshot, case.rules, subject, case.planned)
    before = pre_scheduling_cause(changed)
    if before is not None and not (case.is_eventual and before.tier.waiting_helps):
        return False
    return attempt(case.snapshot, case.rules, subject).runs


def _proposed(owner: ChangedOwner, candidate: ChangeCandidate) -> ProposedChange:
    action = owner.action_for(candidate.operations)
    command = patch_command(owner.object, owner.resource, candidate.operations, action)
    return ProposedChange(candidate.sentence, command, owner.object, action, candidate.operations)
