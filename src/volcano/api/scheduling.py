"""scheduling.volcano.sh/v1beta1: Queue and PodGroup."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

import msgspec

from volcano.api.meta import LabelSelector, Model, Quantities, Resource
from volcano.api.schema_annotations import Count, Int32, Name253, Subdomain, wire

GROUP_NAME_ANNOTATION: Final = "scheduling.k8s.io/group-name"
QUEUE_NAME_ANNOTATION: Final = "scheduling.volcano.sh/queue-name"
WHY_ANNOTATION: Final = "scheduling.volcano.sh/why"
TASK_SPEC_KEY: Final = "volcano.sh/task-spec"


class NetworkTopology(Model, frozen=True):
    mode: Annotated[str, wire(enum=("hard", "soft"), default="hard")] = "hard"
    highest_tier_allowed: Annotated[int, wire(minimum=0)] | None = None
    highest_tier_name: Name253 = ""


# -- PodGroup -------------------------------------------------------------------------------------------------
POD_GROUP_PHASES: Final = ("Pending", "Running", "Unknown", "Inqueue", "Completed")


class SubGroupPolicy(Model, frozen=True):
    name: Name253 = ""
    network_topology: NetworkTopology | None = None
    sub_group_size: Annotated[int, wire(minimum=1, format="int32", default=1)] | None = None
    min_sub_groups: Annotated[int, wire(minimum=0, format="int32", default=0)] | None = None
    label_selector: LabelSelector | None = None
    match_label_keys: Annotated[list[str], wire(**{"x-kubernetes-list-type": "atomic"})] = []


class PodGroupSpec(Model, frozen=True):
    min_member: Count = 0
    min_task_member: dict[str, Int32] = {}
    queue: Annotated[Subdomain, wire(default="default")] = "default"
    priority_class_name: Name253 = ""
    min_resources: Quantities | None = None
    network_topology: NetworkTopology | None = None
    sub_group_policy: list[SubGroupPolicy] = []


class PodGroupCondition(Model, frozen=True):
    type: str = ""
    status: str = ""
    transition_id: str = msgspec.field(default="", name="transitionID")
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class PodGroupStatus(Model, frozen=True):
    phase: Annotated[str, wire(enum=POD_GROUP_PHASES)] = ""
    conditions: list[PodGroupCondition] = []
    running: Count = 0
    succeeded: Count = 0
    failed: Count = 0


class PodGroup(Resource, frozen=True):
    spec: PodGroupSpec = PodGroupSpec()
    status: PodGroupStatus = PodGroupStatus()

    @property
    def queue(self) -> str:
        return self.spec.queue

    @property
    def phase(self) -> str:
        return self.status.phase


# -- Queue ----------------------------------------------------------------------------------------------------
ROOT_QUEUE: Final = "root"
QUEUE_STATES: Final = ("Open", "Closed", "Closing", "Unknown")


class QueueGuarantee(Model, frozen=True):
    resource: Quantities | None = None


class NodeGroupRule(Model, frozen=True):
    required_during_scheduling_ignored_during_execution: list[str] = []
    preferred_during_scheduling_ignored_during_execution: list[str] = []


class QueueAffinity(Model, frozen=True):
    node_group_affinity: NodeGroupRule | None = None
    node_group_anti_affinity: NodeGroupRule | None = None


class ExtendCluster(Model, frozen=True):
    name: str = ""
    weight: Int32 = 0
    capacity: Quantities | None = None


class QueueSpec(Model, frozen=True):
    weight: Annotated[int, wire(minimum=1, maximum=65535, format="int32", default=1)] = 1
    capability: Quantities | None = None
    reclaimable: bool | None = None
    extend_clusters: list[ExtendCluster] = []
    guarantee: QueueGuarantee | None = None
    affinity: QueueAffinity | None = None
    type: Name253 = ""
    parent: Subdomain = ""
    deserved: Quantities | None = None
    priority: Count = 0
    dequeue_strategy: Annotated[str, wire(enum=("fifo", "traverse"), default="traverse")] = "traverse"


def deserved_amounts(deserved: Quantities | None, guarantee: Quantities | None) -> Quantities:
    """What a queue deserves: at least what it is guaranteed, also where it does not say so."""
    return {**(guarantee or {}), **(deserved or {})}


class QueueReservation(Model, frozen=True):
    nodes: list[str] = []
    resource: Quantities | None = None


class QueueStatus(Model, frozen=True):
    state: Annotated[str, wire(enum=QUEUE_STATES)] = ""
    unknown: Count = 0
    pending: Count = 0
    running: Count = 0
    inqueue: Count = 0
    completed: Count = 0
    reservation: QueueReservation | None = None
    allocated: Quantities | None = None


class Queue(Resource, frozen=True):
    spec: QueueSpec = QueueSpec()
    status: QueueStatus = QueueStatus()
