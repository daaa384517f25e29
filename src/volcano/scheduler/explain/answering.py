"""Answer a question about a workload: what is in the way, whether waiting helps, which changes let it run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from volcano.api.batch import Phase
from volcano.api.core import Event, Pod
from volcano.api.nearest_words import did_you_mean
from volcano.api.scheduling import TASK_SPEC_KEY
from volcano.api.why.after_placement import placed_cause
from volcano.api.why.answers import ProposedChange, WhyAnswer, answer_with
from volcano.api.why.reasons import Finding, finding, named
from volcano.api.why.refused_pods import refusal_cause
from volcano.api.why.tiers import Tier
from volcano.scheduler.explain.causes_before import scheduler_cause
from volcano.scheduler.explain.changes import changes_for
from volcano.scheduler.explain.diagnosis import diagnose
from volcano.scheduler.explain.node_stages import queue_standing, task_nodes
from volcano.scheduler.explain.owner_changes import owner_changes
from volcano.scheduler.explain.questions_asked import KnownCluster, WhyQuestion, events_of
from volcano.scheduler.explain.story import ending_of, story_of
from volcano.scheduler.explain.trials import opened, standing
from volcano.scheduler.explain.waiting_case import WaitingCase
from volcano.scheduler.explain.workloads import AskedWorkload

HARMLESS: Final = (Tier.TURN, Tier.EVENT, Tier.STARTING, Tier.NOTHING)
PRE_PLACEMENT_EVENTS: Final = ("FailedCreate",)


def answer_workload(around: KnownCluster, question: WhyQuestion, workload: AskedWorkload) -> WhyAnswer:
    events = events_of(question)
    ended = ending_of(question.object or {}, workload.pods, events, question.logs) if question.kind == "Job" else None
    story = story_of(question.object or {}, workload.pods, events) if question.details else []
    about = f"{question.namespace}/{question.name}"
    if ended is not None:
        offered = owner_changes(ended, question, workload.owner) if question.changes else []
        return answer_with(ended, about, workload.phase, changes=offered, story=story)
    case = _case(around, workload)
    found, also = _reason(around, question, workload, case, events)
    changes: list[ProposedChange] = []
    if question.changes:
        changes = owner_changes(found, question, workload.owner)
        changes += changes_for(case, workload.owner, found) if case is not None else []
    tasks, queue = ([], None)
    if question.details and case is not None and workload.subject is not None and workload.subject.pods:
        with standing(around.snapshot, workload.subject) as job, opened(around.snapshot, around.rules, job) as session:
            if job.id in session.jobs:
                tasks, queue = task_nodes(session, job, workload.planned), queue_standing(session, job)
    return answer_with(
        found, about, workload.phase, changes=changes[:5], also=also, story=story, tasks=tasks, queue=queue
    )


def _case(around: KnownCluster, workload: AskedWorkload) -> WaitingCase | None:
    if workload.subject is None:
        return None
    return WaitingCase(
        around.snapshot, around.rules, workload.subject, workload.planned, configuration=around.configuration
    )


def _reason(
    around: KnownCluster,
    question: WhyQuestion,
    workload: AskedWorkload,
    case: WaitingCase | None,
    events: Sequence[Event],
) -> tuple[Finding, list[str]]:
    """The first reason, and sentences about what else is the matter."""
    state = _stated_by_owner(question, workload)
    if state is not None:
        return state, []
    lost = _unreadable(around, question, workload) or _unknown_node(around, workload.pods)
    if lost is not None:
        return lost, []
    refused = _refused(question, workload, case, events)
    if refused is not None:
        return refused, []
    waits = diagnose(case) if case is not None else _without_group(around, workload)
    runs = placed_cause(workload.pods, events, question.logs, question.known)
    if waits is None:
        return runs or _later_tasks(workload) or _running(workload), []
    if runs is not None and runs.tier not in HARMLESS and waits.tier in HARMLESS:
        return runs, [str(waits)]
    return waits, []


def _stated_by_owner(question: WhyQuestion, workload: AskedWorkload) -> Finding | None:
    """What the object itself says: it is suspended, paused, has no replicas, or is being ended."""
    body, phase = question.object or {}, workload.phase
    spec = body.get("spec") or {}
    if phase == Phase.ABORTED or (question.kind == "BatchJob" and spec.get("suspend")):
        return finding("Suspended")
    if phase in (Phase.ABORTING, Phase.TERMINATING, Phase.COMPLETING):
        return finding("Ending", phase=str(phase), pods=sum(not pod.is_finished for pod in workload.pods))
    if question.kind in ("Deployment", "ReplicaSet", "StatefulSet"):
        if spec.get("replicas") == 0:
            return finding("NoReplicas")
        if spec.get("paused") and not workload.pods:
            return finding("Paused")
    return None


def _unreadable(around: KnownCluster, question: WhyQuestion, workload: AskedWorkload) -> Finding | None:
    """Objects that the scheduler had to set aside."""
    labels = [f"Pod/{question.namespace}/{pod.name}" for pod in workload.pods]
    if workload.subject is not None:
        labels.append(f"PodGroup/{workload.subject.id}")
    for label in labels:
        if label in around.snapshot.set_aside:
            return finding("Unreadable", message=f"{label}: {around.snapshot.set_aside[label]}")
    return None


def _unknown_node(around: KnownCluster, pods: Sequence[Pod]) -> Finding | None:
    for pod in pods:
        node = pod.spec.node_name
        if node and not pod.is_finished and node not in around.snapshot.table.index:
            return finding(
                "NodeNotFound", node=node, pod=pod.name, meant=did_you_mean(node, around.snapshot.table.index)
            )
    return None


def _refused(
    question: WhyQuestion, workload: AskedWorkload, case: WaitingCase | None, events: Sequence[Event]
) -> Finding | None:
    """The API server's refusal of the job's pods, while some do not exist; a quota's refusal has its numbers."""
    messages = [event for event in events if event.reason in PRE_PLACEMENT_EVENTS]
    living = [pod for pod in workload.pods if not pod.is_deleting]
    if messages and (len(living) < max(workload.wanted, 1)):
        found = refusal_cause(messages[-1].message, question.namespace, needed=workload.wanted)
        if found.reason == "QuotaUsed" and case is not None:
            counted = diagnose(case)
            return counted if counted is not None and counted.reason.startswith("Quota") else found
        if found.reason in ("PriorityClassNotFound", "ServiceAccountNotFound"):
            return _with_nearest(found, question, case)
        return found
    groups = [event for event in events if event.reason == "PodGroupError"]
    return finding("PodGroupRefused", message=groups[-1].message) if groups and workload.subject is None else None


