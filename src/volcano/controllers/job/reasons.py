"""Why a job waits, in its own status: the scheduler's reason on the PodGroup, put into words."""

from __future__ import annotations

from typing import Final

from volcano.api.scheduling import WHY_ANNOTATION, PodGroup, PodGroupCondition
from volcano.api.why import decode_why

LONGEST: Final = 1024
LONGEST_ANNOTATION: Final = 64 * 1024


def why_it_waits(group: PodGroup | None) -> tuple[str, str]:
    """Reason and message. The typed reason first, else the PodGroup's condition; nothing is nothing."""
    if group is None:
        return "", ""
    reason, message = _typed(group.annotations.get(WHY_ANNOTATION, ""))
    if not (reason or message):
        condition = waiting_condition(group)
        if condition is not None:
            reason, message = condition.reason or condition.type, condition.message
    return reason[:LONGEST], message[:LONGEST]


def waiting_condition(group: PodGroup) -> PodGroupCondition | None:
    """The latest condition that holds, unless it says that the gang is scheduled."""
    holding = [condition for condition in group.status.conditions if condition.status == "True"]
    if not holding:
        return None
    latest = max(holding, key=lambda condition: str(condition.last_transition_time or ""))
    return latest if latest.type != "Scheduled" else None


def _typed(text: str) -> tuple[str, str]:
    """The annotation as the scheduler writes it; what cannot be read says nothing."""
    why = decode_why(text) if text and len(text) <= LONGEST_ANNOTATION else None
    return (why.cause or why.stage, str(why)) if why is not None else ("", "")
