"""Lifecycle policies of jobs and tasks: which events, actions and exit codes may stand together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from volcano.api.batch import Action, BusEvent, LifecyclePolicy
from volcano.api.durations import DurationError, parse_duration

USER_EVENTS: Final = (
    BusEvent.ANY,
    BusEvent.POD_FAILED,
    BusEvent.POD_EVICTED,
    BusEvent.POD_PENDING,
    BusEvent.JOB_UNKNOWN,
    BusEvent.TASK_COMPLETED,
    BusEvent.TASK_FAILED,
    BusEvent.JOB_UPDATED,
)
USER_ACTIONS: Final = (
    Action.ABORT_JOB,
    Action.RESTART_JOB,
    Action.RESTART_TASK,
    Action.RESTART_POD,
    Action.RESTART_PARTITION,
    Action.TERMINATE_JOB,
    Action.COMPLETE_JOB,
    Action.RESUME_JOB,
)
CHOICES: Final = f"valid events are {', '.join(USER_EVENTS)}; valid actions are {', '.join(USER_ACTIONS)}"


def policy_problems(policies: Sequence[LifecyclePolicy]) -> list[str]:
    """The first violation in order, and whether `*` stands beside other events; empty when there is none."""
    events: set[str] = set()
    codes: set[int] = set()
    problems: list[str] = []
    for policy in policies:
        problem = _flaw(policy, events, codes)
        if problem:
            problems.append(problem)
            break
        events.update(_events(policy))
        if policy.exit_code is not None:
            codes.add(policy.exit_code)
    if BusEvent.ANY in events and len(events) > 1:
        problems.append("if there's * here, no other policy should be here")
    return problems


def _events(policy: LifecyclePolicy) -> list[str]:
    return [event for event in (policy.event, *policy.events) if event]


def _flaw(policy: LifecyclePolicy, seen: set[str], codes: set[int]) -> str:
    events = _events(policy)
    if events and policy.exit_code is not None:
        return "must not specify event and exitCode simultaneously"
    if not events and policy.exit_code is None:
        return "either event and exitCode should be specified"
    for event in events:
        if event not in USER_EVENTS:
            return f"invalid policy event: {event}"
        if policy.action not in USER_ACTIONS:
            return f"invalid policy action: {policy.action}"
        if event in seen:
            return f"duplicate event {event} across different policies"
    if policy.exit_code == 0:
        return "0 is not a valid error code"
    if policy.exit_code is not None and policy.exit_code in codes:
        return f"duplicate exitCode {policy.exit_code}"
    return _untimely(policy)


def _untimely(policy: LifecyclePolicy) -> str:
    try:
        if policy.timeout is not None:
            parse_duration(policy.timeout)
    except DurationError as error:
        return f"invalid policy timeout: {error}"
    return ""
