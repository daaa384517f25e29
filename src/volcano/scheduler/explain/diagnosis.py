"""Diagnosis: the one reason why a PodGroup waits, and whether waiting helps; every answer is tried, none is guessed.

First what keeps it from being scheduled at all, then whether it would run on an empty cluster (if not: what must
change), then what is missing at this moment.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final

import msgspec

from volcano.api.core import Pod
from volcano.api.jobs.why import BIND, RESERVED, decode_why
from volcano.api.nearest_words import did_you_mean
from volcano.api.scheduling import WHY_ANNOTATION
from volcano.api.why.reasons import Finding, finding, named
from volcano.api.why.tiers import Tier
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.amounts_text import amount_text
from volcano.scheduler.explain.causes_nodes import limit_cause, no_node_cause
from volcano.scheduler.explain.causes_preemption import EvictionObstacle, obstacle_of
from volcano.scheduler.explain.causes_queues import (
    needed_of,
    never_allowed_cause,
    not_now_cause,
    owner_name,
    queue_state_cause,
)
from volcano.scheduler.explain.causes_quotas import quota_cause
from volcano.scheduler.explain.causes_reservations import reservation_cause
from volcano.scheduler.explain.causes_room import no_room_cause
from volcano.scheduler.explain.causes_tiers import tier_full_cause, tier_too_small_cause
from volcano.scheduler.explain.empty_cluster import empty_cluster, unplaced
from volcano.scheduler.explain.trials import Inspect, TrialResult, TrialRules, TriedJob, attempt, opened, standing
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Status, Task

DEFAULT_SCHEDULER: Final = "default-scheduler"
MAX_LET_IN_TRIED: Final = 4
"""Of jobs that may keep others out for ever, the largest are tried."""


@dataclass(slots=True, frozen=True)
class Planned:
    """What the Job behind a PodGroup plans: replicas per task, and the tasks that start only after others."""

    replicas: Mapping[str, int] = field(default_factory=dict)
    after: Mapping[str, Sequence[str]] = field(default_factory=dict)


@dataclass
class WaitingCase:
    """A PodGroup in question: `subject` has its pods that are not placed, also those that do not exist yet."""

    snapshot: Snapshot
    rules: TrialRules
    subject: TriedJob
    planned: Planned = field(default_factory=Planned)
    obstacle: EvictionObstacle | None = None  # found while the room was looked at
    hopeless: Sequence[Job] = ()  # which were let in before it and can never run
    configuration: str = ""  # volcano-scheduler.conf as it is in force
    is_rest: bool = False  # its minimum runs; the question is what one more pod waits for
    is_eventual: bool = False  # the cluster is emptied: what ends by itself is no obstacle
    emptied_pods: int = 0  # of its pods that existed before the cluster was emptied

    @property
    def job(self) -> Job | None:
        return self.snapshot.jobs.get(self.subject.id)

    @property
    def placed(self) -> list[Pod]:
        job = self.job
        return [task.pod for task in job.tasks.values() if task.status != Status.PENDING] if job is not None else []

    @cached_property
    def empty(self) -> Snapshot:
        return empty_cluster(self.snapshot)

    @property
    def ready(self) -> int:
        job = self.job
        return job.counts.ready if job is not None else 0

    @property
    def existing(self) -> int:
        """How many of its pods have been created."""
        return sum(pod.uid in self.snapshot.tasks for pod in self.subject.pods) + len(self.placed) + self.emptied_pods

    def eventually(self) -> WaitingCase:
        """The same case when everything else has ended and its scheduling gates are lifted."""
        alone = without_gates(unplaced(self.subject, self.placed))
        return WaitingCase(
            self.empty,
            self.rules,
            alone,
            self.planned,
            configuration=self.configuration,
            is_eventual=True,
            emptied_pods=self.existing,
        )


def diagnose(case: WaitingCase) -> Finding | None:
    """None when nothing of it waits to be placed."""
    if not case.subject.pods:
        return _without_pods(case)
    blocked = pre_scheduling_cause(case)
    if blocked is not None:
        return (_hopeless(case) or blocked) if blocked.tier.waiting_helps else blocked
    if _is_whole(case):
        return _of_the_rest(case)
    return _of_gang(case)


def _hopeless(case: WaitingCase) -> Finding | None:
    """What must change before it could run on an empty cluster without quotas and gates; None when it would."""
    alone = without_gates(unplaced(case.subject, case.placed))
    if attempt(case.empty, case.rules, alone, let_in=True).runs:
        return None
    return _never(case, alone)


def without_gates(subject: TriedJob) -> TriedJob:
    """Scheduling gates are lifted by those who set them, so they are no reason to change the job."""
    if not any(pod.spec.scheduling_gates for pod in subject.pods):
        return subject
    pods = [
        msgspec.structs.replace(pod, spec=msgspec.structs.replace(pod.spec, scheduling_gates=[]))
        for pod in subject.pods
    ]
    return replace(subject, pods=tuple(pods))


def _is_whole(case: WaitingCase) -> bool:
    """Whether as many pods as it needs have their nodes, and only further ones wait."""
    job = case.job
    return job is not None and job.counts.ready > 0 and job.is_ready and job.roles_have()


# -- before scheduling ------------------------------------------------------------------------------------------------
def _without_pods(case: WaitingCase) -> Finding | None:
    job, least = case.job, case.subject.group.spec.min_member
    exist = len(job.tasks) if job is not None else 0
    if exist == 0 and job is not None and job.is_pending and case.subject.group.metadata.owner_references:
        return _not_let_in(case)
    state = queue_state_cause(case.snapshot, case.rules, case.subject.group.spec.queue or case.snapshot.default_queue)
    if exist == 0 or (job is not None and exist < least and not job.is_ready):
        return state or finding("TooFewPods", needed=least, exist=exist)
    return None


def pre_scheduling_cause(case: WaitingCase) -> Finding | None:
    snapshot, subject = case.snapshot, case.subject
    queue = subject.group.spec.queue or snapshot.default_queue
    state = scheduler_cause(snapshot, subject.pods) or queue_state_cause(snapshot, case.rules, queue)
    if state is not None:
        return state
    contradiction = finding("HyperNodesContradict", message=snapshot.domains.problem) if _contradicts(case) else None
    causes = (
        _priority_class_cause(case),
        _gate_cause(case),
        _later_task_cause(case),
        quota_cause(snapshot, subject, case.placed),
        _too_few_pods(case),
        contradiction,
    )
    found = [each for each in causes if each is not None]
    # Of several, one that no waiting ends comes first: the others may end, and the job would still not run.
    return min(found, key=lambda each: each.tier.waiting_helps, default=None)


def scheduler_cause(snapshot: Snapshot, pods: Sequence[Pod]) -> Finding | None:
    """Pods that name a scheduler which is not this one."""
    ours = snapshot.scheduler_names
    for pod in pods:
        name = pod.spec.scheduler_name
        if ours is None or name in ours or pod.spec.node_name:
            continue
        if name in ("", DEFAULT_SCHEDULER):
            return finding("OtherScheduler", scheduler=DEFAULT_SCHEDULER)
        return finding("UnknownScheduler", scheduler=name, meant=did_you_mean(name, [*ours, DEFAULT_SCHEDULER]))
    return None


def _contradicts(case: WaitingCase) -> bool:
    return not case.snapshot.domains.ready and case.subject.group.spec.network_topology is not None


def _priority_class_cause(case: WaitingCase) -> Finding | None:
    classes = case.snapshot.cluster.priority_classes
    names = [pod.spec.priority_class_name for pod in case.subject.pods if pod.spec.priority is None]
    for name in (*names, case.subject.group.spec.priority_class_name):
        if name and name not in classes and not name.startswith("system-"):
            return finding("PriorityClassNotFound", name=name, meant=did_you_mean(name, classes))
    return None


def _gate_cause(case: WaitingCase) -> Finding | None:
    gated = [pod for pod in case.subject.pods if _foreign_gates(pod)]
    free = len(case.subject.pods) - len(gated)
    if not gated or case.ready + free >= max(case.subject.group.spec.min_member, 1):
        return None
    gates = named([gate for pod in gated for gate in _foreign_gates(pod)])
    return finding("SchedulingGate", gate=gates, pods=named([pod.name for pod in gated]))


def _foreign_gates(pod: Pod) -> list[str]:
    names = [gate.name for gate in pod.spec.scheduling_gates]
    return [name for name in names if name != "scheduling.volcano.sh/queue-allocation-gate"]


def _later_task_cause(case: WaitingCase) -> Finding | None:
    """A task that starts after another has no pods while the gang is placed, so the gang must not need them."""
    after, least = case.planned.after, case.subject.group.spec.min_member
    at_once = sum(replicas for task, replicas in case.planned.replicas.items() if task not in after)
    if not after or least <= at_once:
        return None
    task, others = next(iter(after.items()))
    return finding("GangNeedsLaterTask", needed=least, task=task, after=named(others), before=at_once)


def _too_few_pods(case: WaitingCase) -> Finding | None:
    least, spec = case.subject.group.spec.min_member, case.subject.group.spec
    exist = len(case.subject.pods) + sum(1 for pod in case.placed if pod.status.phase != "Failed")
    if exist < least:
        return finding("TooFewPods", needed=least, exist=exist)
    total = sum(spec.min_task_member.values())
    roles = {
        role: sum(_role(pod) == role for pod in (*case.subject.pods, *case.placed)) for role in spec.min_task_member
    }
    if least >= total:
        for role, needed in spec.min_task_member.items():
            if roles[role] < needed:
                return finding("TooFewPods", needed=f"{needed} {role}", exist=roles[role])
    return None


def _role(pod: Pod) -> str:
    return pod.annotations.get("volcano.sh/task-spec") or pod.labels.get("volcano.sh/task-spec", "")


# -- pods beyond the minimum ------------------------------------------------------------------------------------------
def _of_the_rest(case: WaitingCase) -> Finding | None:
    """Its minimum runs: what one more pod waits for."""
    one_more = case.subject.with_spec(
        min_member=case.ready + 1, min_task_member={}, min_resources=None, sub_group_policy=[]
    )
    found = _of_gang(WaitingCase(case.snapshot, case.rules, one_more, case.planned, is_rest=True))
    if found.tier in (Tier.YOU, Tier.ADMINISTRATOR, Tier.STARTING):
        return found
    total = len(case.subject.pods) + len(case.placed)
    return finding("SomeRun", running=case.ready, pods=total, waiting=len(case.subject.pods), because=str(found))


# -- a gang that is not whole -----------------------------------------------------------------------------------------
def _of_gang(case: WaitingCase) -> Finding:
    seen: list[Finding] = []

    def look(session: Session, job: Job) -> None:
        why = session.record.why.get(job.id)
        if why is not None and why.stage == RESERVED:
            seen.append(finding("RoomReserved", message=why.message or why.cause))

    now = attempt(case.snapshot, case.rules, case.subject, inspect=look)
    if now.runs:
        return _starting(case, now)
    kept = reservation_cause(case.snapshot, case.rules, case.subject)
    if kept is not None:
        return kept
    alone = _one_pod(case.subject) if case.is_rest else unplaced(case.subject, case.placed)
    if not attempt(case.empty, case.rules, alone, let_in=True).runs:
        return _never(case, alone)
    return seen[0] if seen else _later(case)


def _one_pod(subject: TriedJob) -> TriedJob:
    """A single pod of each kind that waits, as if it were a job of its own."""
    kinds = {(_role(pod), str(pod.spec.node_selector)): pod for pod in reversed(subject.pods)}
    return replace(subject.with_spec(min_member=len(kinds)), pods=tuple(kinds.values()))


def _starting(case: WaitingCase, now: TrialResult) -> Finding:
    snapshot = case.snapshot
    if now.evictions:
        jobs = [snapshot.jobs[e.job] for e in now.evictions if e.job in snapshot.jobs]
        return finding("WillPreempt", victims=named([owner_name(job) for job in jobs]))
    if not now.starts:
        nodes = sorted(set(now.nodes.values()))
        leaving = [
            task.name
            for name in nodes
            for task in snapshot.table.nodes[snapshot.table.index[name]].tasks.values()
            if task.status == Status.RELEASING
        ]
        return finding("RoomPromised", nodes=named(nodes), pods=named(sorted(leaving)) or "others")
    missing = [pod for pod in case.subject.pods if pod.uid not in snapshot.tasks]
    if missing and case.subject.group.status.phase == "Inqueue":
        total = len(case.subject.pods) + len(case.placed)
        return finding("PodsBeingCreated", exist=total - len(missing), needed=total)
    return _behind_others(case) or _binding_failed(case) or finding("BeingPlaced")


def _binding_failed(case: WaitingCase) -> Finding | None:
    why = decode_why(case.subject.group.annotations.get(WHY_ANNOTATION) or "")
    return finding("BindFailed", message=why.message or why.cause) if why is not None and why.stage == BIND else None


def _behind_others(case: WaitingCase) -> Finding | None:
    """It fits, but jobs that come first in the same cycle take the room."""
    snapshot, rules = case.snapshot, case.rules
    waiting = [job for job in snapshot.jobs.values() if job.by_status[Status.PENDING] and job.id != case.subject.id]
    if not waiting:
        return None
    first: list[Finding] = []

    def run_all(session: Session, job: Job) -> None:
        mine = any(uid in job.tasks for uid in session.record.binds) or job.by_status[Status.PIPELINED]
        ahead = {bind.job for bind in session.record.binds.values()} - {job.id}
        names = [owner_name(session.jobs[id]) for id in sorted(ahead) if id in session.jobs]
        if not mine and names:
            first.append(finding("BehindOthers", ahead=len(names), queue=job.queue, names=named(names)))

    attempt_all(snapshot, rules, case.subject, run_all)
    return first[0] if first else None


def attempt_all(snapshot: Snapshot, rules: TrialRules, subject: TriedJob, inspect: Inspect) -> None:
    with standing(snapshot, subject) as job, opened(snapshot, rules) as session:
        if job.id in session.jobs:
            for name in rules.config.actions:
                if name in rules.actions:
                    rules.actions[name](session)
            inspect(session, job)


# -- no waiting helps -------------------------------------------------------------------------------------------------
def _never(case: WaitingCase, alone: TriedJob) -> Finding:
    found: list[Finding] = []
    free = case.rules.without_queues()
    if attempt(case.empty, free, alone, let_in=True).runs:
        attempt(
            case.empty, case.rules, alone, let_in=True, inspect=lambda s, j: found.append(never_allowed_cause(s, j))
        )
        return found[0]
    if _topology_blocks(case.empty, free, alone):
        return tier_too_small_cause(case.empty, free, alone)

    with standing(case.empty, alone, let_in=True) as job, opened(case.empty, free) as session:
        for task in _one_of_each(job):
            cause = no_node_cause(session, task)
            if cause is not None:
                return cause

    def look(session: Session, job: Job) -> None:
        placed, rest = job.counts.ready + job.counts.waiting, _one_of_each(job)
        if rest:
            found.append(limit_cause(session, job, rest[0], placed, alone.group.spec.min_member))

    attempt(case.empty, free, alone.of_any_size(), let_in=True, inspect=look)
    return found[0] if found else finding("RefusedNow", message="no node takes it")


def _one_of_each(job: Job) -> list[Task]:
    """A pending task of each role and shape."""
    chosen: dict[tuple[str, int], Task] = {}
    for task in sorted(job.by_status[Status.PENDING].values(), key=lambda task: task.uid):
        chosen.setdefault((task.role, task.shape.number), task)
    return list(chosen.values())


def _topology_blocks(snapshot: Snapshot, rules: TrialRules, subject: TriedJob) -> bool:
    spec = subject.group.spec
    if spec.network_topology is None and not any(policy.network_topology for policy in spec.sub_group_policy):
        return False
    return attempt(snapshot, rules, without_topology(subject), let_in=True).runs


def without_topology(subject: TriedJob) -> TriedJob:
    policies = [msgspec.structs.replace(each, network_topology=None) for each in subject.group.spec.sub_group_policy]
    return subject.with_spec(network_topology=None, sub_group_policy=policies)


# -- waiting helps ----------------------------------------------------------------------------------------------------
def _later(case: WaitingCase) -> Finding:
    free, found = case.rules.without_queues(), list[Finding]()
    if attempt(case.snapshot, free, case.subject, let_in=True).runs:
        if attempt(case.snapshot, case.rules, case.subject, let_in=True).runs:
            return _not_let_in(case)
        attempt(
            case.snapshot, case.rules, case.subject, let_in=True, inspect=lambda s, j: found.append(not_now_cause(s, j))
        )
        return found[0]
    if _topology_blocks(case.snapshot, free, case.subject):
        return tier_full_cause(case.snapshot, free, case.subject)
    case.obstacle = obstacle_of(case.snapshot, case.rules, case.subject)
    if case.obstacle is not None:
        return case.obstacle.finding
    return _room(case, free)


def _room(case: WaitingCase, free: TrialRules) -> Finding:
    tried = attempt(case.snapshot, free, case.subject.of_any_size(), let_in=True)
    with standing(case.snapshot, case.subject, let_in=True) as job, opened(case.snapshot, free) as session:
        missing = max(1, job.min_available - job.counts.ready)
        waiting = _one_of_each(job)
        if not waiting:  # those that will replace pods which still end under the same names
            return finding("PodsBeingCreated", exist=job.counts.ready, needed=job.counts.ready + missing)
        hard = [task for task in waiting if not (session.nodes.filtered(task).ok & session.nodes.room(task).idle).any()]
        return no_room_cause(session, job, (hard or waiting)[0], 0 if hard else tried.bound, missing)


def _not_let_in(case: WaitingCase) -> Finding:
    """Only the way into the queue is closed: too much is let in already, or the queue's minimums exceed its limit."""
    found: list[Finding] = []

    def look(session: Session, job: Job) -> None:
        why = session.record.why.get(job.id)
        if why is None:
            found.append(finding("NotLetIn", queue=job.queue, message="it waits to enter its queue"))
        elif why.plugin == "overcommit":
            found.append(_overcommitted(session, job))
        elif why.plugin in ("proportion", "capacity"):
            found.append(not_now_cause(session, job))
        else:
            found.append(finding("NotLetIn", queue=job.queue, message=str(why)))

    attempt(case.snapshot, case.rules, case.subject, inspect=look)
    if found[0].reason == "TooMuchLetIn":
        return _let_in_for_ever(case, found[0]) or found[0]
    return found[0]