def _with_nearest(found: Finding, question: WhyQuestion, case: WaitingCase | None) -> Finding:
    if found.reason == "PriorityClassNotFound" and case is not None:
        known = list(case.snapshot.cluster.priority_classes)
    else:
        known = question.known.get("ServiceAccount", [])
    return finding(found.reason, **{**found.facts, "meant": did_you_mean(str(found.facts["name"]), known)})


def _without_group(around: KnownCluster, workload: AskedWorkload) -> Finding | None:
    """Pods that no PodGroup holds, or a job that nothing has been made of yet."""
    waiting = [pod for pod in workload.pods if not pod.spec.node_name and not pod.is_finished]
    if waiting:
        return scheduler_cause(around.snapshot, waiting) or finding("NotSeenYet")
    return None if workload.pods else finding("NotSeenYet")


def _later_tasks(workload: AskedWorkload) -> Finding | None:
    """Everything that may run runs; other tasks start after it."""
    have = {pod.annotations.get(TASK_SPEC_KEY, "") for pod in workload.pods}
    for task, others in workload.planned.after.items():
        if task not in have:
            return finding("TaskDependsOn", task=task, after=named(others))
    return None


def _running(workload: AskedWorkload) -> Finding:
    running = sum(pod.status.phase == "Running" for pod in workload.pods)
    return finding("RunsAsWanted", running=running, pods=len(workload.pods))
