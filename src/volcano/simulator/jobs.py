"""A job of a simulated workload: gangs of pods with a run time, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from volcano.api import batch
from volcano.api.quantity import parse_quantity


@dataclass(slots=True, frozen=True)
class Role:
    """So many equal pods: what each requests (as Kubernetes quantities), and further fields of its pod spec."""

    name: str
    count: int
    requests: Mapping[str, str]
    spec: Mapping[str, object] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


@dataclass(slots=True, frozen=True)
class WorkloadJob:
    """`submit`, `run_time` and `estimate` in seconds; `min_available` 0 means all its pods."""

    name: str
    submit: float
    run_time: float
    roles: tuple[Role, ...]
    estimate: float | None = None
    queue: str = "default"
    user: str = ""
    priority_class: str = ""
    min_available: int = 0
    preemptable: bool = True
    manifest: batch.Job | None = None  # the whole Job, where the workload states one; roles then follow from it
    waited: float = 0.0  # seconds that it had waited already when the simulation begins
    min_resources: Mapping[str, str] | None = None  # of its PodGroup; None: what its minimum of pods requests
    workers: str = ""  # the role whose pods share the work: with fewer of them it takes correspondingly longer

    @property
    def pods(self) -> int:
        return sum(role.count for role in self.roles)

    @property
    def all_workers(self) -> int:
        return sum(role.count for role in self.roles if role.name == self.workers)


def amounts_of_role(role: Role) -> dict[str, float]:
    """What one pod requests."""
    return {name: float(parse_quantity(text)) for name, text in role.requests.items()}


@dataclass(slots=True, frozen=True)
class JobAttempt:
    """From when to when a job's gang ran, and on which nodes; `end` None: it still runs."""

    start: float
    end: float | None
    nodes: tuple[str, ...]


@dataclass(slots=True)
class JobOutcome:
    """What became of a job; times in seconds of the simulation."""

    job: WorkloadJob
    start: float | None = None  # of the first attempt
    last_start: float | None = None
    end: float | None = None
    attempts: int = 0
    evictions: int = 0
    lost_seconds: float = 0.0  # pod-seconds of work that evictions threw away
    nodes: tuple[str, ...] = ()
    ran: float | None = None  # how long the last attempt takes where it runs; depends on the network model
    failed: str = ""  # why it ended without having finished
    earlier: list[JobAttempt] = field(default_factory=list)  # attempts that evictions or failures ended

    @property
    def wait(self) -> float | None:
        return None if self.start is None else self.start - self.job.submit
