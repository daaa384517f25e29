"""What would happen if: pods or a Job are put into a copy of the snapshot and one cycle is decided, but not sent.

A pure function of objects, configuration and time; the service gives it what it knows just now.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import msgspec

from volcano.api.core import Pod, PriorityClass, Service
from volcano.api.jobs.simulation import SimulatedEviction, SimulatedJob, SimulatedPod, Simulation
from volcano.api.meta import JSON, Resource
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, QUEUE_NAME_ANNOTATION, PodGroup
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.core.snapshot import Snapshot, put_group, put_task
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions, PodNotice
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance, Status
from volcano.scheduler.model.read import task_from_pod
from volcano.scheduler.service.job_expansion import SIMULATED_UID, BadSimulation, ExpandedJob, ExpandJob, read_object
from volcano.scheduler.service.registry import Registry

MAX_PODS: Final = 10_000


@dataclass(slots=True, frozen=True)
class Known:
    """Everything the scheduler knows just now, as plain objects."""

    settings: CacheSettings
    objects: Mapping[type[Resource], Iterable[Resource]]
    config: SchedulerConfig
    registry: Registry
    now: datetime
    expand_job: ExpandJob
    assumed: dict[str, str] = field(default_factory=dict)
    evicting: frozenset[str] = frozenset()
    annotations: dict[str, Mapping[str, str]] = field(default_factory=dict)  # pod uid → what it is being bound with


def simulate(known: Known, request: JSON) -> Simulation:
    """`request` is a Job, a Pod, {"pods": [...]} or {"job": {...}}; the answer has the node each pod would get, or
    why it would wait. {"podGroup": "namespace/name"} adds nothing, and asks about a PodGroup that waits already.
    """
    if isinstance(request, dict) and "podGroup" in request:
        return _waiting_group(known, str(request["podGroup"]))
    groups, pods = _asked(known, request)
    snapshot = snapshot_of(known)
    for group in groups:
        put_group(snapshot, group)
    asked = [_put(snapshot, pod) for pod in pods]
    return _answer(_decided(known, snapshot), asked, {f"{group.namespace}/{group.name}" for group in groups})


def _waiting_group(known: Known, name: str) -> Simulation:
    snapshot = snapshot_of(known)
    job = snapshot.jobs.get(name)
    if job is None or job.group is None:
        raise BadSimulation(f"there is no PodGroup {name}")
    asked = [task.key for task in job.tasks.values() if task.status == Status.PENDING]
    return _answer(_decided(known, snapshot), asked, {name})


def _decided(known: Known, snapshot: Snapshot) -> Decisions:
    registry = known.registry
    return cycle(snapshot, known.config, SeededChance(0), plugins=registry.plugins, actions=registry.actions)


def snapshot_of(known: Known) -> Snapshot:
    """A snapshot of one's own, which may be changed."""
    batch = Batch(
        {(kind, item.key): item for kind, items in known.objects.items() for item in items},
        dict(known.assumed),
        known.evicting,
        annotations=known.annotations,
    )
    return Cache(known.settings).refresh(batch, known.now, SIMULATED_UID)


def _put(snapshot: Snapshot, pod: Pod) -> str:
    try:
        task = task_from_pod(pod, snapshot.shapes)
    except ValueError as error:
        raise BadSimulation(f"pod {pod.name}: {error}") from error
    if task.uid in snapshot.tasks:
        raise BadSimulation(f"pod {task.key} exists already")
    put_task(snapshot, task)
    return task.key


# -- what is asked ----------------------------------------------------------------------------------------------------
def _asked(known: Known, request: JSON) -> tuple[list[PodGroup], list[Pod]]:
    if not isinstance(request, dict):
        raise BadSimulation("the body is not an object")
    if request.get("kind") == "Job" or "job" in request:
        return _of_job(known, request.get("job") or request)
    listed = request.get("pods") or request.get("items") or ([request] if request.get("kind") == "Pod" else [])
    if not isinstance(listed, list) or not listed:
        raise BadSimulation('neither a Job, nor a Pod, nor {"pods": [...]} or {"job": {...}}')
    if len(listed) > MAX_PODS:
        raise BadSimulation(f"at most {MAX_PODS} pods at once")
    return _of_pods(known, [read_object(Pod, item, number) for number, item in enumerate(listed)])


def _of_job(known: Known, body: JSON) -> tuple[list[PodGroup], list[Pod]]:
    expanded = _expanded(known, body)
    groups = [read_object(PodGroup, group, number) for number, group in enumerate(expanded.groups)]
    return groups, [read_object(Pod, pod, index) for index, pod in expanded.pods]


def _expanded(known: Known, body: JSON) -> ExpandedJob:
    if not isinstance(body, dict):
        raise BadSimulation("the job is not an object")
    around = [*known.objects.get(PriorityClass, ()), *known.objects.get(Service, ())]
    return known.expand_job(
        body,
        around,
        default_queue=known.settings.default_queue,
        scheduler_name=next(iter(sorted(known.settings.scheduler_names)), "volcano"),
        now=known.now,
        max_pods=MAX_PODS,
    )


def _of_pods(known: Known, pods: list[Pod]) -> tuple[list[PodGroup], list[Pod]]:
    """Pods that name no PodGroup are gangs of one."""
    groups = []
    joined = []
    for pod in pods:
        if GROUP_NAME_ANNOTATION not in pod.annotations:
            name = f"{SIMULATED_UID}:{pod.name}"
            queue = pod.annotations.get(QUEUE_NAME_ANNOTATION) or known.settings.default_queue
            spec = {"minMember": 1, "queue": queue, "priorityClassName": pod.spec.priority_class_name}
            groups.append(
                read_object(PodGroup, {"metadata": {"name": name, "namespace": pod.namespace}, "spec": spec}, 0)
            )
            pod = _joined(pod, name)
        joined.append(pod)
    return groups, joined


def _joined(pod: Pod, group: str) -> Pod:
    annotations = {**pod.annotations, GROUP_NAME_ANNOTATION: group}
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, annotations=annotations))


# -- the answer -------------------------------------------------------------------------------------------------------
def _answer(decisions: Decisions, asked: list[str], jobs: set[str]) -> Simulation:
    binds = {bind.task: bind.node for bind in decisions.binds if bind.task not in decisions.dropped}
    notices = {notice.task: notice for notice in decisions.pods}
    pods = {task: _pod(task, binds, notices, decisions) for task in asked}
    return Simulation(
        sum(bool(pod.node) for pod in pods.values()),
        len(asked),
        pods,
        {
            job: SimulatedJob(
                decisions.groups[job].phase if job in decisions.groups else "",
                str(decisions.why[job]) if job in decisions.why else "",
            )
            for job in sorted(jobs)
        },
        [
            SimulatedEviction(eviction.task, eviction.node, eviction.reason, eviction.preemptor)
            for eviction in decisions.evictions
            if eviction.task not in decisions.dropped
        ],
    )


def _pod(task: str, binds: Mapping[str, str], notices: Mapping[str, PodNotice], decisions: Decisions) -> SimulatedPod:
    if task in binds:
        return SimulatedPod(node=binds[task])
    if task in decisions.pipelined:
        return SimulatedPod(waits_for=decisions.pipelined[task])
    notice = notices.get(task)
    return SimulatedPod(reason=notice.reason, message=notice.message) if notice else SimulatedPod(reason="Pending")
