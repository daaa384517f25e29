"""Why a job waits, in its own status: the scheduler's reason on the PodGroup, put into words."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from volcano.api.scheduling import WHY_ANNOTATION, PodGroup, PodGroupCondition

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
    if not text or len(text) > LONGEST_ANNOTATION:
        return "", ""
    try:
        why = msgspec.json.decode(text)
    except msgspec.DecodeError:
        return "", ""
    if isinstance(why, list):
        why = why[0] if why else {}
    if not isinstance(why, dict):
        return "", ""
    return _first(why, "reason", "cause", "stage"), _first(why, "message", "words")


def _first(why: dict[str, Any], *names: str) -> str:
    return next((str(why[name]) for name in names if isinstance(why.get(name), str) and why[name]), "")
