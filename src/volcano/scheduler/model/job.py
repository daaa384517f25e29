"""Job: a PodGroup with its tasks, counted by status as they move; SubJob: one of its sub-groups.

Counts are kept as tasks move, so that "is it ready" costs the same for ten tasks and for ten thousand.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from volcano.api.jobs.estimates import LearnedEstimate
from volcano.api.jobs.reservations import StartReservation
from volcano.api.scheduling import PodGroup
from volcano.scheduler.model.resources import Resources
from volcano.scheduler.model.status import ALLOCATED, IS_ALLOCATED, IS_HELD, IS_READY, VALID, Status
from volcano.scheduler.model.task import DAWN, Task


@dataclass(slots=True, frozen=True)
class Topology:
    """How close together tasks must be; hard only with a tier."""

    mode: str = "hard"
    highest_tier: int | None = None
    highest_tier_name: str = ""

    @property
    def is_hard(self) -> bool:
        return self.mode == "hard" and self.highest_tier is not None


class Counts:
    """Tasks by status, for a job, a role or a sub-job; best-effort ones that still wait are counted apart."""

    __slots__ = ("by_status", "pending_best_effort", "ready")

    def __init__(self) -> None:
        self.by_status = [0] * len(Status)
        self.pending_best_effort = 0
        self.ready = 0  # allocated, binding, bound, running or succeeded

    def change(self, task: Task, status: Status, by: int) -> None:
        self.by_status[status] += by
        if IS_READY[status]:
            self.ready += by
        if status == Status.PENDING and task.best_effort:
            self.pending_best_effort += by

    def shift(self, task: Task, before: Status, after: Status, number: int = 1) -> None:
        """A task, or `number` of which this is one, changes its status."""
        self.by_status[before] -= number
        self.by_status[after] += number
        self.ready += (IS_READY[after] - IS_READY[before]) * number
        if task.best_effort:
            self.pending_best_effort += ((after == Status.PENDING) - (before == Status.PENDING)) * number

    def of(self, statuses: tuple[Status, ...]) -> int:
        counts = self.by_status
        return sum([counts[status] for status in statuses])

    @property
    def waiting(self) -> int:
        return self.by_status[Status.PIPELINED]

    @property
    def ready_or_free(self) -> int:
        """Ready ones and those still pending that ask for nothing."""
        return self.ready + self.pending_best_effort

    @property
    def valid(self) -> int:
        return self.of(VALID)


@dataclass(slots=True, eq=False)
class SubJob:
    """Tasks of one sub-group policy with the same match values, or the job's remaining tasks."""

    id: str
    policy_id: str  # one per policy; the job's id for the default sub-job
    min_available: int
    topology: Topology | None = None
    match_index: int = 0
    priority: int = 0
    tasks: dict[str, Task] = field(default_factory=dict)
    counts: Counts = field(default_factory=Counts)
    allocated_domain: str = ""
    nominated_domain: str = ""

    @property
    def is_ready(self) -> bool:
        return self.counts.ready_or_free >= self.min_available

    @property
    def is_pipelined(self) -> bool:
        return self.counts.ready_or_free + self.counts.waiting >= self.min_available


