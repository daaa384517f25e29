"""Where nodes are and who may use them: HyperNode, Numatopology, NodeShard, ColocationConfiguration."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Final

from volcano.api.meta import Condition, LabelSelector, Model, Resource
from volcano.api.schema_annotations import SUBDOMAIN_PATTERN, Name253, wire


class ExactMatch(Model, frozen=True):
    name: Annotated[str, wire(minLength=1, maxLength=253, pattern=SUBDOMAIN_PATTERN, required=True)] = ""


class RegexMatch(Model, frozen=True):
    pattern: Annotated[str, wire(minLength=1, required=True)] = ""


class MemberSelector(Model, frozen=True):
    exact_match: ExactMatch | None = None
    regex_match: RegexMatch | None = None
    label_match: LabelSelector | None = None


SELECTOR_RULES: Final = (
    {
        "rule": "has(self.exactMatch) || has(self.regexMatch) || has(self.labelMatch)",
        "message": "Either ExactMatch or RegexMatch or LabelMatch must be specified",
    },
    {
        "rule": "(has(self.exactMatch) ? 1 : 0) + (has(self.regexMatch) ? 1 : 0) + (has(self.labelMatch) ? 1 : 0) <= 1",
        "message": "Only one of ExactMatch, RegexMatch, or LabelMatch can be specified",
    },
)
"""What the CRD demands of a member's selector, in CEL."""


class Member(Model, frozen=True):
    type: Annotated[str, wire(enum=("Node", "HyperNode"), required=True)] = "Node"
    selector: Annotated[MemberSelector, wire(**{"x-kubernetes-validations": SELECTOR_RULES})] = MemberSelector()


class HyperNodeSpec(Model, frozen=True):
    tier: Annotated[int, wire(minimum=0, required=True)] = 0
    tier_name: Name253 = ""
    members: Annotated[list[Member], wire(minItems=1)] = []


class HyperNodeStatus(Model, frozen=True):
    conditions: list[Condition] = []
    node_count: Annotated[int, wire(minimum=0, format="int64")] = 0


class HyperNode(Resource, frozen=True):
    spec: HyperNodeSpec = HyperNodeSpec()
    status: HyperNodeStatus = HyperNodeStatus()


class NumaResource(Model, frozen=True):
    allocatable: str = ""
    capacity: int = 0


class CpuDetail(Model, frozen=True):
    numa: Annotated[int, wire(minimum=0)] = 0
    socket: Annotated[int, wire(minimum=0)] = 0
    core: Annotated[int, wire(minimum=0)] = 0


class ContainerAllocation(Model, frozen=True):
    name: str = ""
    allocations: dict[str, str] = {}


class PodAllocation(Model, frozen=True):
    uid: str = ""
    name: str = ""
    namespace: str = ""
    container_allocations: list[ContainerAllocation] = []


class NumatopologySpec(Model, frozen=True):
    policies: dict[str, str] = {}
    res_reserved: dict[str, str] = {}
    numares: dict[str, NumaResource] = {}
    cpu_detail: dict[str, CpuDetail] = {}
    pod_allocations: list[PodAllocation] = []


class Numatopology(Resource, frozen=True):
    spec: NumatopologySpec = NumatopologySpec()


class NodeShardSpec(Model, frozen=True):
    nodes_desired: Annotated[list[str], wire(required=True)] = []


class NodeShardStatus(Model, frozen=True):
    last_update_time: datetime | None = None
    nodes_in_use: list[str] = []
    nodes_to_remove: list[str] = []
    nodes_to_add: list[str] = []


class NodeShard(Resource, frozen=True):
    spec: NodeShardSpec = NodeShardSpec()
    status: NodeShardStatus = NodeShardStatus()


class MemoryQos(Model, frozen=True):
    high_ratio: Annotated[int, wire(minimum=0, maximum=100, default=100)] = 100
    low_ratio: Annotated[int, wire(minimum=0, maximum=100, default=0)] = 0
    min_ratio: Annotated[int, wire(minimum=0, maximum=100, default=0)] = 0


class ColocationConfigurationSpec(Model, frozen=True):
    selector: LabelSelector | None = None
    memory_qos: MemoryQos | None = None


class ColocationConfigurationStatus(Model, frozen=True):
    conditions: Annotated[
        list[Condition], wire(**{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ("type",)})
    ] = []


class ColocationConfiguration(Resource, frozen=True):
    spec: ColocationConfigurationSpec = ColocationConfigurationSpec()
    status: ColocationConfigurationStatus = ColocationConfigurationStatus()
