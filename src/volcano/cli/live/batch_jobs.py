"""Kubernetes' own Jobs (batch/v1) in the form in which Volcano's are followed and shown."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.batch import TASK_SPEC_KEY, Job, JobSpec, JobState, JobStatus, TaskSpec
from volcano.api.core import BatchJob, Pod
from volcano.api.indexes import PODS_BY_JOB, Indexes
from volcano.api.meta import Key, ObjectMeta
from volcano.api.scheme import resource_type

BATCH_JOBS: Final = resource_type(BatchJob)
SHOWN_TASK: Final = "pods"
MARK: Final = f" ({BATCH_JOBS.api_version})"
"""Behind the name, since a Job of Volcano's may have the same one."""


def shown_key(key: Key) -> Key:
    """The key under which it is shown; no Job of Volcano's can have it."""
    return Key(key.namespace, key.name + MARK)


def real_key(shown: Key) -> Key | None:
    """The key of the Kubernetes Job that is shown under this one; None for Volcano's own."""
    return Key(shown.namespace, shown.name.removesuffix(MARK)) if shown.name.endswith(MARK) else None


def owner_of(pod: Pod) -> Key | None:
    """The Kubernetes Job that made a pod."""
    owner = pod.controller
    if owner is None or (owner.api_version, owner.kind) != (BATCH_JOBS.api_version, BATCH_JOBS.kind):
        return None
    return Key(pod.namespace, owner.name)


def _index(pod: Pod) -> tuple[str, ...]:
    owner = owner_of(pod)
    return (str(shown_key(owner)),) if owner is not None else ()


PODS_BY_SHOWN_JOB: Final[Indexes] = {Pod: {"job": lambda pod: [*PODS_BY_JOB[Pod]["job"](pod), *_index(pod)]}}
"""By `namespace/job`; a pod has only one of both kinds of owner."""


def shown_pod(pod: Pod) -> Pod:
    """As a pod of the one task that the job is shown with."""
    metadata = msgspec.structs.replace(pod.metadata, annotations={**pod.annotations, TASK_SPEC_KEY: SHOWN_TASK})
    return msgspec.structs.replace(pod, metadata=metadata)


def shown_job(job: BatchJob, pods: list[Pod]) -> Job:
    """One task with as many replicas as the Job wants completions, in a phase of Volcano's."""
    spec, status, key = job.spec or {}, job.status or {}, shown_key(job.key)
    wanted = spec.get("completions")
    replicas = int(spec.get("parallelism", 1) if wanted is None else wanted)
    state = JobState(phase=_phase(job, pods), message=_message(job, pods))
    return Job(
        metadata=ObjectMeta(name=key.name, namespace=key.namespace, uid=job.uid),
        spec=JobSpec(tasks=[TaskSpec(name=SHOWN_TASK, replicas=replicas)]),
        status=JobStatus(
            state=state, succeeded=int(status.get("succeeded") or 0), failed=int(status.get("failed") or 0)
        ),
    )


def _phase(job: BatchJob, pods: list[Pod]) -> str:
    end = job.end_condition
    if end is not None:
        return "Completed" if end.get("type") == "Complete" else "Failed"
    return "Running" if any(pod.status.phase not in ("", "Pending") for pod in pods) else "Pending"


def _message(job: BatchJob, pods: list[Pod]) -> str:
    """Why it failed, or what it waits for."""
    end = job.end_condition
    if end is not None:
        return str(end.get("message") or "")
    if (job.spec or {}).get("suspend"):
        return "it is suspended (spec.suspend)"
    waiting = (
        condition.message
        for pod in pods
        for condition in pod.status.conditions
        if (condition.type, condition.status) == ("PodScheduled", "False")
    )
    return next(waiting, "")
