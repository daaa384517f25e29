"""A PodGroup's status and waiting reason as one patch, and how long the patch may be delayed."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from volcano.api.jobs.reservations import (
    RESERVATION_ANNOTATION,
    StartReservation,
    decode_reservation,
    encode_reservation,
)
from volcano.api.jobs.why import Why, encode_why
from volcano.api.meta import JSON
from volcano.api.scheduling import WHY_ANNOTATION, PodGroup, PodGroupCondition
from volcano.api.times import is_recent, timestamp
from volcano.scheduler.framework.decisions import GroupStatus
from volcano.scheduler.model import Job

AT_ONCE: Final = timedelta(0)
BATCHING_INTERVAL: Final = timedelta(seconds=1)
"""How long status changes that are not waited for are batched, so that a starting gang needs one write."""
POD_CREATION_TIME: Final = timedelta(seconds=2)
"""A gang younger than this is not reported as incomplete: its pods are still being created …"""
POD_CREATION_TIME_UNDER_LOAD: Final = timedelta(seconds=20)
"""… and neither is one younger than this while others' pods are being bound: the controller has many jobs to serve."""
INCOMPLETE: Final = ("NotEnoughTasks", "NotEnoughPodsOfTask")
MESSAGE_INTERVAL: Final = timedelta(seconds=10)
FOLLOWING: Final = ("Running", "Completed")
"""Phases that follow from the pods' own statuses. (Inqueue is urgent: a job's pods are only created then.)"""


def group_body(
    group: PodGroup,
    status: GroupStatus,
    before: Why | None,
    why: Why | None,
    now: datetime,
    reservation: StartReservation | None = None,
) -> JSON | None:
    """The merge patch from the PodGroup's current status to the wanted one; None when they are equal."""
    body: JSON = {}
    annotations: JSON = {}
    if why != before:
        annotations[WHY_ANNOTATION] = encode_why(why) if why is not None else None
    if reservation_differs(group, reservation):
        annotations[RESERVATION_ANNOTATION] = encode_reservation(reservation) if reservation is not None else None
    if annotations:
        body["metadata"] = {"annotations": annotations}
    changed: JSON = {}
    for name in ("phase", "running", "succeeded", "failed"):
        if getattr(group.status, name) != getattr(status, name):
            changed[name] = getattr(status, name)
    conditions = [_settled(group, condition, now) for condition in status.conditions]
    if [_said(c) for c in conditions] != [_said(c) for c in group.status.conditions]:
        changed["conditions"] = [_group_condition(condition) for condition in conditions]
    if changed:
        body["status"] = changed
    return body or None


def reservation_differs(group: PodGroup, reservation: StartReservation | None) -> bool:
    """Whether the PodGroup states another start than this, or one that cannot be decoded."""
    if reservation is None:
        return RESERVATION_ANNOTATION in group.annotations
    return not reservation.says_the_same(decode_reservation(group.annotations))


def is_being_made(job: Job, why: Why | None, now: datetime, patience: timedelta) -> bool:
    """Whether a gang only lacks pods that are still being created, which takes no longer than the patience."""
    if why is None or why.cause not in INCOMPLETE or job.group is None:
        return False
    moments = [job.group.metadata.creation_timestamp]
    moments += [task.pod.metadata.creation_timestamp for task in job.tasks.values()]
    return any(moment is not None and is_recent(moment, now, patience) for moment in moments)


def pause_before(
    group: PodGroup,
    status: GroupStatus,
    before: Why | None,
    why: Why | None,
    reservation: StartReservation | None = None,
) -> timedelta:
    """How long after the last write this one must come: not at all for changes that are waited for."""
    if (reservation is not None) != (RESERVATION_ANNOTATION in group.annotations):
        return AT_ONCE
    if (why is None) != (before is None) or (why is not None and why.is_news(before)):
        return AT_ONCE
    if group.status.phase != status.phase and status.phase not in FOLLOWING:
        return AT_ONCE
    counts = ("phase", "running", "succeeded", "failed")
    if any(getattr(group.status, name) != getattr(status, name) for name in counts):
        return BATCHING_INTERVAL
    stated = [(c.type, c.status, c.reason) for c in status.conditions]
    known = [(c.type, c.status, c.reason) for c in group.status.conditions]
    return BATCHING_INTERVAL if stated != known else MESSAGE_INTERVAL


def _settled(group: PodGroup, condition: PodGroupCondition, now: datetime) -> PodGroupCondition:
    """A condition that has not changed keeps its transition time."""
    for known in group.status.conditions:
        if known.type == condition.type and _said(known) == _said(condition):
            return known
    if condition.last_transition_time is not None:
        return condition
    return _with_time(condition, now)


def _with_time(condition: PodGroupCondition, now: datetime) -> PodGroupCondition:
    return PodGroupCondition(
        type=condition.type,
        status=condition.status,
        transition_id=condition.transition_id,
        last_transition_time=now,
        reason=condition.reason,
        message=condition.message,
    )


def _said(condition: PodGroupCondition) -> tuple[str, ...]:
    return condition.type, condition.status, condition.reason, condition.message


def _group_condition(condition: PodGroupCondition) -> JSON:
    body: JSON = {
        "type": condition.type,
        "status": condition.status,
        "transitionID": condition.transition_id,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.last_transition_time is not None:
        body["lastTransitionTime"] = timestamp(condition.last_transition_time)
    return {name: value for name, value in body.items() if value}