@dataclass(slots=True, eq=False)
class Job:
    id: str  # namespace/podgroup
    name: str
    namespace: str
    queue: str
    group: PodGroup | None = None
    uid: str = ""
    priority: int = 0
    min_available: int = 0
    role_minimums: dict[str, int] = field(default_factory=dict)
    min_resources: Resources | None = None
    phase: str = ""
    created: datetime = DAWN
    waiting_time: timedelta | None = None
    estimate: timedelta | None = None  # how long it will run, as stated by its user
    learned: LearnedEstimate | None = None  # how long past runs took
    reservation: StartReservation | None = None  # as the last cycle decided
    preemptable: bool = False
    preemptable_stated: bool = False
    revocable_zone: str = ""
    budget_min_available: str = ""
    budget_max_unavailable: str = ""
    topology: Topology | None = None
    sub_group_minimums: dict[str, int] = field(default_factory=dict)  # policy id → minSubGroups
    has_policies: bool = False
    allocated_domain: str = ""

    tasks: dict[str, Task] = field(default_factory=dict)
    by_status: list[dict[str, Task]] = field(default_factory=lambda: [{} for _ in Status])
    counts: Counts = field(default_factory=Counts)
    roles: dict[str, Counts] = field(default_factory=dict)
    sub_jobs: dict[str, SubJob] = field(default_factory=dict)
    allocated: Resources = field(default_factory=Resources)
    held: Resources = field(default_factory=Resources)  # allocated, and what is promised to pipelined tasks
    version: int = 0  # grows with every change of status
    changes: set[str] | None = None  # where the job enters its id when it changes
    total_request: Resources = field(default_factory=Resources)
    gated: dict[str, Task] = field(default_factory=dict)

    # -- tasks come, move and go ----------------------------------------------------------------------------------
    def add(self, task: Task) -> None:
        self.tasks[task.uid] = task
        self.total_request.add(task.request)
        if task.gates:
            self.gated[task.uid] = task
        sub_job = self.sub_jobs.get(task.sub_job_id)
        if sub_job is not None:
            sub_job.tasks[task.uid] = task
            sub_job.priority = max(sub_job.priority, task.priority)
        self._count(task, task.status, 1)

    def remove(self, task: Task) -> None:
        self._count(task, task.status, -1)
        self.total_request.withdraw(task.request)
        self.gated.pop(task.uid, None)
        del self.tasks[task.uid]
        sub_job = self.sub_jobs.get(task.sub_job_id)
        if sub_job is not None:
            del sub_job.tasks[task.uid]

    def move(self, task: Task, status: Status) -> None:
        """The only way a task of a job changes its status."""
        before, uid, request = task.status, task.uid, task.request
        del self.by_status[before][uid]
        self.by_status[status][uid] = task
        task.status = status
        self.version += 1  # as `touch` does, which is called for every single move
        if self.changes is not None:
            self.changes.add(self.id)
        if IS_ALLOCATED[before] != IS_ALLOCATED[status]:
            (self.allocated.withdraw if IS_ALLOCATED[before] else self.allocated.add)(request)
        if IS_HELD[before] != IS_HELD[status]:
            (self.held.withdraw if IS_HELD[before] else self.held.add)(request)
        self.counts.shift(task, before, status)
        self.roles[task.role].shift(task, before, status)
        if self.has_policies and task.sub_job_id in self.sub_jobs:
            self.sub_jobs[task.sub_job_id].counts.shift(task, before, status)

    def move_alike(self, tasks: Sequence[Task], status: Status) -> None:
        """The same for several tasks that have one shape, one role, one sub-job and one status."""
        number, first = len(tasks), tasks[0]
        before = first.status
        left, joined = self.by_status[before], self.by_status[status]
        for task in tasks:
            del left[task.uid]
            joined[task.uid] = task
            task.status = status
        self.version += number
        if self.changes is not None:
            self.changes.add(self.id)
        if IS_ALLOCATED[before] != IS_ALLOCATED[status] or IS_HELD[before] != IS_HELD[status]:
            request = first.request * number
            if IS_ALLOCATED[before] != IS_ALLOCATED[status]:
                (self.allocated.withdraw if IS_ALLOCATED[before] else self.allocated.add)(request)
            if IS_HELD[before] != IS_HELD[status]:
                (self.held.withdraw if IS_HELD[before] else self.held.add)(request)
        self.counts.shift(first, before, status, number)
        self.roles[first.role].shift(first, before, status, number)
        if self.has_policies and first.sub_job_id in self.sub_jobs:
            self.sub_jobs[first.sub_job_id].counts.shift(first, before, status, number)

    def touch(self) -> None:
        """Something of the job changed: what was computed from it before holds no more."""
        self.version += 1
        if self.changes is not None:
            self.changes.add(self.id)

    def _count(self, task: Task, status: Status, by: int) -> None:
        self.touch()
        if by > 0:
            self.by_status[status][task.uid] = task
            if IS_ALLOCATED[status]:
                self.allocated.add(task.request)
            if IS_HELD[status]:
                self.held.add(task.request)
        else:
            del self.by_status[status][task.uid]
            if IS_ALLOCATED[status]:
                self.allocated.withdraw(task.request)
            if IS_HELD[status]:
                self.held.withdraw(task.request)
        self.counts.change(task, status, by)
        role = self.roles.get(task.role)
        if role is None:
            role = self.roles[task.role] = Counts()
        role.change(task, status, by)
        if self.has_policies and task.sub_job_id in self.sub_jobs:
            self.sub_jobs[task.sub_job_id].counts.change(task, status, by)

    def expected_run_time(self, default: timedelta) -> timedelta:
        """As stated, else as nine of ten past runs, else the default."""
        if self.estimate is not None:
            return self.estimate
        return timedelta(seconds=self.learned.p90) if self.learned is not None else default

    # -- questions ------------------------------------------------------------------------------------------------
    def with_status(self, status: Status) -> list[Task]:
        """By uid, whatever order they came to it."""
        return sorted(self.by_status[status].values(), key=lambda task: task.uid)

    @property
    def is_pending(self) -> bool:
        return self.group is None or self.phase in ("", "Pending")

    @property
    def is_ready(self) -> bool:
        return self.counts.ready_or_free >= self.min_available

    @property
    def is_pipelined(self) -> bool:
        return self.counts.ready_or_free + self.counts.waiting >= self.min_available

    @property
    def is_starving(self) -> bool:
        return self.counts.ready + self.counts.waiting < self.min_available

    @property
    def allocated_count(self) -> int:
        return self.counts.of(ALLOCATED)

    @property
    def checks_roles(self) -> bool:
        """Role minimums only count when the whole minimum covers them."""
        return bool(self.role_minimums) and self.min_available >= sum(self.role_minimums.values())

    def roles_have(self, *, pending: bool = False, pipelined: bool = False) -> bool:
        """Whether every role with a minimum has that many: ready ones, plus those the flags admit."""
        return not self.checks_roles or all(
            self._occupied(role, pending=pending, pipelined=pipelined) >= minimum
            for role, minimum in self.role_minimums.items()
            if minimum > 0
        )

    def role_occupied(self, role: str) -> int:
        """Allocated and succeeded ones of a role, and those pending that ask for nothing."""
        counts = self.roles.get(role)
        return counts.ready_or_free if counts else 0

    def _occupied(self, role: str, *, pending: bool, pipelined: bool) -> int:
        counts = self.roles.get(role)
        if counts is None:
            return 0
        if pending:
            return counts.valid
        return counts.ready_or_free + (counts.waiting if pipelined else 0)

    @property
    def needs_topology(self) -> bool:
        return self.topology is not None or any(sub.topology is not None for sub in self.sub_jobs.values())

    @property
    def has_hard_topology(self) -> bool:
        topologies = (self.topology, *(sub.topology for sub in self.sub_jobs.values()))
        return any(topology is not None and topology.is_hard for topology in topologies)

    def sub_groups_have(self, ready: dict[str, int]) -> bool:
        """Whether each policy has as many such sub-jobs as it asks for."""
        return all(ready.get(policy, 0) >= least for policy, least in self.sub_group_minimums.items() if least > 0)

    def gated_request(self) -> Resources:
        """What tasks with another component's scheduling gate ask for."""
        held = Resources()
        for task in self.gated.values():
            if task.is_externally_gated:
                held.add(task.request)
        return held

    def without_gated(self, amount: Resources) -> Resources:
        held = self.gated_request()
        if held.is_empty:
            return amount
        lowered = amount.copy()
        for name, value in amount.amounts.items():
            if name in held:
                lowered.amounts[name] = max(value - held[name], 0.0)
        return lowered

    def __repr__(self) -> str:
        return f"<Job {self.id}>"


ORPHANED: Final = ""
"""The job id of a pod without a PodGroup."""


ADOPTED: Final = "pod:"
"""A job of one pod without a PodGroup has an id no PodGroup can have."""


def is_adopted(job_id: str) -> bool:
    """Whether a job has no PodGroup object to write to."""
    return job_id.partition("/")[2].startswith(ADOPTED)
