"""Whether the job would get room by evicting others, if only one rule were different; and which rule that is.

A job that would not be let into its queue even then has no such obstacle: the rule's change alone would not help it.

Every rule is lifted on trial, with all others lifted too: the one without which nothing is evicted is the obstacle.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Final

import msgspec

from volcano.api.core import Pod
from volcano.api.why.reasons import Finding, finding, named
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.causes_queues import owner_name
from volcano.scheduler.explain.trials import TrialResult, TrialRules, TriedJob, attempt
from volcano.scheduler.model import Job, Status, Task

POLICY: Final = "policy"
PREEMPTABLE: Final = "preemptable"
RECLAIMABLE: Final = "reclaimable"
PREEMPT: Final = "preempt"
RECLAIM: Final = "reclaim"
OBSTACLES: Final = (POLICY, PREEMPTABLE, RECLAIMABLE, PREEMPT, RECLAIM)
MAX_LOOKED_AT: Final = 20_000


@dataclass(slots=True, frozen=True)
class EvictionObstacle:
    """The rule in the way, and the jobs and queues of the pods that would leave."""

    rule: str
    victims: tuple[Job, ...]
    finding: Finding


def obstacle_of(snapshot: Snapshot, rules: TrialRules, subject: TriedJob) -> EvictionObstacle | None:
    """None when nothing would be evicted for the job even if every rule were lifted, or when something is anyway."""
    if not _could_matter(snapshot, subject):
        return None
    present = _obstacles(snapshot, rules, subject)
    if not present:
        return None
    freed = _lifted(snapshot, rules, subject, present)
    if not freed.runs or not freed.evictions:
        return None
    blocking = [rule for rule in present if not _lifted(snapshot, rules, subject, present - {rule}).runs]
    rule = next((each for each in OBSTACLES if each in blocking), "")
    if not rule:
        return None
    jobs = {
        snapshot.jobs[each.job].id: snapshot.jobs[each.job] for each in freed.evictions if each.job in snapshot.jobs
    }
    victims = tuple(jobs.values())
    return EvictionObstacle(rule, victims, _told(rule, victims))


def _told(rule: str, victims: Sequence[Job]) -> Finding:
    names = named([owner_name(job) for job in victims])
    match rule:
        case "policy":
            return finding("NeverPreempts", victims=names)
        case "preemptable":
            return finding("VictimNotPreemptable", victims=names)
        case "reclaimable":
            return finding("QueueNotReclaimable", victims=names, queue=named([job.queue for job in victims]))
        case "preempt":
            return finding("NoPreemptAction", victims=names)
    return finding("NoReclaimAction", victims=names)


def _could_matter(snapshot: Snapshot, subject: TriedJob) -> bool:
    """A job of lower importance in the queue, or jobs of other queues, hold something."""
    queue = subject.group.spec.queue or snapshot.default_queue
    priority = snapshot.cluster.priority_of(subject.group.spec.priority_class_name)
    return any(
        not job.allocated.is_empty and (job.queue != queue or job.priority < priority)
        for job in snapshot.jobs.values()
        if job.group is not None and job.id != subject.id
    )


def _obstacles(snapshot: Snapshot, rules: TrialRules, subject: TriedJob) -> frozenset[str]:
    found = {action for action in (PREEMPT, RECLAIM) if action not in rules.config.actions}
    if any(pod.spec.preemption_policy == "Never" for pod in subject.pods):
        found.add(POLICY)
    if any(True for _ in _spared(snapshot)):
        found.add(PREEMPTABLE)
    if any(not queue.reclaimable for queue in snapshot.queues.values()):
        found.add(RECLAIMABLE)
    return frozenset(found)


def _spared(snapshot: Snapshot) -> Iterator[Task]:
    for job in snapshot.jobs.values():
        for task in job.by_status[Status.RUNNING].values():
            if not task.preemptable:
                yield task


def _lifted(snapshot: Snapshot, rules: TrialRules, subject: TriedJob, lifted: frozenset[str]) -> TrialResult:
    tried = rules.with_actions(*(action for action in (PREEMPT, RECLAIM) if action in lifted))
    if POLICY in lifted:
        subject = replace(subject, pods=tuple(_preempting(pod) for pod in subject.pods))
    with exposed(snapshot, tasks=PREEMPTABLE in lifted, queues=RECLAIMABLE in lifted):
        return attempt(snapshot, tried, subject)


def _preempting(pod: Pod) -> Pod:
    spec = msgspec.structs.replace(pod.spec, preemption_policy=None)
    return msgspec.structs.replace(pod, spec=spec)


@contextmanager
def exposed(snapshot: Snapshot, *, tasks: bool, queues: bool) -> Iterator[None]:
    """Every running task may be evicted, and every queue gives back what it borrows."""
    spared = list(_spared(snapshot)) if tasks else []
    kept = [queue for queue in snapshot.queues.values() if not queue.reclaimable] if queues else []
    stated = [job for job in snapshot.jobs.values() if job.preemptable_stated and not job.preemptable] if tasks else []
    for task in spared:
        task.preemptable = True
    for job in stated:
        job.preemptable = True
    for queue in kept:
        queue.reclaimable = True
    try:
        yield
    finally:
        for task in spared:
            task.preemptable = False
        for job in stated:
            job.preemptable = False
        for queue in kept:
            queue.reclaimable = False
