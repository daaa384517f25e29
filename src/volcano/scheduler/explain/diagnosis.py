"""Diagnosis: the one reason why a PodGroup waits, and whether waiting helps; every answer is tried, none is guessed.

First what keeps it from being scheduled at all, then whether it would run on an empty cluster (if not: what must
change), then what is missing at this moment.
"""

from __future__ import annotations

from dataclasses import replace

import msgspec

from volcano.api.jobs.why import BIND, RESERVED, decode_why
from volcano.api.scheduling import WHY_ANNOTATION
from volcano.api.why.reasons import Finding, finding, named
from volcano.api.why.tiers import Tier
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.causes_before import pre_scheduling_cause, role_of
from volcano.scheduler.explain.causes_entry import not_let_in_cause
from volcano.scheduler.explain.causes_nodes import limit_cause, no_node_cause
from volcano.scheduler.explain.causes_preemption import obstacle_of
from volcano.scheduler.explain.causes_queues import (
    never_allowed_cause,
    not_now_cause,
    owner_name,
    queue_state_cause,
)
from volcano.scheduler.explain.causes_reservations import reservation_cause
from volcano.scheduler.explain.causes_room import no_room_cause
from volcano.scheduler.explain.causes_tiers import tier_full_cause, tier_too_small_cause
from volcano.scheduler.explain.empty_cluster import unplaced
from volcano.scheduler.explain.trials import Inspect, TrialResult, TrialRules, TriedJob, attempt, opened, standing
from volcano.scheduler.explain.waiting_case import WaitingCase, without_gates
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Status, Task


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


def _is_whole(case: WaitingCase) -> bool:
    """Whether as many pods as it needs have their nodes, and only further ones wait."""
    job = case.job
    return job is not None and job.counts.ready > 0 and job.is_ready and job.roles_have()


# -- before scheduling ------------------------------------------------------------------------------------------------
def _without_pods(case: WaitingCase) -> Finding | None:
    job, least = case.job, case.subject.group.spec.min_member
    exist = len(job.tasks) if job is not None else 0
    if exist == 0 and job is not None and job.is_pending and case.subject.group.metadata.owner_references:
        return not_let_in_cause(case)
    state = queue_state_cause(case.snapshot, case.rules, case.subject.group.spec.queue or case.snapshot.default_queue)
    if exist == 0 or (job is not None and exist < least and not job.is_ready):
        return state or finding("TooFewPods", needed=least, exist=exist)
    return None


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
    kinds = {(role_of(pod), str(pod.spec.node_selector)): pod for pod in reversed(subject.pods)}
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

    with standing(case.empty, alone, let_in=True) as job, opened(case.empty, free, job) as session:
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
            return not_let_in_cause(case)
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
    with standing(case.snapshot, case.subject, let_in=True) as job, opened(case.snapshot, free, job) as session:
        missing = max(1, job.min_available - job.counts.ready)
        waiting = _one_of_each(job)
        if not waiting:  # those that will replace pods which still end under the same names
            return finding("PodsBeingCreated", exist=job.counts.ready, needed=job.counts.ready + missing)
        hard = [task for task in waiting if not (session.nodes.filtered(task).ok & session.nodes.room(task).idle).any()]
        return no_room_cause(session, job, (hard or waiting)[0], 0 if hard else tried.bound, missing)
