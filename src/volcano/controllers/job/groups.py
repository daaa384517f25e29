"""The PodGroup of a job: the gang as the scheduler sees it, and the minimum it needs to start."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

import msgspec

from volcano.api.batch import PARTITION_KEY, TASK_SPEC_KEY, Job, TaskSpec
from volcano.api.core import PriorityClass
from volcano.api.jobs.estimates import ESTIMATE_KEY, LEARNED_KEY, LearnedEstimate, encode_learned, stated_estimate
from volcano.api.meta import JSON, Key
from volcano.api.pods.amounts import Amounts, added, amounts_of, times, to_wire
from volcano.api.quotas import template_usage
from volcano.api.scheduling import NetworkTopology, PodGroup
from volcano.api.scheme import resource_type
from volcano.controllers.job.view import JobView, group_name, task_name
from volcano.machinery.plan import NOTHING, Create, Patch, Plan, owner_reference, ref

GROUP: Final = resource_type(PodGroup)
DIGEST_KEY: Final = "volcano.sh/job-plugins-digest"
"""On the PodGroup: which state of the spec the plugins' objects follow."""


def group_steps(view: JobView, digest: str, learned: LearnedEstimate | None = None) -> Plan:
    """Make the PodGroup, or change what has changed: never its queue, labels or topology.

    `learned` is what past runs say about the job's run time. It is written once, when the PodGroup is made.
    """
    group = view.group
    if group is None:
        return (Create(GROUP, _group(view, digest, learned)),)
    if group.is_deleting:
        return NOTHING
    changes = _changes(view, group, digest)
    return (Patch(ref(group), changes),) if changes else NOTHING


def is_admitted(group: PodGroup | None) -> bool:
    """The scheduler has let the gang in: pods may be made."""
    return group is not None and not group.is_deleting and group.status.phase not in ("", "Pending")


def _group(view: JobView, digest: str, learned: LearnedEstimate | None) -> JSON:
    job = view.job
    annotations = {**job.annotations, **({DIGEST_KEY: digest} if digest else {}), **_estimates(job, learned)}
    metadata: JSON = {
        "name": group_name(job),
        "namespace": job.namespace,
        "ownerReferences": [owner_reference(job)],
    }
    metadata |= {"annotations": annotations} if annotations else {}
    metadata |= {"labels": dict(job.labels)} if job.labels else {}
    spec: JSON = {
        "minMember": job.spec.min_available,
        "minTaskMember": min_task_member(job),
        "queue": job.spec.queue,
        "minResources": to_wire(min_resources(view)),
    }
    if job.spec.priority_class_name:
        spec["priorityClassName"] = job.spec.priority_class_name
    if job.spec.network_topology is not None:
        spec["networkTopology"] = _topology(job.spec.network_topology, both=False)
    policies = sub_group_policy(job)
    if policies:
        spec["subGroupPolicy"] = policies
    return {"metadata": metadata, "spec": spec}


def _estimates(job: Job, learned: LearnedEstimate | None) -> dict[str, str]:
    """How long the job is expected to run, for the scheduler: as stated in the spec, or else as learned."""
    if job.spec.running_estimate:
        return {ESTIMATE_KEY: job.spec.running_estimate}
    if learned is None or stated_estimate(job.annotations) is not None:
        return {}
    return {LEARNED_KEY: encode_learned(learned)}


def _changes(view: JobView, group: PodGroup, digest: str) -> JSON:
    job, spec = view.job, group.spec
    changes: JSON = {}
    if spec.priority_class_name != job.spec.priority_class_name:
        changes["priorityClassName"] = job.spec.priority_class_name or None
    needed = min_resources(view)
    if spec.min_member != job.spec.min_available or amounts_of(spec.min_resources) != needed:
        stale = {name: None for name in spec.min_resources or {} if name not in needed}
        changes |= {"minMember": job.spec.min_available, "minResources": {**to_wire(needed), **stale}}
    tasks = {name: least for name, least in min_task_member(job).items() if spec.min_task_member.get(name) != least}
    if tasks:
        changes["minTaskMember"] = tasks
    policies = sub_group_policy(job)
    if _as_read(policies) != [msgspec.to_builtins(policy) for policy in spec.sub_group_policy]:
        changes["subGroupPolicy"] = policies or None
    body: JSON = {"spec": changes} if changes else {}
    if group.annotations.get(DIGEST_KEY, "") != digest:
        body["metadata"] = {"annotations": {DIGEST_KEY: digest or None}}
    return body


def _as_read(policies: list[JSON]) -> list[Any]:
    """Through the reader and back, so that what is left out and what is said as its default compare equal."""
    reader = type(PodGroup().spec)
    return [msgspec.to_builtins(p) for p in msgspec.convert({"subGroupPolicy": policies}, reader).sub_group_policy]


def min_task_member(job: Job) -> dict[str, int]:
    return {task_name(task): _least(task) for task in job.spec.tasks}


def _least(task: TaskSpec) -> int:
    if task.min_available is not None:
        return task.min_available
    policy = task.partition_policy
    if policy is not None and policy.min_partitions and policy.partition_size:
        return policy.min_partitions * policy.partition_size
    return task.replicas


def sub_group_policy(job: Job) -> list[JSON]:
    return [_sub_group(task) for task in job.spec.tasks if task.partition_policy is not None]


def _sub_group(task: TaskSpec) -> JSON:
    policy = task.partition_policy
    assert policy is not None
    rule: JSON = {
        "name": task_name(task),
        "subGroupSize": policy.partition_size,
        "minSubGroups": policy.min_partitions,
        "labelSelector": {"matchLabels": {TASK_SPEC_KEY: task_name(task)}},
        "matchLabelKeys": [PARTITION_KEY],
    }
    if policy.network_topology is not None:
        rule["networkTopology"] = _topology(policy.network_topology, both=True)
    return rule


def _topology(topology: NetworkTopology, *, both: bool) -> JSON:
    """The PodGroup gets either the tier or the tier's name; the tier takes precedence."""
    body: JSON = {"mode": topology.mode}
    if topology.highest_tier_allowed is not None:
        body["highestTierAllowed"] = topology.highest_tier_allowed
    if topology.highest_tier_name and (both or topology.highest_tier_allowed is None):
        body["highestTierName"] = topology.highest_tier_name
    return body


# -- the least that the gang needs ----------------------------------------------------------------------------------
def min_resources(view: JobView) -> Amounts:
    """What the first minAvailable pods use, tasks of higher priority first."""
    shares = _shares(view)
    return added(*(times(template_usage(task.template), count) for task, count in shares if count))


def _shares(view: JobView) -> Iterator[tuple[TaskSpec, int]]:
    """How many pods of each task are among the first minAvailable."""
    tasks = sorted(view.job.spec.tasks, key=lambda task: -_priority(view, task))
    left = view.job.spec.min_available
    least: Mapping[int, int] = {}
    if left >= sum(task.replicas if task.min_available is None else task.min_available for task in tasks):
        given: dict[int, int] = {}
        for place, task in enumerate(tasks):
            given[place] = min(task.min_available or 0, left)
            left -= given[place]
        least = given
    for place, task in enumerate(tasks):
        sure = least.get(place, 0)
        more = max(0, min(task.replicas - sure, left))
        left -= more
        yield task, sure + more


def _priority(view: JobView, task: TaskSpec) -> int:
    name = (task.template.get("spec") or {}).get("priorityClassName") or ""
    found = view.world.get(PriorityClass, Key("", name)) if name else None
    return found.value if found is not None else 0
