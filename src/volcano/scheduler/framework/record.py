"""CycleRecord: what a session has decided and has to report, gathered while it runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Container
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from typing import NamedTuple

from volcano.api.jobs.reservations import StartReservation
from volcano.api.jobs.why import Why
from volcano.api.meta import JSON, Key
from volcano.api.scheduling import PodGroupCondition
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.model import CPU, MEMORY, Resources


class BindDecision(NamedTuple):
    task: str  # namespace/pod
    uid: str
    node: str
    job: str
    annotations: dict[str, str]


@dataclass(slots=True, frozen=True)
class EvictionDecision:
    task: str
    uid: str
    node: str
    job: str
    reason: str  # the action
    preemptor: str = ""  # the task room is made for


@dataclass(slots=True, frozen=True)
class Note:
    """An event about a PodGroup, of type Normal or Warning."""

    job: str
    reason: str
    message: str
    type: str = "Normal"


@dataclass(slots=True, frozen=True)
class VolumeChoice:
    """A claim that waited for its pod's node: which volume it gets there, or none when one is to be made."""

    claim: Key
    node: str
    volume: str = ""


@dataclass(slots=True, frozen=True)
class DeviceChoice:
    """A ResourceClaim that a pod uses: its allocation, and whether this session made it or the claim had it."""

    claim: Key
    allocation: JSON
    is_new: bool
    replaces: bool = False
    """Whether the claim has another allocation, which no pod uses and which must be removed first."""


@dataclass(slots=True, frozen=True)
class ClaimRelease:
    """A ResourceClaim that is reserved for pods that have no node and are not about to get one.

    A bind that failed, or a scheduler that was killed, left it so.
    """

    claim: Key
    users: tuple[str, ...]
    """UIDs of these pods."""
    frees: bool
    """Whether no other pod uses the claim, so that its devices are free again."""


@dataclass(slots=True, eq=False)
class FitErrors:
    """Why no node took a task the last time one was sought."""

    nodes: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    base: str = ""  # replaces "0/N nodes are unavailable"
    domain: str = ""
    unresolvable: Mask | None = None  # rows where no eviction would help
    plugin: str = ""

    def __str__(self) -> str:
        text = self.base or f"0/{self.nodes} nodes are unavailable"
        if self.domain:
            text = f"In hyperNode {self.domain}: {text}"
        if not self.reasons:
            return text
        return f"{text}: {', '.join(sorted(f'{count} {reason}' for reason, count in self.reasons.items()))}."


@dataclass(slots=True, frozen=True)
class KeptStatus:
    """What a Reservation's present or next window keeps; the nodes are all of them."""

    start: datetime
    end: datetime
    is_active: bool
    kept: Resources
    missing: Resources
    nodes: tuple[str, ...]


@dataclass(slots=True)
class CycleRecord:
    binds: dict[str, BindDecision] = field(default_factory=dict)  # by uid, in order of decision
    evictions: dict[str, EvictionDecision] = field(default_factory=dict)
    fit_errors: dict[str, dict[str, FitErrors]] = field(default_factory=dict)  # job → task uid →
    failed_roles: dict[str, set[tuple[str, str]]] = field(default_factory=dict)  # job → (sub-job, role)
    job_fit_errors: dict[str, str] = field(default_factory=dict)
    conditions: dict[str, list[PodGroupCondition]] = field(default_factory=dict)  # what this session sets
    notes: list[Note] = field(default_factory=list)
    why: dict[str, Why] = field(default_factory=dict)  # the first blocking reason of each job
    gauges: dict[tuple[str, tuple[str, ...]], float] = field(default_factory=dict)  # metric, label values → value
    counters: Counter[tuple[str, tuple[str, ...]]] = field(default_factory=Counter)
    volumes: dict[str, tuple[VolumeChoice, ...]] = field(default_factory=dict)  # by uid of the bound task
    devices: dict[str, tuple[DeviceChoice, ...]] = field(default_factory=dict)  # by uid of the bound task
    node_locks: dict[str, str] = field(default_factory=dict)  # uid of the bound task → annotation to take on its node
    claim_releases: list[ClaimRelease] = field(default_factory=list)
    gates_to_remove: list[str] = field(default_factory=list)  # namespace/pod
    queue_allocated: dict[str, Resources] = field(default_factory=dict)  # what queues hold beyond their pods' requests
    allocated_domains: dict[str, str] = field(default_factory=dict)  # job or sub-job → hypernode
    reservations: dict[str, StartReservation] = field(default_factory=dict)  # by job
    kept: dict[str, KeptStatus] = field(default_factory=dict)  # by Reservation with a window to come
    estimate_extensions: dict[str, int] = field(default_factory=dict)  # job → how often its estimate was doubled
    needs_another_cycle: bool = False  # because time alone may change what is decided
    seconds: dict[str, float] = field(default_factory=dict)

    def refuse(self, job: str, why: Why) -> None:
        """Remember why a job waits; what was found first is what blocks it."""
        self.why.setdefault(job, why)

    def gauge(self, metric: str, value: float, *labels: str) -> None:
        self.gauges[(metric, labels)] = value

    def gauge_amount(self, metric: str, amount: Resources, *labels: str) -> None:
        """cpu and memory each in a metric of its own, everything else in one with the resource as a label."""
        for resource, value in amount.amounts.items():
            name, label = _metric_of(metric, resource)
            self.gauges[(name, labels + label)] = value

    # -- fit errors -----------------------------------------------------------------------------------------------
    def cannot_fit(self, job: str, uid: str, errors: FitErrors, *, sub_job: str, role: str) -> None:
        self.fit_errors.setdefault(job, {})[uid] = errors
        self.failed_roles.setdefault(job, set()).add((sub_job, role))

    def has_failed(self, job: str, sub_job: str, role: str) -> bool:
        return (sub_job, role) in self.failed_roles.get(job, ())

    def forget_fit_errors(self, job: str, sub_job: str | None = None, uids: Container[str] = ()) -> None:
        """Of a whole job, or of one of its sub-jobs (whose task uids are given)."""
        if sub_job is None:
            self.fit_errors.pop(job, None)
            self.failed_roles.pop(job, None)
            return
        kept = self.fit_errors.get(job, {})
        for uid in [uid for uid in kept if uid in uids]:
            del kept[uid]
        self.failed_roles[job] = {place for place in self.failed_roles.get(job, ()) if place[0] != sub_job}


@cache
def _metric_of(amount: str, resource: str) -> tuple[str, tuple[str, ...]]:
    """The metric of one resource of an amount, and the label that it has in addition."""
    if resource == CPU:
        return f"{amount}_milli_cpu", ()
    if resource == MEMORY:
        return f"{amount}_memory_bytes", ()
    return f"{amount}_scalar_resources", (resource,)