def _let_in_for_ever(case: WaitingCase, found: Finding) -> Finding | None:
    """Jobs that entered before it and can never run, if it could enter without them."""
    hopeless = jobs_let_in_for_ever(case)
    with left_out(case.snapshot, hopeless):
        if not hopeless or not attempt(case.snapshot, case.rules, case.subject).runs:
            return None
    facts = {name: found.facts[name] for name in ("resource", "limit")}
    kept = sum(job.min_resources[str(facts["resource"])] for job in hopeless if job.min_resources is not None)
    case.hopeless = hopeless
    return finding(
        "LetInForEver",
        names=named([owner_name(job) for job in hopeless]),
        asked=amount_text(kept, str(facts["resource"])),
        **facts,
    )


def jobs_let_in_for_ever(case: WaitingCase) -> list[Job]:
    """Of the largest jobs that were let in and of which nothing runs: those that an empty cluster would not start."""
    waiting = [
        job
        for job in case.snapshot.jobs.values()
        if job.group is not None
        and not job.is_pending
        and job.min_resources is not None
        and job.by_status[Status.PENDING]
        and not job.counts.ready
        and job.id != case.subject.id
    ]
    waiting.sort(key=lambda job: (-sum(job.min_resources.amounts.values()) if job.min_resources else 0.0, job.id))
    subjects = [(job, TriedJob(job.group, tuple(task.pod for task in _pending(job)))) for job in waiting if job.group]
    return [
        job
        for job, subject in subjects[:MAX_LET_IN_TRIED]
        if not attempt(case.empty, case.rules, without_gates(subject), let_in=True).runs
    ]


def _pending(job: Job) -> list[Task]:
    return sorted(job.by_status[Status.PENDING].values(), key=lambda task: task.uid)


@contextmanager
def left_out(snapshot: Snapshot, jobs: Sequence[Job]) -> Iterator[None]:
    """The snapshot as if these jobs had never been submitted."""
    for job in jobs:
        del snapshot.jobs[job.id]
    try:
        yield
    finally:
        for job in jobs:
            snapshot.jobs[job.id] = job


def _overcommitted(session: Session, job: Job) -> Finding:
    needed = job.min_resources or needed_of(job)
    for plugin in session.ask.plugins("job_enqueueable"):
        room, asked = getattr(plugin, "room", None), getattr(plugin, "let_in", None)
        if room is None or asked is None:
            continue
        for name in needed.names:
            if asked[name] + needed[name] > room[name]:
                return finding(
                    "TooMuchLetIn",
                    asked=amount_text(asked[name], name),
                    resource=name,
                    limit=amount_text(room[name], name),
                    needed=amount_text(needed[name], name),
                )
    return finding("NotLetIn", queue=job.queue, message="jobs let in before it wait for as much as may wait")
