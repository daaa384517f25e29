"""The built-in Kubernetes kinds, as far as the components read them.

Pods and nodes carry what the scheduler and the controllers look at; the agent has a fuller view of a pod
in api.kubelet. Everything else of an object stays in the API server.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Final

import msgspec

from volcano.api.meta import JSON, Condition, LabelSelector, LabelSelectorRequirement, Model, Quantities, Resource
from volcano.api.meta import ObjectReference as ObjectReference

# -- pods -----------------------------------------------------------------------------------------------------
FINISHED_POD_PHASES: Final = ("Succeeded", "Failed")
"""A pod stays in these: no container of it runs again. `Unknown` is not among them, as the node may come back."""


class ResourceRequirements(Model, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None
    claims: list[JSON] = []


class ContainerPort(Model, frozen=True):
    container_port: int = 0
    host_port: int = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"
    name: str = ""


class Container(Model, frozen=True):
    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str = ""


class NodeSelectorTerm(Model, frozen=True):
    match_expressions: list[LabelSelectorRequirement] = []
    match_fields: list[LabelSelectorRequirement] = []


class NodeSelector(Model, frozen=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Model, frozen=True):
    weight: int = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinity(Model, frozen=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None
    preferred_during_scheduling_ignored_during_execution: list[PreferredSchedulingTerm] = []


class PodAffinityTerm(Model, frozen=True):
    label_selector: LabelSelector | None = None
    namespaces: list[str] = []
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: list[str] = []
    mismatch_label_keys: list[str] = []


class WeightedPodAffinityTerm(Model, frozen=True):
    weight: int = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Model, frozen=True):
    required_during_scheduling_ignored_during_execution: list[PodAffinityTerm] = []
    preferred_during_scheduling_ignored_during_execution: list[WeightedPodAffinityTerm] = []


class Affinity(Model, frozen=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class Toleration(Model, frozen=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""
    toleration_seconds: int | None = None


class TopologySpreadConstraint(Model, frozen=True):
    max_skew: int = 1
    topology_key: str = ""
    when_unsatisfiable: str = "DoNotSchedule"
    label_selector: LabelSelector | None = None
    min_domains: int | None = None
    node_affinity_policy: str = ""
    node_taints_policy: str = ""
    match_label_keys: list[str] = []


class ClaimVolume(Model, frozen=True):
    claim_name: str = ""
    read_only: bool = False


class Volume(Model, frozen=True):
    name: str = ""
    persistent_volume_claim: ClaimVolume | None = None
    ephemeral: JSON | None = None
    csi: JSON | None = None
    image: JSON | None = None


class PodResourceClaim(Model, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(Model, frozen=True):
    name: str = ""


class PodSpec(Model, frozen=True):
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: Quantities | None = None
    resources: ResourceRequirements | None = None
    node_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    scheduler_name: str = ""
    priority: int | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    scheduling_gates: list[SchedulingGate] = []
    volumes: list[Volume] = []
    resource_claims: list[PodResourceClaim] = []
    host_network: bool = False
    restart_policy: str = ""
    termination_grace_period_seconds: int | None = None
    active_deadline_seconds: int | None = None
    hostname: str = ""
    subdomain: str = ""


class ContainerStateRunning(Model, frozen=True):
    started_at: datetime | None = None


class ContainerStateTerminated(Model, frozen=True):
    exit_code: int = 0
    signal: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerStateWaiting(Model, frozen=True):
    reason: str = ""
    message: str = ""


class ContainerState(Model, frozen=True):
    running: ContainerStateRunning | None = None
    terminated: ContainerStateTerminated | None = None
    waiting: ContainerStateWaiting | None = None


class ContainerStatus(Model, frozen=True):
    name: str = ""
    ready: bool = False
    restart_count: int = 0
    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()


class ResourceClaimStatus(Model, frozen=True):
    name: str = ""
    resource_claim_name: str | None = None


class PodStatus(Model, frozen=True):
    phase: str = ""
    reason: str = ""
    message: str = ""
    conditions: list[Condition] = []
    start_time: datetime | None = None
    nominated_node_name: str = ""
    pod_ip: str = msgspec.field(default="", name="podIP")
    host_ip: str = msgspec.field(default="", name="hostIP")
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resource_claim_statuses: list[ResourceClaimStatus] = []


class Pod(Resource, frozen=True):
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def is_finished(self) -> bool:
        return self.status.phase in FINISHED_POD_PHASES


# -- nodes ----------------------------------------------------------------------------------------------------
class Taint(Model, frozen=True):
    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Model, frozen=True):
    unschedulable: bool = False
    taints: list[Taint] = []
    provider_id: str = msgspec.field(default="", name="providerID")


class ContainerImage(Model, frozen=True):
    names: list[str] = []
    size_bytes: int = 0


class NodeAddress(Model, frozen=True):
    type: str = ""
    address: str = ""


class NodeStatus(Model, frozen=True):
    capacity: Quantities | None = None
    allocatable: Quantities | None = None
    conditions: list[Condition] = []
    images: list[ContainerImage] = []
    addresses: list[NodeAddress] = []
    daemon_endpoints: JSON | None = None


class Node(Resource, frozen=True):
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


# -- what surrounds them ------------------------------------------------------------------------------------------
class Namespace(Resource, frozen=True):
    status: JSON | None = None
    spec: JSON | None = None


class PriorityClass(Resource, frozen=True):
    value: int = 0
    global_default: bool = False
    preemption_policy: str | None = None
    description: str = ""


class ConfigMap(Resource, frozen=True):
    data: dict[str, str] | None = None
    binary_data: dict[str, str] | None = None
    immutable: bool | None = None


class Secret(Resource, frozen=True):
    type: str = ""
    data: dict[str, str] | None = None
    immutable: bool | None = None


class ServicePort(Model, frozen=True):
    name: str = ""
    protocol: str = "TCP"
    port: int = 0
    target_port: int | str | None = None
    node_port: int = 0


class ServiceSpec(Model, frozen=True):
    selector: dict[str, str] = {}
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    ports: list[ServicePort] = []
    type: str = ""
    publish_not_ready_addresses: bool = False
    external_name: str = ""


class Service(Resource, frozen=True):
    spec: ServiceSpec = ServiceSpec()
    status: JSON | None = None


class Endpoints(Resource, frozen=True):
    subsets: list[JSON] = []


class EndpointSlice(Resource, frozen=True):
    address_type: str = ""
    endpoints: list[JSON] = []
    ports: list[JSON] = []


class ServiceAccount(Resource, frozen=True):
    secrets: list[ObjectReference] = []
    automount_service_account_token: bool | None = None


class ClaimResources(Model, frozen=True):
    requests: Quantities | None = None
    limits: Quantities | None = None


class PersistentVolumeClaimSpec(Model, frozen=True):
    access_modes: list[str] = []
    resources: ClaimResources = ClaimResources()
    storage_class_name: str | None = None
    volume_name: str = ""
    volume_mode: str | None = None
    selector: LabelSelector | None = None


class PersistentVolumeClaimStatus(Model, frozen=True):
    phase: str = ""
    capacity: Quantities | None = None


class PersistentVolumeClaim(Resource, frozen=True):
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()


class VolumeNodeAffinity(Model, frozen=True):
    required: NodeSelector | None = None


class PersistentVolumeSpec(Model, frozen=True):
    capacity: Quantities | None = None
    access_modes: list[str] = []
    storage_class_name: str = ""
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    persistent_volume_reclaim_policy: str = ""
    volume_mode: str | None = None
    local: JSON | None = None
    host_path: JSON | None = None
    csi: JSON | None = None


class PersistentVolumeStatus(Model, frozen=True):
    phase: str = ""


class PersistentVolume(Resource, frozen=True):
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class StorageClass(Resource, frozen=True):
    provisioner: str = ""
    volume_binding_mode: str | None = None
    reclaim_policy: str | None = None
    parameters: dict[str, str] | None = None
    allowed_topologies: list[JSON] = []


class CSINodeDriver(Model, frozen=True):
    name: str = ""
    allocatable: JSON | None = None


class CSINodeSpec(Model, frozen=True):
    drivers: list[CSINodeDriver] = []


class CSINode(Resource, frozen=True):
    spec: CSINodeSpec = CSINodeSpec()


class ResourceQuotaSpec(Model, frozen=True):
    hard: Quantities | None = None
    scopes: list[str] = []
    scope_selector: JSON | None = None


class ResourceQuotaStatus(Model, frozen=True):
    hard: Quantities | None = None
    used: Quantities | None = None


class ResourceQuota(Resource, frozen=True):
    spec: ResourceQuotaSpec = ResourceQuotaSpec()
    status: ResourceQuotaStatus = ResourceQuotaStatus()


class PodDisruptionBudgetSpec(Model, frozen=True):
    min_available: int | str | None = None
    max_unavailable: int | str | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Model, frozen=True):
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    observed_generation: int = 0
    disrupted_pods: dict[str, datetime] | None = None
    conditions: list[Condition] = []


class PodDisruptionBudget(Resource, frozen=True):
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class LeaseSpec(Model, frozen=True):
    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: datetime | None = None
    renew_time: datetime | None = None
    lease_transitions: int | None = None


class Lease(Resource, frozen=True):
    spec: LeaseSpec = LeaseSpec()


class EventSource(Model, frozen=True):
    component: str = ""
    host: str = ""


class Event(Resource, frozen=True):
    involved_object: ObjectReference = ObjectReference()
    reason: str = ""
    message: str = ""
    type: str = ""
    count: int = 0
    first_timestamp: datetime | None = None
    last_timestamp: datetime | None = None
    source: EventSource = EventSource()


# -- workloads ------------------------------------------------------------------------------------------------
class WorkloadSpec(Model, frozen=True):
    """What ReplicaSets, StatefulSets, Deployments, DaemonSets and ReplicationControllers have in common."""

    replicas: int | None = None
    selector: Any = None
    template: JSON | None = None
    min_ready_seconds: int = 0
    revision_history_limit: int | None = None


class ReplicaSet(Resource, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: JSON | None = None


class StatefulSetSpec(WorkloadSpec, frozen=True):
    service_name: str = ""
    pod_management_policy: str = ""
    update_strategy: JSON | None = None
    volume_claim_templates: list[JSON] = []
    ordinals: JSON | None = None


class StatefulSet(Resource, frozen=True):
    spec: StatefulSetSpec = StatefulSetSpec()
    status: JSON | None = None


class DeploymentSpec(WorkloadSpec, frozen=True):
    strategy: JSON | None = None
    paused: bool = False
    progress_deadline_seconds: int | None = None


class Deployment(Resource, frozen=True):
    spec: DeploymentSpec = DeploymentSpec()
    status: JSON | None = None


class DaemonSet(Resource, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: JSON | None = None


class ControllerRevision(Resource, frozen=True):
    data: JSON | None = None
    revision: int = 0


class ReplicationController(Resource, frozen=True):
    spec: WorkloadSpec = WorkloadSpec()
    status: JSON | None = None


class BatchJob(Resource, frozen=True):
    """batch/v1 Job, Kubernetes' own; Volcano's is api.batch.Job."""

    spec: JSON | None = None
    status: JSON | None = None


# -- devices (dynamic resource allocation), read by later plugins --------------------------------------------------
class ResourceClaim(Resource, frozen=True):
    spec: JSON | None = None
    status: JSON | None = None


class ResourceSlice(Resource, frozen=True):
    spec: JSON | None = None


class DeviceClass(Resource, frozen=True):
    spec: JSON | None = None


# -- kinds that people define -----------------------------------------------------------------------------------
class CustomResourceNames(Model, frozen=True):
    kind: str = ""
    plural: str = ""
    singular: str = ""
    short_names: list[str] = []


class CustomResourceVersion(Model, frozen=True):
    name: str = ""
    served: bool = False
    storage: bool = False
    subresources: JSON | None = None


class CustomResourceDefinitionSpec(Model, frozen=True):
    group: str = ""
    scope: str = ""
    names: CustomResourceNames = CustomResourceNames()
    versions: list[CustomResourceVersion] = []


class CustomResourceDefinition(Resource, frozen=True):
    """As far as it says which kind there is; the API server has its own, full view."""

    spec: CustomResourceDefinitionSpec = CustomResourceDefinitionSpec()
