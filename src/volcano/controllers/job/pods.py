"""The pods of a job: what each looks like, which are missing and which are too many."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final

from volcano.api.batch import (
    JOB_NAME_KEY,
    JOB_NAMESPACE_KEY,
    JOB_RETRY_KEY,
    JOB_VERSION_KEY,
    PARTITION_KEY,
    QUEUE_KEY,
    TASK_INDEX_KEY,
    TASK_SPEC_KEY,
    TEMPLATE_UID_KEY,
    Job,
    TaskSpec,
)
from volcano.api.copies import copied
from volcano.api.core import Pod
from volcano.api.jobs.estimates import SUBMITTER_KEY
from volcano.api.meta import JSON
from volcano.api.numa.assignment import POLICY_KEY
from volcano.api.scheduling import GROUP_NAME_ANNOTATION
from volcano.api.scheme import resource_type
from volcano.controllers.job.plugins import JobPluginBase, change_pod
from volcano.controllers.job.plugins.plugin import append
from volcano.controllers.job.view import JobPod, JobView, group_name, partition_of, task_name
from volcano.controllers.job.volumes import mounts
from volcano.machinery.plan import Create, owner_reference

POD: Final = resource_type(Pod)
FORWARDING_KEY: Final = "volcano.sh/job-forwarding"
PREEMPTABLE_KEY: Final = "volcano.sh/preemptable"
COOLDOWN_KEY: Final = "volcano.sh/cooldown-time"
REVOCABLE_KEY: Final = "volcano.sh/revocable-zone"
TAKEN_OVER: Final = (PREEMPTABLE_KEY, COOLDOWN_KEY, REVOCABLE_KEY, SUBMITTER_KEY)
"""Annotations of a Job that its pods have too."""
MAX_PODS_PER_PLAN: Final = 1_000
"""Pods created by one plan, so that a very large job reports progress and can be ended while it is created."""
BUDGET_KEYS: Final = ("volcano.sh/jdb-min-available", "volcano.sh/jdb-max-unavailable")


def missing_pods(view: JobView, plugins: list[JobPluginBase]) -> list[Create]:
    """Pods to create now: missing, and not held back by a task they depend on. Creating them requeues the job."""
    found = islice(_missing(view), MAX_PODS_PER_PLAN)
    return [Create(POD, build_pod(view, task, index, plugins=plugins)) for task, index in found]


def _missing(view: JobView) -> Iterator[tuple[TaskSpec, int]]:
    for task in view.job.spec.tasks:
        if may_start(view, task):
            name = f"{view.job.name}-{task_name(task)}"
            yield from ((task, i) for i in range(task.replicas) if not view.name_is_taken(f"{name}-{i}"))


def superfluous(view: JobView) -> list[JobPod]:
    """Pods beyond their task's replicas. Those of tasks that the spec does not know are left alone."""
    tasks = {task_name(task) for task in view.job.spec.tasks}
    return [m for m in view.members if m.task in tasks and m.name not in view.wanted and not m.is_deleting]


def may_start(view: JobView, task: TaskSpec) -> bool:
    """Whether the tasks that this one depends on are up: all of them, or with `any` one of several."""
    depends = task.depends_on
    if depends is None or not depends.name:
        return True
    ready = (_is_ready(view, name) for name in depends.name)
    return any(ready) if depends.iteration == "any" and len(depends.name) > 1 else all(ready)


def _is_ready(view: JobView, name: str) -> bool:
    task = next((task for task in view.job.spec.tasks if task_name(task) == name), None)
    if task is None or task.min_available is None:
        return True
    return sum(_counts_as_up(member) for member in view.by_task[name]) >= task.min_available


def _counts_as_up(member: JobPod) -> bool:
    if member.phase == "Succeeded":
        return True
    return member.phase == "Running" and all(status.ready for status in member.pod.status.container_statuses)


def build_pod(view: JobView, task: TaskSpec, index: int, *, plugins: list[JobPluginBase]) -> JSON:
    """The template, with what the job, its volumes and its plugins add."""
    job = view.job
    template: JSON = copied(task.template)
    template_metadata: JSON = template.get("metadata") or {}
    metadata: JSON = {
        **{key: value for key, value in template_metadata.items() if key not in ("name", "generateName", "namespace")},
        "name": f"{job.name}-{task_name(task)}-{index}",
        "namespace": job.namespace,
        "ownerReferences": [owner_reference(job)],
        "labels": {**(template_metadata.get("labels") or {}), **_labels(view, task, index)},
        "annotations": {**(template_metadata.get("annotations") or {}), **_annotations(view, task, index)},
    }
    spec: JSON = template.get("spec") or {}
    spec["schedulerName"] = spec.get("schedulerName") or job.spec.scheduler_name
    if not spec.get("priorityClassName") and job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    pod: JSON = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}
    _mount(pod, job)
    change_pod(plugins, pod, task, index)
    return pod


def _mount(pod: JSON, job: Job) -> None:
    for name, claim, path in mounts(job):
        append(pod["spec"], "volumes", {"name": name, "persistentVolumeClaim": {"claimName": claim}})
        for container in pod["spec"].get("containers") or []:
            append(container, "volumeMounts", {"name": name, "mountPath": path})


def _labels(view: JobView, task: TaskSpec, index: int) -> dict[str, str]:
    job = view.job
    labels = {
        TASK_INDEX_KEY: str(index),
        JOB_NAME_KEY: job.name,
        TASK_SPEC_KEY: task_name(task),
        JOB_NAMESPACE_KEY: job.namespace,
        QUEUE_KEY: job.spec.queue,
    }
    labels |= {key: job.labels[key] for key in (PREEMPTABLE_KEY, COOLDOWN_KEY) if key in job.labels}
    if task.partition_policy is not None:
        labels[PARTITION_KEY] = partition_of(task, index)
    return labels | dict(_forwarding(view))


def _annotations(view: JobView, task: TaskSpec, index: int) -> dict[str, str]:
    job = view.job
    annotations = {
        TASK_INDEX_KEY: str(index),
        TASK_SPEC_KEY: task_name(task),
        GROUP_NAME_ANNOTATION: view.group.name if view.group is not None else group_name(job),
        JOB_NAME_KEY: job.name,
        QUEUE_KEY: job.spec.queue,
        JOB_VERSION_KEY: str(job.status.version),
        TEMPLATE_UID_KEY: f"{job.name}-{task_name(task)}",
        JOB_RETRY_KEY: str(job.status.retry_count),
    }
    if task.topology_policy:
        annotations[POLICY_KEY] = task.topology_policy
    taken_over: list[str] = [key for key in TAKEN_OVER if key in job.annotations]
    taken_over += [key for key in BUDGET_KEYS if key in job.annotations][:1]
    return annotations | {key: job.annotations[key] for key in taken_over} | dict(_forwarding(view))


def _forwarding(view: JobView) -> Iterator[tuple[str, str]]:
    if view.queue is not None and view.queue.spec.extend_clusters:
        yield FORWARDING_KEY, "true"
