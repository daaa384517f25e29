"""Session: one cycle's state, which actions and plugins share; asking, answering and moving are parts of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

import numpy as np

from volcano.scheduler.core.cards import CardAccounts
from volcano.scheduler.core.domain_columns import DomainColumns
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.alike import Alike
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.moves import Moves
from volcano.scheduler.framework.node_answers import NodeAnswers
from volcano.scheduler.framework.questions import Answering, Questions
from volcano.scheduler.framework.record import CycleRecord
from volcano.scheduler.model import (
    Chance,
    Domains,
    Job,
    Queue,
    Resources,
    Status,
    StoppedTimer,
    Task,
    Timer,
)

if TYPE_CHECKING:
    from volcano.scheduler.framework.kept_room import KeptRoom


@dataclass(slots=True, eq=False)
class Session:
    """`ask` plugins, get `nodes` answers, make `moves` (through Statements), leave a `record`."""

    snapshot: Snapshot
    config: SchedulerConfig
    chance: Chance
    timer: Timer = field(default_factory=StoppedTimer)
    only: str = ""  # the id of the one job that takes part in a trial; empty: all do
    table: NodeTable = field(init=False)
    jobs: dict[str, Job] = field(init=False)
    queues: dict[str, Queue] = field(init=False)
    has_guarantees: bool = field(init=False)  # whether any queue is guaranteed anything
    domains: Domains = field(init=False)
    domain_columns: DomainColumns = field(init=False)
    total: Resources = field(init=False)  # of all nodes' allocatable
    record: CycleRecord = field(init=False)
    ask: Questions = field(init=False)
    alike: Alike = field(init=False)
    nodes: NodeAnswers = field(init=False)
    moves: Moves = field(init=False)
    open_versions: dict[str, int] = field(init=False)  # of the jobs that are not settled, as the session opened
    waiting: list[Job] = field(init=False)  # jobs with something to place, or to let in
    kept_room: KeptRoom | None = field(init=False, default=None)  # what Reservations keep; None: nothing
    card_accounts: CardAccounts = field(init=False, default_factory=CardAccounts)
    in_shard: Mask | None = field(init=False, default=None)  # with soft sharding: the nodes that are preferred

    def __post_init__(self) -> None:
        snapshot = self.snapshot
        self.table = snapshot.table
        self.table.forget_changes()
        self.table.uncounted = frozenset()
        self.jobs = snapshot.schedulable_jobs()
        self.queues = snapshot.queues
        self.has_guarantees = any(queue.guarantee is not None for queue in snapshot.queues.values())
        rooted = snapshot.rooted_domains()
        self.domains, self.domain_columns = rooted.domains, rooted.columns
        self.record = CycleRecord()
        self.moves = Moves(snapshot)
        snapshot.ledger.update(self.jobs, snapshot.jobs.take_changed())
        settled = snapshot.settled
        taking_part = [(id, self.jobs[id]) for id in sorted(snapshot.jobs.unsettled) if id in self.jobs]
        if self.only:
            taking_part = [(job.id, job) for job in self._tried()]
        self.open_versions = {
            id: job.version
            for id, job in taking_part
            if (known := settled.get(id)) is None or known.job is not job or known.version != job.version
        }
        snapshot.jobs.unsettled.difference_update([id for id, _ in taking_part if id not in self.open_versions])
        self.waiting = [self.jobs[id] for id in self.open_versions if not _wants_nothing(self.jobs[id])]
        sums = self.table.allocatable.sum(axis=1)
        self.total = Resources({name: float(sums[at]) for name, at in self.table.resources.items() if sums[at] > 0.0})

    def _tried(self) -> list[Job]:
        return [self.jobs[self.only]] if self.only in self.jobs else []

    def enrol(self, plugins: Mapping[str, Answering], *, keeps_pods_current: bool) -> None:
        """Determine which plugins answer which point; called once, when all plugins are open."""
        self.table.track_presence = keeps_pods_current
        self.ask = Questions(self.config, plugins)
        self.alike = Alike(self.ask)
        self.moves.notify(self.ask, self.alike)
        shard = self.snapshot.cluster.shard
        members: Mask | None = None
        if shard.mode in ("hard", "soft"):
            members = np.array([node.name in shard.nodes for node in self.table.nodes], dtype=bool)
        self.nodes = NodeAnswers(self.table, self.ask, members if shard.mode == "hard" else None)
        self.in_shard = members if shard.mode == "soft" else None

    @property
    def now(self) -> datetime:
        return self.snapshot.now

    @property
    def admits_by_gate(self) -> bool:
        return self.snapshot.admits_by_gate

    @property
    def unsettled(self) -> list[Job]:
        """Jobs whose result must be computed; that of the others is reused from the last cycle."""
        ids = self.open_versions.keys() | (self.moves.touched_jobs & self.jobs.keys())
        return [self.jobs[id] for id in sorted(ids)]

    def job_of(self, task: Task) -> Job | None:
        return self.jobs.get(task.job_id)

    def queue_of(self, task: Task) -> Queue | None:
        job = self.jobs.get(task.job_id)
        return None if job is None else self.queues.get(job.queue)

    def is_enabled(self, action: str) -> bool:
        return action in self.config.actions

    def restore(self) -> None:
        """The snapshot is again what it was when the session opened."""
        self.moves.restore()
        self.table.track_presence = True


def _wants_nothing(job: Job) -> bool:
    return not (job.by_status[Status.PENDING] or job.by_status[Status.PIPELINED] or job.is_pending)
