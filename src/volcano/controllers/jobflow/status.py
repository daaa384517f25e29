"""A flow's status: its phase, and each step's state with times and history."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.batch import Phase
from volcano.api.durations import DurationError, parse_duration
from volcano.api.flow import FlowCondition, FlowJobStatus, JobFlowState, JobFlowStatus, RunningHistory
from volcano.controllers.jobflow.steps import VANISHED, FlowStep

PENDING: Final = "Pending"
RUNNING: Final = "Running"
SUCCEED: Final = "Succeed"
FAILED: Final = "Failed"
TERMINATING: Final = "Terminating"

LISTS: Final = {
    Phase.PENDING: "pending_jobs",
    Phase.RUNNING: "running_jobs",
    Phase.FAILED: "failed_jobs",
    Phase.COMPLETED: "completed_jobs",
    Phase.TERMINATED: "terminated_jobs",
    VANISHED: "terminated_jobs",
    Phase.ABORTING: "un_know_jobs",
    Phase.ABORTED: "un_know_jobs",
    Phase.RESTARTING: "un_know_jobs",
    Phase.NONE: "un_know_jobs",
}
"""Under which list a Job is named; Completing and Terminating are in none."""

MAX_HISTORIES: Final = 64


def next_phase(phase: str, status: JobFlowStatus, steps: int) -> str:
    """The phase rule. Succeed and Failed are final."""
    ended_badly = bool(status.failed_jobs or status.terminated_jobs)
    match phase:
        case "" | "Pending":
            if (status.running_jobs or status.completed_jobs) and not status.failed_jobs:
                return RUNNING
            return FAILED if ended_badly else PENDING
        case "Running":
            if len(status.completed_jobs) == steps:
                return SUCCEED
            return FAILED if ended_badly else RUNNING
    return phase


def recounted(before: JobFlowStatus, steps: Iterable[FlowStep], now: datetime) -> JobFlowStatus:
    """The status as the Jobs have it now; the phase is as it was."""
    now = now.replace(microsecond=0)
    lists: dict[str, list[str]] = {name: [] for name in LISTS.values()}
    records: list[FlowJobStatus] = []
    conditions: dict[str, FlowCondition] = {}
    for step in steps:
        if not step.has_started:
            continue
        known = LISTS.get(step.phase)
        if known is not None:
            lists[known].append(step.job_name)
        records.append(_record(step, now))
        condition = _condition(step)
        if condition is not None:
            conditions[step.job_name] = condition
    return JobFlowStatus(**lists, job_status_list=records, conditions=conditions, state=before.state)


def with_phase(status: JobFlowStatus, phase: str) -> JobFlowStatus:
    return msgspec.structs.replace(status, state=JobFlowState(phase=phase))


def _record(step: FlowStep, now: datetime) -> FlowJobStatus:
    before = step.record if step.record is not None else FlowJobStatus(name=step.job_name)
    histories = _histories(before.running_histories, step.phase, now)
    if step.job is None:
        end = before.end_timestamp or now
        return msgspec.structs.replace(before, state=step.phase, end_timestamp=end, running_histories=histories)
    job = step.job
    start = job.metadata.creation_timestamp
    return FlowJobStatus(
        name=step.job_name,
        state=step.phase,
        start_timestamp=start,
        end_timestamp=_end(start, job.status.running_duration),
        restart_count=job.status.retry_count,
        running_histories=histories,
    )


def _end(start: datetime | None, duration: str | None) -> datetime | None:
    if start is None or not duration:
        return None
    try:
        return (start + parse_duration(duration)).replace(microsecond=0)
    except (DurationError, OverflowError):
        return None


def _histories(histories: list[RunningHistory], state: str, now: datetime) -> list[RunningHistory]:
    """A new entry for each new state; the one before ends where it begins."""
    if not state or (histories and histories[-1].state == state):
        return histories
    closed = [*histories[:-1], msgspec.structs.replace(histories[-1], end_timestamp=now)] if histories else []
    return [*closed, RunningHistory(state=state, start_timestamp=now)][-MAX_HISTORIES:]


def _condition(step: FlowStep) -> FlowCondition | None:
    if step.job is None:
        return msgspec.structs.replace(step.condition, phase=step.phase) if step.condition is not None else None
    status = step.job.status
    return FlowCondition(
        phase=step.phase,
        create_time=step.job.metadata.creation_timestamp,
        running_duration=status.running_duration,
        task_status_count=status.task_status_count,
    )
