"""From API objects to the model, one object at a time, so that a cache can follow single changes.

A malformed annotation has the effect Volcano gives it (usually: as if absent). Amounts that cannot be read raise
`QuantityError`; the caller sets that one object aside.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.core import Node as ApiNode
from volcano.api.core import Pod
from volcano.api.jobs.estimates import learned_estimate, stated_estimate
from volcano.api.jobs.reservations import decode_reservation
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY, NetworkTopology, PodGroup, SubGroupPolicy
from volcano.api.scheduling import Queue as ApiQueue
from volcano.api.selectors import selector_from
from volcano.scheduler.model.durations import parse_duration
from volcano.scheduler.model.job import Job, SubJob, Topology
from volcano.scheduler.model.node import Node
from volcano.scheduler.model.queue import Queue
from volcano.scheduler.model.requests import assumed_request_of, request_of
from volcano.scheduler.model.resources import CPU, MEMORY, Resources, resources_from
from volcano.scheduler.model.status import status_from
from volcano.scheduler.model.task import DAWN, PREEMPTABLE_KEY, REVOCABLE_ZONE_KEY, Shape, Task

TASK_PRIORITY_KEY: Final = "volcano.sh/task-priority"
WAITING_TIME_KEYS: Final = ("volcano.sh/sla-waiting-time", "sla-waiting-time")
TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
MAX_LIST_VALUES: Final = 128


@dataclass(slots=True)
class Shapes:
    """Interns shapes; one belongs to each cache (or to one build)."""

    by_key: dict[bytes, Shape] = field(default_factory=dict)
    sociable: list[Shape] = field(default_factory=list)
    number: int = 0

    def of(self, pod: Pod) -> Shape:
        key = _shape_key(pod)
        shape = self.by_key.get(key)
        if shape is None:
            amounts = (request_of(pod), *assumed_request_of(pod))
            sociable = _is_sociable(pod)
            shape = self.by_key[key] = Shape(self.number, *amounts, pod, sociable, sociable or _is_notable(pod))
            self.number += 1
            if sociable:
                self.sociable.append(shape)
        return shape


def _is_sociable(pod: Pod) -> bool:
    affinity = pod.spec.affinity
    return affinity is not None and bool(affinity.pod_affinity or affinity.pod_anti_affinity)


def _is_notable(pod: Pod) -> bool:
    spec = pod.spec
    if any(port.host_port for container in (*spec.containers, *spec.init_containers) for port in container.ports):
        return True
    return any(volume.persistent_volume_claim or volume.ephemeral or volume.csi for volume in spec.volumes)


def _shape_key(pod: Pod) -> bytes:
    spec = pod.spec
    containers = [(c.image, c.resources, c.restart_policy, c.ports) for c in spec.containers]
    initial = [(c.image, c.resources, c.restart_policy, c.ports) for c in spec.init_containers]
    volumes = [v for v in spec.volumes if v.persistent_volume_claim or v.ephemeral or v.csi or v.image]
    own_claims = pod.name if any(v.ephemeral for v in volumes) else ""
    return msgspec.json.encode(
        (
            pod.namespace,
            containers,
            initial,
            spec.overhead,
            spec.resources,
            spec.node_selector,
            spec.affinity,
            spec.tolerations,
            spec.topology_spread_constraints,
            volumes,
            spec.resource_claims,
            own_claims,
        )
    )


# -- pods ---------------------------------------------------------------------------------------------------------
def task_from_pod(pod: Pod, shapes: Shapes) -> Task:
    meta = pod.metadata
    annotations = meta.annotations
    group = annotations.get(GROUP_NAME_ANNOTATION, "")
    namespace = meta.namespace or "default"
    shape = shapes.of(pod)
    return Task(
        uid=meta.uid or f"{namespace}-{meta.name}",
        name=meta.name,
        namespace=namespace,
        job_id=f"{namespace}/{group}" if group else "",
        role=annotations.get(TASK_SPEC_KEY) or meta.labels.get(TASK_SPEC_KEY, ""),
        shape=shape,
        request=shape.request,
        priority=_task_priority(pod),
        pod=pod,
        status=status_from(pod),
        node=pod.spec.node_name,
        preemptable=_stated_bool(annotations, meta.labels, PREEMPTABLE_KEY, default=True),
        revocable_zone=_revocable_zone(annotations),
        best_effort=shape.request.is_empty and not pod.spec.resource_claims,
        gates=tuple(gate.name for gate in pod.spec.scheduling_gates),
        nominated_node=pod.status.nominated_node_name,
        index=_pod_index(meta.name),
        created=meta.creation_timestamp or DAWN,
        claims=_resource_claims(pod, namespace),
    )


def _task_priority(pod: Pod) -> int:
    stated = pod.annotations.get(TASK_PRIORITY_KEY, "")
    if re.fullmatch(r"[+-]?\d{1,10}", stated) and -(2**31) <= int(stated) < 2**31:
        return int(stated)
    return 1 if pod.spec.priority is None else pod.spec.priority


def _pod_index(name: str) -> int | None:
    pieces = name.split("-")
    last = pieces[-1]
    if len(pieces) < 3 or not last.isascii() or not last.isdigit() or len(last) > 18:
        return None
    return int(last)


def _resource_claims(pod: Pod, namespace: str) -> tuple[str, ...]:
    made = {status.name: status.resource_claim_name for status in pod.status.resource_claim_statuses}
    names = (claim.resource_claim_name or made.get(claim.name) for claim in pod.spec.resource_claims)
    return tuple(sorted({f"{namespace}/{name}" for name in names if name}))


def _stated_bool(annotations: dict[str, str], labels: dict[str, str], key: str, *, default: bool) -> bool:
    text = annotations.get(key, labels.get(key))
    return default if text is None else text in TRUE


def _revocable_zone(annotations: dict[str, str]) -> str:
    if REVOCABLE_ZONE_KEY in annotations:
        return "*" if annotations[REVOCABLE_ZONE_KEY] == "*" else ""
    return "*" if annotations.get(PREEMPTABLE_KEY) in TRUE else ""


# -- groups -------------------------------------------------------------------------------------------------------
def job_from(group: PodGroup, *, default_queue: str = "default", priority: int = 0) -> Job:
    """A job without tasks; `place_in_sub_job` and `Job.add` bring them in."""
    meta, spec = group.metadata, group.spec
    namespace = meta.namespace or "default"
    job_id = f"{namespace}/{meta.name}"
    return Job(
        id=job_id,
        name=meta.name,
        namespace=namespace,
        queue=spec.queue or default_queue,
        group=group,
        uid=meta.uid or job_id,
        priority=priority,
        min_available=spec.min_member,
        role_minimums=dict(spec.min_task_member),
        min_resources=None if spec.min_resources is None else resources_from(spec.min_resources),
        phase=group.status.phase,
        created=meta.creation_timestamp or DAWN,
        waiting_time=_waiting_time(meta.annotations),
        estimate=stated_estimate(meta.annotations),
        learned=learned_estimate(meta.annotations),
        reservation=decode_reservation(meta.annotations),
        preemptable=_stated_bool(meta.annotations, meta.labels, PREEMPTABLE_KEY, default=False),
        preemptable_stated=PREEMPTABLE_KEY in meta.annotations or PREEMPTABLE_KEY in meta.labels,
        revocable_zone=_revocable_zone(meta.annotations),
        budget_min_available=meta.annotations.get("volcano.sh/jdb-min-available", ""),
        budget_max_unavailable=meta.annotations.get("volcano.sh/jdb-max-unavailable", ""),
        topology=_topology_from(spec.network_topology),
        sub_group_minimums={f"{job_id}/{p.name}": p.min_sub_groups or 0 for p in spec.sub_group_policy},
        has_policies=bool(spec.sub_group_policy),
    )


def place_in_sub_job(job: Job, task: Task) -> None:
    """Find or make the sub-job the task belongs to; done before `Job.add`."""
    policies = job.group.spec.sub_group_policy if job.group else []
    for policy in policies:
        values = _match_values(policy, task)
        if not values:
            continue
        policy_id = f"{job.id}/{policy.name}"
        task.sub_job_id = f"{policy_id}-{_joined(values)}"
        if task.sub_job_id not in job.sub_jobs:
            job.sub_jobs[task.sub_job_id] = SubJob(
                task.sub_job_id,
                policy_id,
                1 if policy.sub_group_size is None else policy.sub_group_size,
                _topology_from(policy.network_topology),
                int(values[0]) if re.fullmatch(r"[+-]?\d{1,18}", values[0]) else 0,
            )
        return
    task.sub_job_id = job.id
    if job.id not in job.sub_jobs:
        job.sub_jobs[job.id] = SubJob(job.id, job.id, 1 if policies else job.min_available, job.topology)


def _match_values(policy: SubGroupPolicy, task: Task) -> list[str]:
    labels = task.pod.labels
    if policy.label_selector is not None and not selector_from(policy.label_selector).matches(labels):
        return []
    values = [labels.get(key, "") for key in policy.match_label_keys]
    return values if all(values) else []


def _joined(values: list[str]) -> str:
    text = "-".join(values)
    if len(text) <= MAX_LIST_VALUES:
        return text
    hashed = 2166136261
    for byte in text.encode():
        hashed = ((hashed ^ byte) * 16777619) & 0xFFFFFFFF
    letters = "bcdfghjklmnpqrstvwxz2456789"
    return "".join(letters[ord(digit) % len(letters)] for digit in str(hashed))


def _topology_from(stated: NetworkTopology | None) -> Topology | None:
    if stated is None:
        return None
    return Topology(stated.mode or "hard", stated.highest_tier_allowed, stated.highest_tier_name)


def _waiting_time(annotations: dict[str, str]) -> timedelta | None:
    for key in WAITING_TIME_KEYS:
        if key in annotations:
            span = parse_duration(annotations[key])
            return span if span is not None and span > timedelta(0) else None
    return None


# -- queues and nodes ---------------------------------------------------------------------------------------------
def queue_from(queue: ApiQueue) -> Queue:
    spec = queue.spec
    return Queue(
        name=queue.name,
        weight=spec.weight,
        priority=spec.priority,
        parent=spec.parent,
        state=queue.status.state,
        reclaimable=spec.reclaimable is not False,
        created=queue.metadata.creation_timestamp or DAWN,
        capability=resources_from(spec.capability) if spec.capability else None,
        deserved=resources_from(spec.deserved) if spec.deserved else None,
        guarantee=resources_from(spec.guarantee.resource) if spec.guarantee and spec.guarantee.resource else None,
        affinity=spec.affinity,
        hierarchy=queue.annotations.get("volcano.sh/hierarchy", ""),
        hierarchy_weights=queue.annotations.get("volcano.sh/hierarchy-weights", ""),
        annotations=queue.annotations,
        object=queue,
    )


def node_from(node: ApiNode) -> Node:
    allocatable, capacity = resources_from(node.status.allocatable), resources_from(node.status.capacity)
    extra = _oversubscribed(node.annotations)
    return Node(
        name=node.name,
        allocatable=allocatable.add(extra),
        capacity=capacity.add(extra),
        labels=node.labels,
        annotations=node.annotations,
        taints=tuple(msgspec.structs.replace(taint, time_added=None) for taint in node.spec.taints),
        unschedulable=node.spec.unschedulable,
        images={name: image.size_bytes for image in node.status.images for name in image.names},
        revocable_zone=node.labels.get(REVOCABLE_ZONE_KEY, ""),
        offline_job_evicting=node.annotations.get("volcano.sh/offline-job-evicting") in TRUE,
        object=node,
    )


def _oversubscribed(annotations: dict[str, str]) -> Resources:
    def amount(key: str) -> float:
        text = annotations.get(key, "")
        return float(text) if re.fullmatch(r"\d{1,18}(\.\d+)?", text) else 0.0

    extra = Resources()
    extra.amounts[CPU] = amount("volcano.sh/oversubscription-cpu")
    extra.amounts[MEMORY] = amount("volcano.sh/oversubscription-memory")
    return extra
