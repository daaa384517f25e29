"""The one table of kinds: the rows of api.resource_types, and the struct that reads each.

A row is a `ResourceType`. The API server serves the rows of BUILT_IN and whatever CustomResourceDefinitions
add; VOLCANO holds our own kinds, which the server learns through their CRDs like any other.
"""

from __future__ import annotations

from typing import Final

from volcano.api import batch, bus, core, flow, reservation, scheduling, topology
from volcano.api.jobs import sources
from volcano.api.kubelet import AgentPod
from volcano.api.meta import Resource
from volcano.api.resource_types import ALL_ROWS
from volcano.api.resource_types import BUILT_IN as BUILT_IN
from volcano.api.resource_types import NODE_METRICS as NODE_METRICS
from volcano.api.resource_types import POD_METRICS as POD_METRICS
from volcano.api.resource_types import VOLCANO as VOLCANO
from volcano.api.resource_types import ResourceType as ResourceType
from volcano.api.resource_types import find_resource_type as find_resource_type

READERS: Final[dict[type[Resource], ResourceType]] = {
    core.Pod: ALL_ROWS["", "Pod"],
    AgentPod: ALL_ROWS["", "Pod"],
    core.Node: ALL_ROWS["", "Node"],
    core.Namespace: ALL_ROWS["", "Namespace"],
    core.ConfigMap: ALL_ROWS["", "ConfigMap"],
    core.Secret: ALL_ROWS["", "Secret"],
    core.Service: ALL_ROWS["", "Service"],
    core.Endpoints: ALL_ROWS["", "Endpoints"],
    core.EndpointSlice: ALL_ROWS["discovery.k8s.io", "EndpointSlice"],
    core.ServiceAccount: ALL_ROWS["", "ServiceAccount"],
    core.Event: ALL_ROWS["", "Event"],
    core.ResourceQuota: ALL_ROWS["", "ResourceQuota"],
    core.PersistentVolume: ALL_ROWS["", "PersistentVolume"],
    core.PersistentVolumeClaim: ALL_ROWS["", "PersistentVolumeClaim"],
    core.ReplicationController: ALL_ROWS["", "ReplicationController"],
    core.Deployment: ALL_ROWS["apps", "Deployment"],
    core.ReplicaSet: ALL_ROWS["apps", "ReplicaSet"],
    core.StatefulSet: ALL_ROWS["apps", "StatefulSet"],
    core.DaemonSet: ALL_ROWS["apps", "DaemonSet"],
    core.ControllerRevision: ALL_ROWS["apps", "ControllerRevision"],
    core.BatchJob: ALL_ROWS["batch", "Job"],
    core.HorizontalPodAutoscaler: ALL_ROWS["autoscaling", "HorizontalPodAutoscaler"],
    core.PodDisruptionBudget: ALL_ROWS["policy", "PodDisruptionBudget"],
    core.PriorityClass: ALL_ROWS["scheduling.k8s.io", "PriorityClass"],
    core.StorageClass: ALL_ROWS["storage.k8s.io", "StorageClass"],
    core.CSINode: ALL_ROWS["storage.k8s.io", "CSINode"],
    core.Lease: ALL_ROWS["coordination.k8s.io", "Lease"],
    core.ResourceClaim: ALL_ROWS["resource.k8s.io", "ResourceClaim"],
    core.ResourceClaimTemplate: ALL_ROWS["resource.k8s.io", "ResourceClaimTemplate"],
    core.ResourceSlice: ALL_ROWS["resource.k8s.io", "ResourceSlice"],
    core.DeviceClass: ALL_ROWS["resource.k8s.io", "DeviceClass"],
    core.CustomResourceDefinition: ALL_ROWS["apiextensions.k8s.io", "CustomResourceDefinition"],
    batch.Job: ALL_ROWS["batch.volcano.sh", "Job"],
    batch.CronJob: ALL_ROWS["batch.volcano.sh", "CronJob"],
    bus.Command: ALL_ROWS["bus.volcano.sh", "Command"],
    scheduling.PodGroup: ALL_ROWS["scheduling.volcano.sh", "PodGroup"],
    scheduling.Queue: ALL_ROWS["scheduling.volcano.sh", "Queue"],
    flow.JobTemplate: ALL_ROWS["flow.volcano.sh", "JobTemplate"],
    flow.JobFlow: ALL_ROWS["flow.volcano.sh", "JobFlow"],
    sources.CronJobSource: ALL_ROWS["batch.volcano.sh", "CronJob"],
    sources.BatchCronJobSource: ALL_ROWS["batch", "CronJob"],
    sources.JobTemplateSource: ALL_ROWS["flow.volcano.sh", "JobTemplate"],
    sources.JobFlowSource: ALL_ROWS["flow.volcano.sh", "JobFlow"],
    topology.HyperNode: ALL_ROWS["topology.volcano.sh", "HyperNode"],
    topology.Numatopology: ALL_ROWS["nodeinfo.volcano.sh", "Numatopology"],
    topology.NodeShard: ALL_ROWS["shard.volcano.sh", "NodeShard"],
    topology.ColocationConfiguration: ALL_ROWS["config.volcano.sh", "ColocationConfiguration"],
    reservation.Reservation: ALL_ROWS["reservation.volcano.sh", "Reservation"],
}
"""Which struct reads which resource. Several structs may read one resource, each its own part of it."""


def resource_type(reader: type[Resource]) -> ResourceType:
    return READERS[reader]


def custom_resource_type(crd: core.CustomResourceDefinition) -> ResourceType | None:
    """The row of a kind that a CRD defines, in its stored version; None while it serves none."""
    spec = crd.spec
    served = [version for version in spec.versions if version.served]
    if not served:
        return None
    version = next((version for version in served if version.storage), served[0])
    return ResourceType(
        spec.group,
        version.name,
        spec.names.kind,
        spec.names.plural,
        spec.scope == "Namespaced",
        tuple(spec.names.short_names),
        subresources=tuple(sorted(version.subresources or ())),
        singular=spec.names.singular,
    )
