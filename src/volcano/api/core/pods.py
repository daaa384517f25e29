"""Pods and what their specs and statuses hold, as far as components read them."""

from __future__ import annotations

from datetime import datetime
from typing import Final

import msgspec

from volcano.api.meta import (
    JSON,
    Condition,
    LabelSelector,
    LabelSelectorRequirement,
    Model,
    Quantities,
    Resource,
)

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
