"""Why a job waits, for its status: the scheduler's typed reason on the PodGroup, or what its placed pods lack."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano.api.core import Pod
from volcano.api.jobs.why import decode_why
from volcano.api.scheduling import WHY_ANNOTATION, PodGroup, PodGroupCondition
from volcano.api.why.after_placement import placed_cause

MAX_MESSAGE_CHARACTERS: Final = 1024
MAX_ANNOTATION_CHARACTERS: Final = 64 * 1024


def why_it_waits(group: PodGroup | None) -> tuple[str, str]:
    """Reason and message. The typed reason first, else the PodGroup's condition, else two empty texts."""
    if group is None:
        return "", ""
    reason, message = _typed(group.annotations.get(WHY_ANNOTATION, ""))
    if not (reason or message):
        condition = waiting_condition(group)
        if condition is not None:
            reason, message = condition.reason or condition.type, condition.message
    return reason[:MAX_MESSAGE_CHARACTERS], message[:MAX_MESSAGE_CHARACTERS]


def why_placed_pods_wait(pods: Iterable[Pod]) -> tuple[str, str]:
    """Reason and message of what keeps pods that have a node from running and does not end by itself."""
    cause = placed_cause(pods)
    return ("", "") if cause is None or cause.tier.waiting_helps else (cause.reason, str(cause))


def waiting_condition(group: PodGroup) -> PodGroupCondition | None:
    """The latest condition that holds, unless it says that the gang is scheduled."""
    holding = [condition for condition in group.status.conditions if condition.status == "True"]
    if not holding:
        return None
    latest = max(holding, key=lambda condition: str(condition.last_transition_time or ""))
    return latest if latest.type != "Scheduled" else None


def _typed(text: str) -> tuple[str, str]:
    """The annotation as the scheduler writes it; an annotation that cannot be read gives empty texts."""
    why = decode_why(text) if text and len(text) <= MAX_ANNOTATION_CHARACTERS else None
    return (why.reason or why.cause or why.stage, str(why)) if why is not None else ("", "")
