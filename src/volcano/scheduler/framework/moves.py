"""Moves: the only code that changes tasks, jobs and node rows during a session, and can put everything back.

Statements record what they do through it, so that they can undo it; `restore` undoes a whole session.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.alike import Alike
from volcano.scheduler.framework.questions import Questions
from volcano.scheduler.model import Job, Node, Status, SubJob, Task, Topology


class Origin(NamedTuple):
    """How a task was when the session opened."""

    task: Task
    status: Status
    node: str


@dataclass(slots=True, frozen=True)
class TopologyOrigin:
    """The network topology and the domain that a job or sub-job had when the session opened."""

    owner: Job | SubJob
    topology: Topology | None
    domain: str


class Moves:
    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot
        self._table = snapshot.table
        self._jobs = snapshot.jobs
        self._origins: dict[str, Origin] = {}
        self._touched: set[str] = set()
        self._phases: dict[str, tuple[Job, str]] = {}
        self._topologies: dict[int, TopologyOrigin] = {}  # by the identity of the owner

    def notify(self, ask: Questions, alike: Alike) -> None:
        """From now on every change is reported to the plugins."""
        self._ask, self._alike = ask, alike

    def place(self, task: Task, node: Node, status: Status, *, eviction_occurred: bool = False) -> str | None:
        """Allocate or pipeline; an objection of a plugin undoes it and is returned."""
        self._remember(task)
        self._set(task, status)
        task.node = node.name
        task.eviction_occurred = eviction_occurred
        self._table.occupy(task, node)
        objection = self._ask.allocated(task)
        if objection is not None:
            self.lift(task)
        return objection

    def place_alike(self, job: Job, tasks: Sequence[Task], rows: Sequence[int]) -> None:
        """Allocate waiting tasks of one shape of a job, each to its row, where plugins permit that in one step."""
        nodes, origins = self._table.nodes, self._origins
        self._touched.add(job.id)
        for task, row in zip(tasks, rows, strict=True):
            origins.setdefault(task.uid, Origin(task, task.status, task.node))
            task.node = nodes[row].name
            task.eviction_occurred = False
        job.move_alike(tasks, Status.ALLOCATED)
        self._table.occupy_alike(tasks, rows)
        self._alike.allocated(tasks)

    def lift(self, task: Task) -> None:
        """The inverse of place: the task waits again."""
        node = self._snapshot.node_of(task)
        if node is not None:
            self._table.vacate(task, node)
        self._set(task, Status.PENDING)
        self._ask.deallocated(task)
        task.node = ""
        task.allocated_domain = ""
        task.eviction_occurred = False

    def evict(self, task: Task) -> None:
        self._remember(task)
        self._restate(task, Status.RELEASING, evicted=True)
        self._ask.deallocated(task)

    def reinstate(self, task: Task) -> None:
        """The inverse of evict; the task then counts as running, whatever it was."""
        task.reprieved = True
        self._restate(task, Status.RUNNING, evicted=False)
        self._ask.allocated(task)

    def bring_back(self, task: Task, status: Status) -> None:
        """End a trial eviction without a trace."""
        self._restate(task, status, evicted=False)
        self._ask.allocated(task)

    def bind_alike(self, tasks: Sequence[Task]) -> None:
        """Allocated tasks of one shape and role of a job are on their way; amounts stay."""
        job = self._jobs.get(tasks[0].job_id)
        if job is not None:
            job.move_alike(tasks, Status.BINDING)
            return
        for task in tasks:
            task.status = Status.BINDING

    def set_phase(self, job: Job, phase: str) -> None:
        self._phases.setdefault(job.id, (job, job.phase))
        job.phase = phase

    def set_topology(self, owner: Job | SubJob, topology: Topology | None) -> None:
        """Replace a stated topology by what it means in this session."""
        self._topologies.setdefault(id(owner), TopologyOrigin(owner, owner.topology, owner.allocated_domain))
        owner.topology = topology

    @property
    def touched_jobs(self) -> set[str]:
        """Jobs of which this session changed anything."""
        return self._touched | self._phases.keys()

    def restore(self) -> None:
        """Put every task and phase back as it was when the session opened; plugins are not notified."""
        for origin in self._origins.values():
            task = origin.task
            node = self._snapshot.node_of(task)
            if node is not None and task.key in node.tasks:
                self._table.vacate(task, node)
            if origin.status == Status.PENDING and task.status != Status.BINDING:
                task.bind_annotations = {}
            self._set(task, origin.status)
            task.node, task.evicted, task.reprieved, task.eviction_occurred = origin.node, False, False, False
            task.last_transaction = None
            task.extension.clear()
            home = self._snapshot.node_of(task)
            if home is not None and not task.is_terminated:
                self._table.occupy(task, home)
        for job, phase in self._phases.values():
            job.phase = phase
        for was in self._topologies.values():
            was.owner.topology, was.owner.allocated_domain = was.topology, was.domain
            if isinstance(was.owner, SubJob):
                was.owner.nominated_domain = ""
        self._origins.clear()
        self._touched.clear()
        self._phases.clear()
        self._topologies.clear()

    def _remember(self, task: Task) -> None:
        if task.uid not in self._origins:
            self._origins[task.uid] = Origin(task, task.status, task.node)
            self._touched.add(task.job_id)

    def _set(self, task: Task, status: Status) -> None:
        job = self._jobs.get(task.job_id)
        if job is None:
            task.status = status
        else:
            job.move(task, status)

    def _restate(self, task: Task, status: Status, *, evicted: bool) -> None:
        node = self._snapshot.node_of(task)
        if node is not None:
            self._table.restate(task, node, status, evicted=evicted)
        task.evicted = evicted
        self._set(task, status)
