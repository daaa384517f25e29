"""What a cycle recorded about waiting jobs, in the words of their explanations, where those are known.

Types, reasons and phases stay as Volcano's clients read them; only texts are replaced. One that begins with the count
of tasks (`2/3 tasks in gang unschedulable: `) keeps it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

import msgspec

from volcano.api.jobs.why import GANG, Why
from volcano.api.scheduling import PodGroupCondition
from volcano.api.why.reasons import Finding
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions, GroupStatus, PodNotice
from volcano.scheduler.framework.record import Note

COUNTED: Final = re.compile(r"^\d+/[1-9]\d* tasks in gang unschedulable: ")
WAITING_CONDITION: Final = "Unschedulable"
WAITING_PHASES: Final = ("Pending", "Inqueue")
NOT_ENOUGH_TASKS: Final = "NotEnoughTasks"
NOT_ENOUGH_RESOURCES: Final = "NotEnoughResources"


@dataclass(slots=True, frozen=True)
class ToldReasons:
    """`found`: by job. `asked`: waiting jobs about which is written; of others the reason is about to be found.

    None for `asked` means all jobs: there is nothing that finds reasons.
    """

    found: Mapping[str, Finding] = field(default_factory=dict)
    asked: frozenset[str] | None = None


def with_missing_pods(decisions: Decisions, snapshot: Snapshot) -> Decisions:
    """Jobs that were let in and whose pods do not exist wait too, though a cycle has nothing to try for them."""
    added = {
        id: Why(GANG, NOT_ENOUGH_TASKS, "gang", f"{len(job.tasks)} of {job.group.spec.min_member} pods exist")
        for id, status in decisions.groups.items()
        if status.phase in WAITING_PHASES
        and id not in decisions.why
        and (job := snapshot.jobs.get(id)) is not None
        and job.group is not None
        and len(job.tasks) < job.group.spec.min_member
    }
    return replace(decisions, why={**decisions.why, **added}) if added else decisions


def with_reasons(decisions: Decisions, told: ToldReasons, snapshot: Snapshot) -> Decisions:
    found = {job: told.found[job] for job in decisions.why if job in told.found}
    if not found:
        return decisions
    why = {
        job: msgspec.structs.replace(each, reason=found[job].reason, tier=str(found[job].tier), text=str(found[job]))
        if job in found
        else each
        for job, each in decisions.why.items()
    }
    groups = {
        job: _group(status, found[job], why[job], snapshot.uid) if job in found else status
        for job, status in decisions.groups.items()
    }
    pods = tuple(
        _notice(notice, str(found[notice.job])) if notice.job in found else notice for notice in decisions.pods
    )
    notes = tuple(_note(note, found.get(note.job)) for note in decisions.notes if not _is_repeated(note, found))
    return replace(decisions, why=why, groups=groups, pods=pods, notes=notes)


def _group(status: GroupStatus, found: Finding, why: Why, cycle: str) -> GroupStatus:
    text = str(found)
    if not any(condition.type == WAITING_CONDITION for condition in status.conditions):
        reason = NOT_ENOUGH_TASKS if why.cause == NOT_ENOUGH_TASKS else NOT_ENOUGH_RESOURCES
        added = PodGroupCondition(WAITING_CONDITION, "True", cycle, reason=reason, message=text)
        return replace(status, conditions=(*status.conditions, added))
    conditions = tuple(
        msgspec.structs.replace(condition, message=_counted(condition.message, text))
        if condition.type == WAITING_CONDITION and condition.status == "True"
        else condition
        for condition in status.conditions
    )
    return replace(status, conditions=conditions)


def _counted(message: str, text: str) -> str:
    count = COUNTED.match(message)
    return f"{count[0]}{text}" if count is not None else text


def _notice(notice: PodNotice, text: str) -> PodNotice:
    """A pod that has been found a node keeps being told which, after the reason why its job waits."""
    own = f"; {notice.message}" if notice.reason == "Schedulable" or notice.nominated_node else ""
    return replace(notice, message=f"{text}{own}")


def _note(note: Note, found: Finding | None) -> Note:
    if found is None or note.reason != WAITING_CONDITION:
        return note
    return replace(note, message=_counted(note.message, str(found)))


def _is_repeated(note: Note, found: Mapping[str, Finding]) -> bool:
    """A plugin's own words for a refusal, beside the warning that has the reason."""
    return note.job in found and note.reason == WAITING_CONDITION and note.type != "Warning"
