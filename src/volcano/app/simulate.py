"""What would happen if: pods or a Job are put into a copy of the snapshot and one cycle is decided, but not sent.

A pure function of objects, configuration and time; the service gives it what it knows just now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.admission.job_defaults import defaulted_task
from volcano.api.batch import Job
from volcano.api.core import Pod, PriorityClass, Service
from volcano.api.decode import Unreadable, decode_object
from volcano.api.meta import JSON, Resource
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, QUEUE_NAME_ANNOTATION, PodGroup
from volcano.app.scheduler_conf import Registry
from volcano.controllers.job.groups import group_steps
from volcano.controllers.job.pods import build_pod
from volcano.controllers.job.view import JobView
from volcano.machinery.plan import Create
from volcano.machinery.world import frozen_world
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.core.snapshot import Snapshot, put_group, put_task
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance, Status
from volcano.scheduler.model.read import task_from_pod

MOST_PODS: Final = 10_000
UID: Final = "simulated"


class BadRequest(ValueError):
    """What was asked cannot be simulated; the message says why."""


@dataclass(slots=True, frozen=True)
class Known:
    """Everything the scheduler knows just now, as plain objects."""

    settings: CacheSettings
    objects: Mapping[type[Resource], Iterable[Resource]]
    config: SchedulerConfig
    registry: Registry
    now: datetime
    assumed: dict[str, str] = field(default_factory=dict)
    evicting: frozenset[str] = frozenset()


def simulate(known: Known, request: JSON) -> JSON:
    """`request` is a Job, a Pod, {"pods": [...]} or {"job": {...}}; the answer says who would go where, or why not.

    {"podGroup": "namespace/name"} adds nothing and asks what becomes of one that waits already.
    """
    if isinstance(request, dict) and "podGroup" in request:
        return _of_waiting(known, str(request["podGroup"]))
    groups, pods = _asked(known, request)
    snapshot = _copy(known)
    for group in groups:
        put_group(snapshot, group)
    asked = [_put(snapshot, pod) for pod in pods]
    return _answer(_decided(known, snapshot), asked, {f"{group.namespace}/{group.name}" for group in groups})


def _of_waiting(known: Known, name: str) -> JSON:
    snapshot = _copy(known)
    job = snapshot.jobs.get(name)
    if job is None:
        raise BadRequest(f"there is no PodGroup {name}")
    asked = [task.key for task in job.tasks.values() if task.status == Status.PENDING]
    return _answer(_decided(known, snapshot), asked, {name})


def _decided(known: Known, snapshot: Snapshot) -> Decisions:
    registry = known.registry
    return cycle(snapshot, known.config, SeededChance(0), plugins=registry.plugins, actions=registry.actions)


def _copy(known: Known) -> Snapshot:
    batch = Batch(
        {(kind, item.key): item for kind, items in known.objects.items() for item in items},
        dict(known.assumed),
        known.evicting,
    )
    return Cache(known.settings).refresh(batch, known.now, UID)


def _put(snapshot: Snapshot, pod: Pod) -> str:
    try:
        task = task_from_pod(pod, snapshot.shapes)
    except ValueError as error:
        raise BadRequest(f"pod {pod.name}: {error}") from error
    if task.uid in snapshot.tasks:
        raise BadRequest(f"pod {task.key} exists already")
    put_task(snapshot, task)
    return task.key


# -- what is asked ----------------------------------------------------------------------------------------------------
def _asked(known: Known, request: JSON) -> tuple[list[PodGroup], list[Pod]]:
    if not isinstance(request, dict):
        raise BadRequest("the body is not an object")
    if request.get("kind") == "Job" or "job" in request:
        return _of_job(known, request.get("job") or request)
    listed = request.get("pods") or request.get("items") or ([request] if request.get("kind") == "Pod" else [])
    if not isinstance(listed, list) or not listed:
        raise BadRequest('neither a Job, nor a Pod, nor {"pods": [...]} or {"job": {...}}')
    if len(listed) > MOST_PODS:
        raise BadRequest(f"at most {MOST_PODS} pods at once")
    return _of_pods(known, [_read(Pod, item, number) for number, item in enumerate(listed)])


def _of_job(known: Known, body: JSON) -> tuple[list[PodGroup], list[Pod]]:
    spec = dict(body.get("spec") or {})
    tasks = [defaulted_task(t, place) for place, t in enumerate(spec.get("tasks") or ()) if isinstance(t, dict)]
    least = sum(int(task.get("minAvailable") or 0) for task in tasks)
    scheduler = next(iter(sorted(known.settings.scheduler_names)), "volcano")
    spec = {"queue": known.settings.default_queue, "schedulerName": scheduler, "minAvailable": least, **spec}
    job = _read(Job, {**body, "spec": {**spec, "tasks": tasks}}, 0)
    if sum(task.replicas for task in job.spec.tasks) > MOST_PODS:
        raise BadRequest(f"at most {MOST_PODS} pods at once")
    around = [*known.objects.get(PriorityClass, ()), *known.objects.get(Service, ())]
    view = JobView(job, frozen_world(*around, now=known.now))
    made = [step.body for step in group_steps(view, "") if isinstance(step, Create)]
    pods = [
        _read(Pod, {**body, "status": {"phase": "Pending"}}, index)
        for task in job.spec.tasks
        for index, body in enumerate(build_pod(view, task, number, plugins=[]) for number in range(task.replicas))
    ]
    return [_read(PodGroup, body, number) for number, body in enumerate(made)], pods


def _of_pods(known: Known, pods: list[Pod]) -> tuple[list[PodGroup], list[Pod]]:
    """Pods that name no PodGroup are gangs of one."""
    groups = []
    joined = []
    for pod in pods:
        if GROUP_NAME_ANNOTATION not in pod.annotations:
            name = f"{UID}:{pod.name}"
            queue = pod.annotations.get(QUEUE_NAME_ANNOTATION) or known.settings.default_queue
            spec = {"minMember": 1, "queue": queue, "priorityClassName": pod.spec.priority_class_name}
            groups.append(_read(PodGroup, {"metadata": {"name": name, "namespace": pod.namespace}, "spec": spec}, 0))
            pod = _joined(pod, name)
        joined.append(pod)
    return groups, joined


def _joined(pod: Pod, group: str) -> Pod:
    annotations = {**pod.annotations, GROUP_NAME_ANNOTATION: group}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))


def _read(reader: Any, body: Any, number: int) -> Any:
    """An object as the API server would have stored it: with a namespace, a uid and a phase."""
    if not isinstance(body, dict):
        raise BadRequest(f"{reader.__name__} {number} is not an object")
    metadata = dict(body.get("metadata") or {})
    metadata.setdefault("namespace", "default")
    metadata["namespace"] = metadata["namespace"] or "default"
    metadata.setdefault("name", metadata.get("generateName", "") + f"{UID}-{number}")
    metadata["uid"] = f"{UID}-{metadata['namespace']}-{metadata['name']}"
    whole = {**body, "metadata": metadata}
    if reader is Pod:
        whole["spec"] = {**(body.get("spec") or {}), "nodeName": ""}
        whole["status"] = {"phase": "Pending"}
    try:
        return decode_object(reader, whole)
    except (Unreadable, ValueError) as error:
        raise BadRequest(f"{reader.__name__} {metadata['name']}: {error}") from error


# -- the answer -------------------------------------------------------------------------------------------------------
def _answer(decisions: Decisions, asked: list[str], jobs: set[str]) -> JSON:
    binds = {bind.task: bind.node for bind in decisions.binds if bind.task not in decisions.dropped}
    notices = {notice.task: notice for notice in decisions.pods}
    pods: JSON = {}
    for task in asked:
        if task in binds:
            pods[task] = {"node": binds[task]}
        elif task in decisions.pipelined:
            pods[task] = {"waitsFor": decisions.pipelined[task]}
        else:
            notice = notices.get(task)
            pods[task] = {"reason": notice.reason, "message": notice.message} if notice else {"reason": "Pending"}
    return {
        "placed": sum("node" in pod for pod in pods.values()),
        "asked": len(asked),
        "pods": pods,
        "jobs": {
            job: {
                "phase": decisions.groups[job].phase if job in decisions.groups else "",
                **({"why": str(decisions.why[job])} if job in decisions.why else {}),
            }
            for job in sorted(jobs)
        },
        "evictions": [
            {"pod": eviction.task, "node": eviction.node, "reason": eviction.reason, "for": eviction.preemptor}
            for eviction in decisions.evictions
            if eviction.task not in decisions.dropped
        ],
    }
