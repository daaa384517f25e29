"""A job as a watch delivered it becomes rows: Volcano's and Kubernetes' Jobs, and PodGroups that no Job made. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any, Final

import msgspec

from volcano.api.batch import STOPPED_PHASES, Job, Phase
from volcano.api.core import BatchJob
from volcano.api.history_records import (
    BATCH_JOB,
    DELETED,
    ENDED_PHASES,
    VOLCANO_JOB,
    JobRecord,
    RoleRecord,
    StateRecord,
)
from volcano.api.jobs.estimates import ESTIMATE_KEY, SUBMITTER_KEY, stated_estimate
from volcano.api.meta import Key, Resource
from volcano.api.pods.amounts import added, amounts_of, times, to_wire
from volcano.api.pods.requests import pod_requests, read_resources
from volcano.api.scheduling import QUEUE_NAME_ANNOTATION, PodGroup
from volcano.api.times import timestamp_or_none
from volcano.history.fold import (
    MAX_MESSAGE_CHARACTERS,
    MAX_REASON_CHARACTERS,
    Folded,
    ObservedJob,
    amount_fields,
    is_job,
)

_BETWEEN_STATES: Final = timedelta(milliseconds=1)


def fold_job(
    job: Job, known: ObservedJob | None, now: datetime, *, gone: bool = False, after_gap: bool = False
) -> tuple[Folded, ObservedJob]:
    """`after_gap`: changes may have been missed, so phases that only the Job's conditions tell of are recorded too."""
    state, conditions = job.status.state, job.status.conditions
    entered = {each.status: each.last_transition_time for each in conditions if each.last_transition_time is not None}
    roles = [_role(task.name, task.replicas, task.template) for task in job.spec.tasks]
    stated = job.spec.running_estimate
    estimate = stated_estimate({**job.annotations, **({ESTIMATE_KEY: stated} if stated else {})})
    record = JobRecord(
        uid=job.uid,
        kind=VOLCANO_JOB,
        **_identity(job, now),
        queue=job.spec.queue,
        priority_class=job.spec.priority_class_name,
        scheduler=job.spec.scheduler_name,
        roles=roles,
        min_available=job.spec.min_available,
        **_totals(roles),
        estimate_seconds=estimate.total_seconds() if estimate is not None else None,
        phase=state.phase,
        reason=state.reason[:MAX_REASON_CHARACTERS],
        message=state.message[:MAX_MESSAGE_CHARACTERS],
        retries=job.status.retry_count,
        started=_first_run(job),
        ended=(state.last_transition_time or entered.get(state.phase) or now)
        if state.phase in STOPPED_PHASES
        else None,
    )
    missed = [(each.last_transition_time, each.status) for each in conditions if each.status != state.phase]
    if known is not None and not after_gap:
        missed = []
    return _folded(record, known, now, gone=gone, entered=state.last_transition_time, missed=missed)


def fold_batch_job(
    job: BatchJob, known: ObservedJob | None, now: datetime, *, gone: bool = False
) -> tuple[Folded, ObservedJob]:
    """Kubernetes' own Job."""
    spec, status, ending = job.spec or {}, job.status or {}, job.end_condition
    template = spec.get("template") or {}
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    roles = [_role("", int(spec.get("parallelism") or 1), template)]
    phase: str = Phase.RUNNING if status.get("active") else Phase.PENDING
    if ending is not None:
        phase = Phase.COMPLETED if ending.get("type") == "Complete" else Phase.FAILED
    ended = timestamp_or_none((ending or {}).get("lastTransitionTime")) or now
    record = JobRecord(
        uid=job.uid,
        kind=BATCH_JOB,
        **_identity(job, now),
        queue=str(annotations.get(QUEUE_NAME_ANNOTATION) or ""),
        priority_class=str((template.get("spec") or {}).get("priorityClassName") or ""),
        scheduler=str((template.get("spec") or {}).get("schedulerName") or ""),
        roles=roles,
        **_totals(roles),
        phase=phase,
        reason=str((ending or {}).get("reason") or "")[:MAX_REASON_CHARACTERS],
        message=str((ending or {}).get("message") or "")[:MAX_MESSAGE_CHARACTERS],
        started=timestamp_or_none(status.get("startTime")) if phase != Phase.PENDING else None,
        ended=ended if ending is not None else None,
    )
    return _folded(record, known, now, gone=gone)


