"""What the job controller would make of a simulated job: its PodGroup and its pods.

A job from a template (a full Volcano Job) is given to the controller's own functions. A job of a trace has neither
template nor policies, so its objects are written down here, many thousand times faster.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api import batch, core
from volcano.api.indexes import PODS_BY_JOB
from volcano.api.jobs.estimates import ESTIMATE_KEY
from volcano.api.meta import ObjectMeta, Quantities
from volcano.api.quantity import Quantity, parse_quantity
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY, PodGroup, PodGroupSpec, PodGroupStatus
from volcano.controllers.job.groups import group_steps
from volcano.controllers.job.pods import build_pod, may_start
from volcano.controllers.job.view import JobView
from volcano.machinery.plan import Create
from volcano.machinery.world import Mirror
from volcano.scheduler.model.task import PREEMPTABLE_KEY
from volcano.simulator.jobs import WorkloadJob

NAMESPACE: Final = "default"
SHORTEST_ESTIMATE_SECONDS: Final = 0.001


def make_group(job: WorkloadJob, uid: str, created: datetime, classes: Iterable[core.PriorityClass]) -> PodGroup:
    annotations = {}
    if job.estimate is not None:
        annotations[ESTIMATE_KEY] = f"{max(job.estimate, SHORTEST_ESTIMATE_SECONDS):.3f}s"
    if job.manifest is None:
        spec = PodGroupSpec(
            min_member=job.min_available or job.pods,
            queue=job.queue,
            priority_class_name=job.priority_class,
            min_resources=_total(job),
        )
        labels: dict[str, str] = {}
    else:
        made = _controllers_group(job.manifest, classes)
        spec, labels, annotations = made.spec, dict(made.labels), {**made.annotations, **annotations}
    if job.min_resources is not None:
        spec = msgspec.structs.replace(spec, min_resources=dict(job.min_resources))
    meta = ObjectMeta(
        name=job.name, namespace=NAMESPACE, uid=uid, creation_timestamp=created, annotations=annotations, labels=labels
    )
    return PodGroup(metadata=meta, spec=spec, status=PodGroupStatus(phase="Pending"))


def _controllers_group(manifest: batch.Job, classes: Iterable[core.PriorityClass]) -> PodGroup:
    (step,) = group_steps(_view(manifest, classes), "")
    assert isinstance(step, Create)
    return msgspec.convert(step.body, PodGroup)


def make_pods(job: WorkloadJob, created: datetime, existing: Iterable[core.Pod]) -> Iterator[core.Pod]:
    """The pods that are to be made now: all, or those whose task does not wait for another one."""
    if job.manifest is not None:
        yield from _controllers_pods(job, job.manifest, created, existing)
        return
    for role in job.roles:
        limits = {name: text for name, text in role.requests.items() if "/" in name}  # extended resources have both
        containers = [{"name": "main", "resources": {"requests": dict(role.requests), "limits": limits}}]
        spec = msgspec.convert({**role.spec, "containers": containers, "schedulerName": "volcano"}, core.PodSpec)
        annotations = {
            PREEMPTABLE_KEY: str(job.preemptable).lower(),
            **role.annotations,
            GROUP_NAME_ANNOTATION: job.name,
            TASK_SPEC_KEY: role.name,
        }
        status = core.PodStatus(phase="Pending")
        for index in range(role.count):
            name = f"{job.name}-{role.name}-{index}"
            meta = ObjectMeta(
                name=name, namespace=NAMESPACE, uid=name, creation_timestamp=created, annotations=annotations
            )
            yield core.Pod(metadata=meta, spec=spec, status=status)


def _controllers_pods(
    job: WorkloadJob, manifest: batch.Job, created: datetime, existing: Iterable[core.Pod]
) -> Iterator[core.Pod]:
    present = list(existing)
    names = {pod.name for pod in present}
    view = _view(manifest, present)
    for task in manifest.spec.tasks:
        if not may_start(view, task):
            continue
        for index in range(task.replicas):
            body = build_pod(view, task, index, plugins=[])
            if body["metadata"]["name"] not in names:
                yield _pod(body, job.name, created)


def _pod(body: dict[str, Any], group: str, created: datetime) -> core.Pod:
    pod = msgspec.convert(body, core.Pod, strict=False)
    annotations = {**pod.metadata.annotations, GROUP_NAME_ANNOTATION: group}
    meta = msgspec.structs.replace(
        pod.metadata, uid=pod.name, creation_timestamp=created, annotations=annotations, namespace=NAMESPACE
    )
    spec = msgspec.structs.replace(pod.spec, scheduler_name="volcano", node_name="")
    return core.Pod(metadata=meta, spec=spec, status=core.PodStatus(phase="Pending"))


def _view(manifest: batch.Job, objects: Iterable[core.Pod | core.PriorityClass]) -> JobView:
    world = Mirror(indexes=PODS_BY_JOB)
    for each in objects:
        world.put(each)
    return JobView(manifest, world)


def _total(job: WorkloadJob) -> Quantities:
    """What the gang's minimum requests, as the job controller sums it: the first pods in the order of roles."""
    wanted = job.min_available or job.pods
    sums: dict[str, Quantity] = {}
    for role in job.roles:
        count = min(role.count, wanted)
        wanted -= count
        for name, text in role.requests.items():
            amount = parse_quantity(text) * count
            sums[name] = sums[name] + amount if name in sums else amount
    return {name: str(amount) for name, amount in sums.items()}
