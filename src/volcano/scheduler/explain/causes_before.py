"""What keeps a PodGroup from being scheduled at all: its scheduler, queue, gates, quota, or pods that are missing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from volcano.api.core import Pod
from volcano.api.nearest_words import did_you_mean
from volcano.api.why.reasons import Finding, finding, named
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.explain.causes_queues import queue_state_cause
from volcano.scheduler.explain.causes_quotas import quota_cause
from volcano.scheduler.explain.waiting_case import WaitingCase

DEFAULT_SCHEDULER: Final = "default-scheduler"


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
        role: sum(role_of(pod) == role for pod in (*case.subject.pods, *case.placed)) for role in spec.min_task_member
    }
    if least >= total:
        for role, needed in spec.min_task_member.items():
            if roles[role] < needed:
                return finding("TooFewPods", needed=f"{needed} {role}", exist=roles[role])
    return None


def role_of(pod: Pod) -> str:
    return pod.annotations.get("volcano.sh/task-spec") or pod.labels.get("volcano.sh/task-spec", "")