def fold_group(
    group: PodGroup, known: ObservedJob | None, now: datetime, *, gone: bool = False
) -> tuple[Folded, ObservedJob] | None:
    """A PodGroup that no Job made; None for one that belongs to a Job, which is recorded itself."""
    owner = group.controller
    if is_job(owner):
        return None
    last = max(group.status.conditions, key=lambda each: each.last_transition_time or now, default=None)
    minimum = amounts_of(group.spec.min_resources)
    record = JobRecord(
        uid=group.uid,
        kind=owner.kind if owner is not None else "PodGroup",
        **_identity(group, now),
        queue=group.spec.queue,
        priority_class=group.spec.priority_class_name,
        pods=group.spec.min_member,
        min_available=group.spec.min_member,
        **amount_fields(minimum),
        phase=group.status.phase,
        reason=last.reason[:MAX_REASON_CHARACTERS] if last is not None else "",
        message=last.message[:MAX_MESSAGE_CHARACTERS] if last is not None else "",
        started=now if group.status.phase == Phase.RUNNING else None,
        ended=now if group.status.phase == Phase.COMPLETED else None,
    )
    folded, remembered = _folded(record, known, now, gone=gone)
    if known is None:
        folded.group = group.key
    return folded, remembered


def _folded(
    record: JobRecord,
    known: ObservedJob | None,
    now: datetime,
    *,
    gone: bool,
    entered: datetime | None = None,
    missed: Iterable[tuple[datetime | None, str]] = (),
) -> tuple[Folded, ObservedJob]:
    """Complete the record by what is known, and tell what is new. `entered`: when the present phase began."""
    record = _completed(record, known, now, gone=gone)
    before = known or ObservedJob(record.kind, Key(record.namespace, record.name))
    states: list[StateRecord] = []
    last = before.last_state
    for at, phase in sorted((at, phase) for at, phase in missed if at is not None):
        if last is None or at > last:
            states.append(StateRecord(job_uid=record.uid, at=at, phase=phase))
            last = at
    if record.phase and (known is None or (record.phase, record.reason) != (before.phase, before.reason)):
        is_new_phase = known is None or record.phase != before.phase
        began = record.ended if record.phase == DELETED else entered
        at = (began or now) if is_new_phase else now
        at = max(at, last + _BETWEEN_STATES) if last is not None else at
        states.append(
            StateRecord(job_uid=record.uid, at=at, phase=record.phase, reason=record.reason, message=record.message)
        )
        last = at
    digest = hash(msgspec.json.encode(record))
    remembered = ObservedJob(
        record.kind, before.key, record.phase, record.reason, record.started, record.ended, last, digest
    )
    return Folded(job=record if digest != before.digest else None, states=states), remembered


def _completed(record: JobRecord, known: ObservedJob | None, now: datetime, *, gone: bool) -> JobRecord:
    started, ended = record.started, record.ended
    if known is not None:
        started = known.started or started
        ended = known.ended if known.phase == record.phase and known.ended is not None and ended is not None else ended
    record = msgspec.structs.replace(record, started=started, ended=ended)
    if not gone:
        return record
    if record.phase in ENDED_PHASES or record.ended is not None:
        return msgspec.structs.replace(record, gone=now, ended=record.ended or now)
    return msgspec.structs.replace(record, gone=now, ended=now, phase=DELETED, reason="", message="")


def _identity(resource: Resource, now: datetime) -> dict[str, Any]:
    owner = resource.controller
    return {
        "namespace": resource.namespace,
        "name": resource.name,
        "user": resource.annotations.get(SUBMITTER_KEY, ""),
        "owner": f"{owner.kind}/{owner.name}" if owner is not None else "",
        "labels": dict(resource.labels),
        "created": resource.metadata.creation_timestamp or now,
    }


def _first_run(job: Job) -> datetime | None:
    """When it began to run for the first time, also where later attempts have begun before it was seen."""
    runs = (each.last_transition_time for each in job.status.conditions if each.status == Phase.RUNNING)
    return min((moment for moment in runs if moment is not None), default=None)


def _role(name: str, count: int, template: object) -> RoleRecord:
    spec = template.get("spec") if isinstance(template, dict) else None
    requests = pod_requests(read_resources(spec or {}))
    selector = (spec or {}).get("nodeSelector") if isinstance(spec, dict) else None
    chosen = {str(key): str(value) for key, value in selector.items()} if isinstance(selector, dict) else {}
    return RoleRecord(name=name, count=count, requests=to_wire(requests), node_selector=chosen)


def _totals(roles: list[RoleRecord]) -> dict[str, Any]:
    total = added(*(times(amounts_of(dict(role.requests)), role.count) for role in roles))
    return {"pods": sum(role.count for role in roles), **amount_fields(total)}
