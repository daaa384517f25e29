"""Which kinds the scheduler follows, and which of their changes could change a decision.

Other changes neither trigger a cycle nor touch the snapshot: a node's heartbeat, a condition the scheduler
wrote itself, a counter another component keeps.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

from volcano.api import core, scheduling, topology
from volcano.api.jobs.reservations import RESERVATION_ANNOTATION
from volcano.api.meta import Resource
from volcano.api.reservation import Reservation
from volcano.api.scheduling import WHY_ANNOTATION
from volcano.machinery.world import Change

ESSENTIAL: Final[tuple[type[Resource], ...]] = (core.Node, core.Pod, scheduling.Queue, scheduling.PodGroup)
"""Without these there is nothing to schedule; the others may be missing from a server."""

SURROUNDING: Final[Mapping[type[Resource], str]] = {
    core.Namespace: "namespaces",
    core.PriorityClass: "priority_classes",
    core.PersistentVolume: "volumes",
    core.StorageClass: "storage_classes",
    core.CSINode: "csi_nodes",
    core.ResourceSlice: "resource_slices",
    core.DeviceClass: "device_classes",
    core.ResourceQuota: "resource_quotas",
    core.PodDisruptionBudget: "disruption_budgets",
    core.PersistentVolumeClaim: "claims",
    core.Service: "services",
    core.ReplicaSet: "replica_sets",
    core.StatefulSet: "stateful_sets",
    core.ReplicationController: "replication_controllers",
    core.ResourceClaim: "resource_claims",
    Reservation: "reservations",
}
"""Kinds a snapshot keeps as they are, and the field of ClusterObjects that holds them."""

CLUSTER_WIDE: Final = frozenset(
    {
        core.Namespace,
        core.PriorityClass,
        core.PersistentVolume,
        core.StorageClass,
        core.CSINode,
        core.ResourceSlice,
        core.DeviceClass,
        Reservation,
    }
)
FOLLOWED: Final[tuple[type[Resource], ...]] = (
    *ESSENTIAL,
    *SURROUNDING,
    topology.HyperNode,
    topology.Numatopology,
    topology.NodeShard,
)
OWN_ANNOTATIONS: Final = frozenset({WHY_ANNOTATION, RESERVATION_ANNOTATION})
"""Of PodGroups, written by the scheduler itself."""
QUIET: Final = frozenset(
    {core.Namespace, core.Service, core.ReplicaSet, core.StatefulSet, core.ReplicationController, core.CSINode}
)
"""Taken into account by the next cycle, but no reason for one."""


def matters(change: Change[Any]) -> bool:
    """Whether the snapshot must be changed at all."""
    if change.old is None or change.new is None:
        return True
    part = _PARTS.get(type(change.new))
    return part is None or part(change.old) != part(change.new)


def _of_pod(pod: core.Pod) -> Any:
    status = pod.status
    relevant = (status.phase, status.nominated_node_name, status.start_time, status.resource_claim_statuses)
    return pod.spec, pod.labels, pod.annotations, pod.is_deleting, relevant, _scheduled_at(pod)


def _scheduled_at(pod: core.Pod) -> Any:
    """When the pod got its node: what a cool-down counts from."""
    times = (c.last_transition_time for c in pod.status.conditions if c.type == "PodScheduled" and c.status == "True")
    return next(times, None)


def _of_node(node: core.Node) -> Any:
    status = node.status
    return node.spec, node.labels, node.annotations, status.allocatable, status.capacity, status.images


def _of_queue(queue: scheduling.Queue) -> Any:
    return queue.spec, queue.labels, queue.annotations, queue.status.state, queue.status.allocated


def _of_group(group: scheduling.PodGroup) -> Any:
    return group.spec, group.labels, group.annotations, group.is_deleting, group.status


def _of_namespace(namespace: core.Namespace) -> Any:
    return namespace.labels


_PARTS: Final[Mapping[type[Resource], Callable[[Any], Any]]] = {
    core.Pod: _of_pod,
    core.Node: _of_node,
    scheduling.Queue: _of_queue,
    scheduling.PodGroup: _of_group,
    core.Namespace: _of_namespace,
    core.ReplicaSet: lambda workload: workload.spec.selector,
    core.StatefulSet: lambda workload: workload.spec.selector,
    core.ReplicationController: lambda workload: workload.spec.selector,
    core.Service: lambda service: service.spec.selector,
}


def wakes(change: Change[Any]) -> bool:
    """Whether a change that matters could make another decision possible."""
    kind = type(change.object)
    if kind in QUIET:
        return False
    if change.old is None or change.new is None:
        return True
    if kind is scheduling.Queue:
        return bool(_asked_of_queue(change.old) != _asked_of_queue(change.new))
    if kind is scheduling.PodGroup:
        return bool(asked_of_group(change.old) != asked_of_group(change.new))
    if kind in (topology.NodeShard, Reservation):
        return bool(change.old.spec != change.new.spec)
    return True


def is_urgent(change: Change[Any]) -> bool:
    """Whether a cycle should follow at once: not when a bound pod only advanced on its node."""
    old, new = change.old, change.new
    if not isinstance(old, core.Pod) or not isinstance(new, core.Pod):
        return True
    if not new.spec.node_name or new.is_deleting != old.is_deleting:
        return True
    return new.is_finished and not old.is_finished


def _asked_of_queue(queue: scheduling.Queue) -> Any:
    """Without the fields that the scheduler writes."""
    return queue.spec, queue.annotations, queue.status.state


def asked_of_group(group: scheduling.PodGroup) -> Any:
    annotations = {key: value for key, value in group.annotations.items() if key not in OWN_ANNOTATIONS}
    return group.spec, group.labels, annotations, group.is_deleting
