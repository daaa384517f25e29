"""After the fact: how a Volcano Job ended, and what happened to it in order, from its conditions, events and pods."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Final

from volcano.api.batch import Phase
from volcano.api.core import Event, Pod
from volcano.api.meta import JSON
from volcano.api.times import timestamp_or_none
from volcano.api.why.after_placement import placed_cause
from volcano.api.why.reasons import Finding, finding

MAX_LINES: Final = 20
MAX_LINE_CHARACTERS: Final = 160
EVICTED: Final = re.compile(r"Pod is evicted, because of (?P<rule>[\w-]+)(?P<rest>.*)", re.DOTALL)
TOLD: Final = frozenset(
    {"Evict", "Evicted", "Preempted", "FailedCreate", "JobUpdate", "ExecuteAction", "CommandIssued", "RestartJob",
     "AbortJob", "TerminateJob", "CompleteJob", "ResumeJob", "RestartTask", "RestartPod", "RestartPartition",
     "JobRetry", "BackOff", "Killing", "TaintManagerEviction", "NodeNotReady", "OOMKilling"}
)  # fmt: skip
"""Events that belong to the story of a job; the others repeat what its conditions say."""


def ending_of(
    body: JSON, pods: Sequence[Pod], events: Sequence[Event], last_lines: Mapping[str, str]
) -> Finding | None:
    """How it ended; None while it has not."""
    status = body.get("status") or {}
    state, phase = status.get("state") or {}, (status.get("state") or {}).get("phase")
    total = sum(int(task.get("replicas") or 1) for task in (body.get("spec") or {}).get("tasks") or ())
    retries = int(status.get("retryCount") or 0)
    because = _because(state, pods, events, last_lines)
    if phase == Phase.COMPLETED:
        return finding("Completed", succeeded=int(status.get("succeeded") or 0), pods=total)
    if phase == Phase.FAILED:
        if retries:
            return finding("FailedAfterRetries", retries=retries, because=because)
        return finding("Failed", because=because)
    if phase == Phase.TERMINATED:
        return finding("Terminated", because=because)
    if phase == Phase.RESTARTING:
        most = int((body.get("spec") or {}).get("maxRetry") or 3)
        return finding("Restarting", retries=retries, most=most, because=because)
    return None


def _because(state: JSON, pods: Sequence[Pod], events: Sequence[Event], last_lines: Mapping[str, str]) -> str:
    """What a failed pod says, else the job's own message."""
    cause = placed_cause([pod for pod in pods if pod.status.phase == "Failed"], events, last_lines)
    if cause is not None:
        return str(cause)
    told = state.get("message") or state.get("reason")
    if told:
        return str(told)
    last = next((event.message for event in reversed(events) if event.reason in TOLD), "")
    return last or "nothing says why"


def story_of(body: JSON, pods: Sequence[Pod], events: Sequence[Event]) -> list[str]:
    """`10:00:01 Pending`, `10:00:04 Running`, `10:02:00 pod a-0 was evicted by preempt, to make room for b-0`.

    Of what happened in the same second, what pods did comes first, then what was decided, then the job's phase.
    """
    lines = [*_endings(pods), *_told_by(events), *_phases(body)]
    lines.sort(key=lambda line: line[0])
    return [f"{moment:%Y-%m-%d %H:%M:%S} {text}" for moment, text in lines[-MAX_LINES:]]


def _endings(pods: Sequence[Pod]) -> Iterator[tuple[datetime, str]]:
    for pod in pods:
        for status in pod.status.container_statuses:
            ended = status.state.terminated or status.last_state.terminated
            if ended is not None and ended.finished_at is not None and (ended.exit_code or ended.reason == "OOMKilled"):
                yield ended.finished_at, f"pod {pod.name}: {ended.reason or 'Error'}, exit code {ended.exit_code}"


def _told_by(events: Sequence[Event]) -> Iterator[tuple[datetime, str]]:
    for event in events:
        moment = event.last_timestamp or event.first_timestamp or event.metadata.creation_timestamp
        kind = (event.involved_object.kind or "").lower()
        if moment is None or event.reason not in TOLD or (kind == "podgroup" and event.reason == "Evict"):
            continue  # the pod's own event says more than its PodGroup's
        times = f" ({event.count} times)" if event.count > 1 else ""
        message = event.message.removeprefix("Start to execute action ")
        evicted = EVICTED.match(message)
        text = f" was evicted by {evicted['rule']}{evicted['rest']}" if evicted is not None else f": {message}"
        yield moment, f"{kind} {event.involved_object.name}{text}{times}"[:MAX_LINE_CHARACTERS]


def _phases(body: JSON) -> Iterator[tuple[datetime, str]]:
    for condition in (body.get("status") or {}).get("conditions") or ():
        moment = timestamp_or_none(str(condition.get("lastTransitionTime") or ""))
        if moment is not None and condition.get("status") not in ("True", "False"):
            yield moment, str(condition.get("status") or "")
