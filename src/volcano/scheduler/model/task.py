"""Task: one pod to place. Its status and node change only through a Statement (or the cache at the edge)."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from volcano.api.core import Pod
from volcano.scheduler.model.resources import Resources
from volcano.scheduler.model.status import IS_TERMINATED, Status

DAWN: Final = datetime(1, 1, 1, tzinfo=UTC)
"""The creation time of what has none; it orders before everything."""

QUEUE_GATE: Final = "scheduling.volcano.sh/queue-allocation-gate"
PREEMPTABLE_KEY: Final = "volcano.sh/preemptable"
REVOCABLE_ZONE_KEY: Final = "volcano.sh/revocable-zone"


@dataclass(slots=True, eq=False)
class Shape:
    """What tasks that ask the same of a node have in common; interned, so identity is equality.

    Same namespace, requests and limits, selectors, affinity, tolerations, spread constraints, host ports, volumes,
    claims and images. Labels, annotations, job and queue are *not* part of it: a plugin whose answer depends on one
    of them returns it from `sharing_key`.
    """

    number: int
    request: Resources
    assumed_cpu: float  # with Kubernetes' defaults for containers that state nothing
    assumed_memory: float
    pod: Pod  # any one of them, for reading the spec
    sociable: bool = False  # has pod (anti-)affinity
    notable: bool = False  # has pod (anti-)affinity, host ports or volumes: its presence matters to others
    presence: npt.NDArray[np.float64] = field(init=False)  # what one such pod adds to a node, as Kubernetes counts

    def __post_init__(self) -> None:
        self.presence = np.array([self.assumed_cpu, self.assumed_memory, 1.0])


@dataclass(slots=True, eq=False, frozen=True)
class LastTransaction:
    """Where a discarded statement had placed the task; only to explain why it waits."""

    status: Status
    node: str
    eviction_occurred: bool


@dataclass(slots=True, eq=False)
class Task:
    uid: str
    name: str
    namespace: str
    job_id: str  # namespace/podgroup; empty for a pod without a group
    role: str
    shape: Shape
    request: Resources
    priority: int
    pod: Pod
    status: Status
    node: str = ""
    preemptable: bool = True
    revocable_zone: str = ""
    best_effort: bool = False
    gates: tuple[str, ...] = ()
    nominated_node: str = ""
    index: int | None = None  # the number at the end of the pod's name
    created: datetime = DAWN
    sub_job_id: str = ""
    eviction_occurred: bool = False
    evicted: bool = False  # by this session; such a pod no longer counts for predicates
    reprieved: bool = False  # evicted and reinstated by this session; Volcano then overlooks its request and its pod
    allocated_domain: str = ""  # the hypernode its sub-job is being placed in
    bind_annotations: dict[str, str] = field(default_factory=dict)
    last_transaction: LastTransaction | None = None
    claims: tuple[str, ...] = ()  # ResourceClaims by namespace/name
    extension: dict[str, Any] = field(default_factory=dict)  # what a plugin keeps with a task during a session

    @property
    def key(self) -> str:
        return f"{self.namespace}/{self.name}"

    @property
    def is_gated(self) -> bool:
        return bool(self.gates)

    @property
    def is_externally_gated(self) -> bool:
        """Has a scheduling gate of another component; the queue's own gate does not count."""
        return bool(self.gates) and self.gates != (QUEUE_GATE,)

    @property
    def asks_for_queue_admission(self) -> bool:
        return self.pod.annotations.get(QUEUE_GATE) == "true"

    @property
    def is_terminated(self) -> bool:
        return IS_TERMINATED[self.status]

    @property
    def preempts(self) -> bool:
        return self.pod.spec.preemption_policy != "Never"

    def __repr__(self) -> str:
        return f"<Task {self.key} {self.status.label}{' on ' + self.node if self.node else ''}>"
