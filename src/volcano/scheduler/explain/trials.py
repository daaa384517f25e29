"""Trials: what would become of one job now, tried by the scheduler's own actions; the snapshot is left as it was.

Only the job takes part: jobs that wait and come first were refused on the same snapshot, and those that come after it
cannot matter to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Final

import msgspec

from volcano.api.core import Pod
from volcano.api.scheduling import PodGroup
from volcano.scheduler.actions import ACTIONS, Action
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import PluginOption, SchedulerConfig
from volcano.scheduler.framework.opening import open_session
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.record import EvictionDecision
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, SeededChance, Status, StoppedTimer
from volcano.scheduler.model.read import job_from, place_in_sub_job, task_from_pod
from volcano.scheduler.plugins import PLUGINS

QUEUE_PLUGINS: Final = frozenset({"proportion", "capacity", "overcommit", "resourcequota", "sla"})
"""Plugins that limit what a queue may hold or let in."""
ACTIONS_IN_ORDER: Final = ("enqueue", "allocate", "backfill", "preempt", "reclaim")


@dataclass(slots=True, frozen=True)
class TrialRules:
    """The configuration in force, with the plugins and actions it names; or what it would be after a change."""

    config: SchedulerConfig
    plugins: Mapping[str, type[Plugin]] = field(default_factory=lambda: PLUGINS)
    actions: Mapping[str, Action] = field(default_factory=lambda: ACTIONS)

    def without_queues(self) -> TrialRules:
        """The same rules, with queues that may hold everything."""
        tiers = tuple(tuple(o for o in tier if o.name not in QUEUE_PLUGINS) for tier in self.config.tiers)
        return replace(self, config=replace(self.config, tiers=tiers))

    def with_actions(self, *names: str) -> TrialRules:
        added = [name for name in ACTIONS_IN_ORDER if name in names and name not in self.config.actions]
        return replace(self, config=replace(self.config, actions=(*self.config.actions, *added)))

    def option(self, plugin: str) -> PluginOption | None:
        return next((each for tier in self.config.tiers for each in tier if each.name == plugin), None)


@dataclass(slots=True, frozen=True)
class TriedJob:
    """A PodGroup and those of its pods that are not placed, as they are or as they would be after a change."""

    group: PodGroup
    pods: tuple[Pod, ...] = ()

    @property
    def id(self) -> str:
        return f"{self.group.namespace or 'default'}/{self.group.name}"

    def with_spec(self, **changed: Any) -> TriedJob:
        spec = msgspec.structs.replace(self.group.spec, **changed)
        return replace(self, group=msgspec.structs.replace(self.group, spec=spec))

    def of_any_size(self) -> TriedJob:
        """The same pods, each of which may start alone."""
        return self.with_spec(min_member=0, min_task_member={}, min_resources=None)


@dataclass(slots=True)
class TrialResult:
    """What became of the job: pods given and promised a node, whether it would start, who would be evicted for it."""

    bound: int = 0
    promised: int = 0
    starts: bool = False  # its gang is whole with what is free now
    will_start: bool = False  # or with what is promised to it
    evictions: list[EvictionDecision] = field(default_factory=list)
    nodes: dict[str, str] = field(default_factory=dict)  # pod → node, of those bound and promised
    refusal: str = ""

    @property
    def runs(self) -> bool:
        return self.starts or self.will_start


Inspect = Callable[[Session, Job], None]


def attempt(
    snapshot: Snapshot, rules: TrialRules, subject: TriedJob, *, let_in: bool = False, inspect: Inspect | None = None
) -> TrialResult:
    """Run the actions for this job alone. `let_in`: it need not ask whether it may enter its queue.

    `inspect` is called with the session as the actions left it.
    """
    with standing(snapshot, subject, let_in=let_in) as job, opened(snapshot, rules, job) as session:
        if job.id not in session.jobs:
            return TrialResult(refusal="there is no such queue")
        session.waiting = [job]
        for name in rules.config.actions:
            if name in rules.actions:
                rules.actions[name](session)
        result = _read(session, job)
        if inspect is not None:
            inspect(session, job)
        return result


@contextmanager
def opened(snapshot: Snapshot, rules: TrialRules, only: Job | None = None) -> Iterator[Session]:
    """`only`: the job that is tried; looking for others that wait takes most of the time where there are many."""
    session, _ = open_session(
        snapshot,
        rules.config,
        known=rules.plugins,
        chance=SeededChance(0),
        timer=StoppedTimer(),
        only=only.id if only is not None else "",
    )
    try:
        yield session
    finally:
        session.restore()


@contextmanager
def standing(snapshot: Snapshot, subject: TriedJob, *, let_in: bool = False) -> Iterator[Job]:
    """The snapshot with the subject in place of the job that it has; its placed pods stay where they are."""
    before = snapshot.jobs.get(subject.id)
    job = job_from(
        subject.group,
        default_queue=snapshot.default_queue,
        priority=snapshot.cluster.priority_of(subject.group.spec.priority_class_name),
    )
    if let_in and job.is_pending:
        job.phase = "Inqueue"
    placed = [task for task in before.tasks.values() if task.status != Status.PENDING] if before is not None else []
    for task in placed:
        place_in_sub_job(job, task)
        job.add(task)
    names = {task.name for task in placed}
    for pod in subject.pods:
        if pod.name in names:
            continue
        task = task_from_pod(pod, snapshot.shapes)
        task.job_id = subject.id
        snapshot.table.vector(task.request)
        place_in_sub_job(job, task)
        job.add(task)
    if before is not None:
        job.allocated_domain = before.allocated_domain
        for id, sub_job in job.sub_jobs.items():
            if id in before.sub_jobs:
                sub_job.allocated_domain = before.sub_jobs[id].allocated_domain
    snapshot.jobs[subject.id] = job
    try:
        yield job
    finally:
        if before is None:
            del snapshot.jobs[subject.id]
        else:
            snapshot.jobs[subject.id] = before
            for task in placed:
                place_in_sub_job(before, task)


def _read(session: Session, job: Job) -> TrialResult:
    bound = {uid: bind.node for uid, bind in session.record.binds.items() if uid in job.tasks}
    promised = {task.uid: task.node for task in job.by_status[Status.PIPELINED].values()}
    names = {task.uid: task.key for task in job.tasks.values()}
    why = session.record.why.get(job.id)
    starts = bool(bound) and session.ask.job_ready(job)
    return TrialResult(
        len(bound),
        len(promised),
        starts,
        not starts and bool(promised) and session.ask.job_pipelined(job),
        list(session.record.evictions.values()),
        {names[uid]: node for uid, node in (bound | promised).items()},
        str(why) if why is not None else "",
    )
