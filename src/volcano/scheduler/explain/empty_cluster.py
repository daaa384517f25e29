"""The same cluster if everything that ends by itself had ended: only pods that belong to their node remain.

A job that does not start here waits in vain: no end of another job will let it run.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from volcano.api.core import Pod, ResourceClaim
from volcano.api.meta import Key
from volcano.scheduler.core.node_table import NodeTable
from volcano.scheduler.core.snapshot import Snapshot, put_task
from volcano.scheduler.explain.trials import TriedJob
from volcano.scheduler.model import ClusterObjects, Node, Task
from volcano.scheduler.model.read import task_from_pod

STAYING_OWNERS = ("DaemonSet", "Node")
"""Owners whose pods belong to their node and do not end before it."""


def empty_cluster(snapshot: Snapshot) -> Snapshot:
    """Nodes, queues and cluster objects are the same; there are no jobs, and windows of Reservations have ended."""
    empty = Snapshot(
        now=snapshot.now,
        uid=snapshot.uid,
        table=NodeTable([_emptied(node) for node in snapshot.table.nodes]),
        queues=dict(snapshot.queues),
        domains=snapshot.domains,
        cluster=replace(snapshot.cluster, reservations={}, resource_claims=_released(snapshot.cluster)),
        shapes=snapshot.shapes,
        default_queue=snapshot.default_queue,
        admits_by_gate=snapshot.admits_by_gate,
        scheduler_names=snapshot.scheduler_names,
    )
    for node in snapshot.table.nodes:
        for task in node.tasks.values():
            if stays(task):
                copied = task_from_pod(task.pod, empty.shapes)
                copied.job_id = ""
                put_task(empty, copied)
    return empty


def _released(around: ClusterObjects) -> dict[Key, ResourceClaim]:
    """The claims without the allocations that pods hold; one without users may be meant to stay."""
    found = dict(around.resource_claims)
    for key, claim in around.resource_claims.items():
        if (claim.status or {}).get("reservedFor"):
            found[key] = msgspec.structs.replace(claim, status={})
    return found


def stays(task: Task) -> bool:
    owners = task.pod.metadata.owner_references
    return bool(owners) and any(owner.kind in STAYING_OWNERS for owner in owners)


def _emptied(node: Node) -> Node:
    return replace(node, tasks={}, devices={}, row=-1)


def unplaced(subject: TriedJob, placed: list[Pod]) -> TriedJob:
    """The subject with its placed pods as they were before they were placed; those that succeeded need no room."""
    again = [pod for pod in placed if not pod.is_finished and not pod.is_deleting]
    done = sum(pod.status.phase == "Succeeded" for pod in placed)
    pods = (*subject.pods, *(_waiting(pod) for pod in again))
    least = max(0, subject.group.spec.min_member - done)
    return replace(subject.with_spec(min_member=least), pods=pods)


def _waiting(pod: Pod) -> Pod:
    spec = msgspec.structs.replace(pod.spec, node_name="")
    status = msgspec.structs.replace(pod.status, phase="Pending", nominated_node_name="")
    return msgspec.structs.replace(pod, spec=spec, status=status)
