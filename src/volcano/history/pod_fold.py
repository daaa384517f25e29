"""A pod as a watch delivered it becomes rows: where it ran and when, how it ended, who evicted it and why. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from volcano.api.batch import JOB_RETRY_KEY, TASK_INDEX_KEY, TASK_SPEC_KEY
from volcano.api.core import FINISHED_POD_PHASES, Pod
from volcano.api.history_records import DELETED, EvictionRecord, PastPod
from volcano.api.pods.evictions import eviction_of
from volcano.api.pods.requests import pod_requests
from volcano.api.scheduling import GROUP_NAME_ANNOTATION
from volcano.history.fold import (
    MAX_MESSAGE_CHARACTERS,
    MAX_REASON_CHARACTERS,
    Folded,
    ObservedPod,
    amount_fields,
    is_job,
)


def fold_pod(
    pod: Pod, known: ObservedPod | None, now: datetime, *, group_uid: str = "", gone: bool = False
) -> tuple[Folded, ObservedPod]:
    """`group_uid`: of the PodGroup that the pod names, once that is known."""
    owner, group = pod.controller, pod.annotations.get(GROUP_NAME_ANNOTATION, "")
    job_uid = owner.uid if is_job(owner) and owner is not None else group_uid if group else ""
    requests = known.requests if known is not None else pod_requests(pod.spec)
    bound = _bound(pod, known, now)
    ended = _ended(pod, known, now, gone=gone)
    eviction = eviction_of(pod) if bound is not None else None
    remembered = ObservedPod(
        bool(job_uid or group), pod.key, pod.spec.node_name, requests, bound, ended, eviction is not None
    )
    if not remembered.is_recorded:
        return Folded(), remembered
    record = PastPod(
        uid=pod.uid,
        job_uid=job_uid,
        group_name=group if not is_job(owner) else "",
        namespace=pod.namespace,
        name=pod.name,
        role=pod.annotations.get(TASK_SPEC_KEY, ""),
        index=_number(pod.labels.get(TASK_INDEX_KEY) or pod.annotations.get(TASK_INDEX_KEY, "")),
        attempt=_number(pod.annotations.get(JOB_RETRY_KEY, "")),
        node=pod.spec.node_name,
        phase=pod.status.phase if not gone or pod.is_finished else DELETED,
        **_outcome(pod),
        **amount_fields(requests),
        created=pod.metadata.creation_timestamp or now,
        bound=bound,
        started=_started(pod),
        ended=ended,
        gone=now if gone else None,
    )
    remembered.digest = hash(msgspec.json.encode(record))
    is_new = known is None or remembered.digest != known.digest
    folded = Folded(pod=record if is_new else None)
    if eviction is not None and not (known is not None and known.evicted):
        at = eviction.condition.last_transition_time if eviction.condition is not None else None
        folded.eviction = EvictionRecord(
            pod_uid=pod.uid, job_uid=job_uid, at=at or now, namespace=pod.namespace, pod=pod.name,
            node=pod.spec.node_name, by=eviction.by, reason=eviction.reason[:MAX_REASON_CHARACTERS],
            message=eviction.message, preemptor=eviction.preemptor,
        )  # fmt: skip
    return folded, remembered


def _bound(pod: Pod, known: ObservedPod | None, now: datetime) -> datetime | None:
    if not pod.spec.node_name:
        return None
    stated = next((c for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "True"), None)
    if stated is not None and stated.last_transition_time is not None:
        return stated.last_transition_time
    return known.bound if known is not None and known.bound is not None else pod.status.start_time or now


def _started(pod: Pod) -> datetime | None:
    moments = [
        moment
        for status in pod.status.container_statuses
        for state in (status.state, status.last_state)
        for moment in (
            state.running.started_at if state.running is not None else None,
            state.terminated.started_at if state.terminated is not None else None,
        )
        if moment is not None
    ]
    return min(moments, default=pod.status.start_time if pod.status.phase not in ("", "Pending") else None)


def _ended(pod: Pod, known: ObservedPod | None, now: datetime, *, gone: bool) -> datetime | None:
    if not gone and pod.status.phase not in FINISHED_POD_PHASES:
        return None
    ends = [status.state.terminated for status in pod.status.container_statuses]
    finished = [end.finished_at for end in ends if end is not None and end.finished_at is not None]
    if finished and len(finished) == len(ends):
        return max(finished)
    return known.ended if known is not None and known.ended is not None else now


def _outcome(pod: Pod) -> dict[str, Any]:
    """Reason, message, exit code and restarts: of the first container that failed, or else of the pod."""
    ends = [status.state.terminated for status in pod.status.container_statuses]
    failed = next((end for end in ends if end is not None and end.exit_code), None)
    ended = failed or next((end for end in ends if end is not None), None)
    reason = pod.status.reason or (failed.reason if failed is not None else "")
    message = pod.status.message or (failed.message if failed is not None else "")
    return {
        "reason": reason[:MAX_REASON_CHARACTERS],
        "message": message[:MAX_MESSAGE_CHARACTERS],
        "exit_code": ended.exit_code if ended is not None else None,
        "restarts": sum(status.restart_count for status in pod.status.container_statuses),
    }


def _number(text: str) -> int:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else 0
