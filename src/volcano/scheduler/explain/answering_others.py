"""Answer questions about queues, nodes, flows and cron jobs: what they wait for, or what waits for them."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC
from typing import Final

import msgspec

from volcano.api.batch import FINISHED_PHASES, STOPPED_PHASES
from volcano.api.cron.due import BadSchedule, timetable
from volcano.api.meta import JSON
from volcano.api.nearest_words import did_you_mean
from volcano.api.times import timestamp
from volcano.api.why.answers import ChangedObject, ProposedChange, WhyAnswer, answer_with
from volcano.api.why.reasons import finding, named
from volcano.scheduler.core.taints import untolerated
from volcano.scheduler.explain.amounts_text import request_text
from volcano.scheduler.explain.causes_nodes import NOT_READY_KEYS, node_masks, taint_text
from volcano.scheduler.explain.causes_queues import owner_name, queue_state_cause
from volcano.scheduler.explain.changes import changes_for
from volcano.scheduler.explain.diagnosis import diagnose
from volcano.scheduler.explain.node_stages import queue_standing
from volcano.scheduler.explain.owner_changes import owner_changes
from volcano.scheduler.explain.questions_asked import KnownCluster, WhyQuestion
from volcano.scheduler.explain.remedies import ADMINISTRATOR
from volcano.scheduler.explain.trials import opened
from volcano.scheduler.explain.waiting_case import WaitingCase, subject_of
from volcano.scheduler.framework.decisions import queue_allocated
from volcano.scheduler.model import Job, Node, Resources, Status

MAX_JOBS_ASKED: Final = 50
Explained = Callable[[WhyQuestion], WhyAnswer]


# -- queues -----------------------------------------------------------------------------------------------------------
def answer_queue(around: KnownCluster, question: WhyQuestion) -> WhyAnswer:
    """Why it does not get what it asks for: its state, or what its first waiting job waits for."""
    snapshot, name = around.snapshot, question.name
    state = queue_state_cause(snapshot, around.rules, name)
    queue = snapshot.queues.get(name)
    phase = queue.state if queue is not None else ""
    waiting = [
        job
        for job in snapshot.jobs.values()
        if job.queue == name and job.group is not None and (job.by_status[Status.PENDING] or job.is_pending)
    ]
    if state is not None and state.reason != "QueueHasChildren":
        changes = []
        if waiting and question.changes:
            changes = changes_for(WaitingCase(snapshot, around.rules, subject_of(waiting[0])), None, state)
        return answer_with(state, name, phase, changes=changes)
    with opened(snapshot, around.rules) as session:
        held = queue_allocated(session).get(name, Resources())
        first = min(waiting, key=lambda job: (job.created, job.id), default=None)
        if first is None:
            return answer_with(finding("QueueIdle", queue=name, held=request_text(held)), name, phase)
        standing = queue_standing(session, first)
    case = WaitingCase(snapshot, around.rules, subject_of(first), configuration=around.configuration)
    because = diagnose(case)
    told = str(because) if because is not None else "it is being placed"
    found = finding("QueueWaitsFor", queue=name, jobs=len(waiting), job=owner_name(first), because=told)
    if because is not None:
        found = msgspec.structs.replace(found, tier_override=str(because.tier))
    changes = changes_for(case, None, because) if because is not None and question.changes else []
    return answer_with(found, name, phase, changes=changes, queue=standing)


# -- nodes ------------------------------------------------------------------------------------------------------------
def answer_node(around: KnownCluster, question: WhyQuestion) -> WhyAnswer:
    """Why nothing is placed on it."""
    table, name = around.snapshot.table, question.name
    row = table.index.get(name)
    if row is None:
        return answer_with(finding("NodeUnknown", node=name, meant=did_you_mean(name, table.index)), name, "")
    node = table.nodes[row]
    for taint in node.taints:
        if taint.key in NOT_READY_KEYS:
            found = finding("NodeNotReady", node=name, message=taint_text(taint))
            return answer_with(found, name, "NotReady")
    if table.unschedulable[row]:
        change = ProposedChange(
            f"uncordon {name}",
            f"kubectl uncordon {name}",
            ChangedObject("v1", "Node", name),
            patch=[{"op": "add", "path": "/spec/unschedulable", "value": False}],
            by=ADMINISTRATOR,
        )
        return answer_with(finding("NodeCordoned", node=name), name, "Cordoned", changes=[change])
    return _open_node(around, node)


def _open_node(around: KnownCluster, node: Node) -> WhyAnswer:
    snapshot, table, row = around.snapshot, around.snapshot.table, node.row
    idle = Resources({name: max(float(table.idle[at, row]), 0.0) for name, at in table.resources.items()})
    free = request_text(idle)
    waiting = [job for job in snapshot.jobs.values() if job.by_status[Status.PENDING]][:MAX_JOBS_ASKED]
    fitting, tainted = 0, []
    for job in waiting:
        task = next(iter(job.by_status[Status.PENDING].values()))
        table.vector(task.request)
        masks = node_masks(table, task)
        fitting += bool(masks.open[row])
        taint = untolerated(node.taints, task.pod.spec.tolerations)
        if taint is not None:
            tainted.append(taint)
    if waiting and not fitting and len(tainted) == len(waiting):
        found = finding("NodeTainted", node=node.name, taint=taint_text(tainted[0]), jobs=len(waiting))
    elif waiting and not fitting and node.tasks:
        holders = named([_holder(around, task.job_id, task.name) for task in node.tasks.values()])
        found = finding("NodeFull", node=node.name, free=free, holders=holders)
    elif waiting and not fitting:
        found = finding("NodeUnwanted", node=node.name, because="their conditions exclude it")
    else:
        found = finding("NodeTakesPods", node=node.name, free=free)
    return answer_with(found, node.name, "Ready")


def _holder(around: KnownCluster, job_id: str, pod: str) -> str:
    job: Job | None = around.snapshot.jobs.get(job_id)
    return owner_name(job) if job is not None else pod


# -- flows ------------------------------------------------------------------------------------------------------------
def answer_flow(question: WhyQuestion, explained: Explained) -> WhyAnswer:
    """The first step that is not done: its own job's reason, what it waits for, or its missing template."""
    body = question.object or {}
    state = ((body.get("status") or {}).get("state") or {}).get("phase") or "Pending"
    jobs = _jobs_by_name(question)
    templates = {_name(each) for each in question.objects if each.get("kind") == "JobTemplate"}
    for step in (body.get("spec") or {}).get("flows") or ():
        name = step.get("name", "")
        job = jobs.get(f"{question.name}-{name}")
        if job is not None:
            phase = _phase(job)
            if phase in ("Completed",):
                continue
            inner = explained(_about_job(question, job))
            prefix = f"step {name}: "
            return _retold(inner, question, state, prefix)
        after = ((step.get("dependsOn") or {}).get("targets")) or []
        open_ones = [each for each in after if _phase(jobs.get(f"{question.name}-{each}")) != "Completed"]
        if open_ones:
            phase = _phase(jobs.get(f"{question.name}-{open_ones[0]}")) or "not started"
            found = finding("FlowWaitsForStep", step=name, after=open_ones[0], state=phase)
            if phase in STOPPED_PHASES:
                found = finding("FlowStepFailed", step=open_ones[0], waiting=name)
            return answer_with(found, f"{question.namespace}/{question.name}", state)
        if name not in templates:
            missing = finding("FlowTemplateNotFound", step=name, template=name, meant=did_you_mean(name, templates))
            return answer_with(missing, f"{question.namespace}/{question.name}", state)
    done = len((body.get("spec") or {}).get("flows") or ())
    return answer_with(finding("Completed", succeeded=done, pods=done), f"{question.namespace}/{question.name}", state)


def _retold(inner: WhyAnswer, question: WhyQuestion, state: str, prefix: str) -> WhyAnswer:
    return WhyAnswer(
        f"{question.namespace}/{question.name}",
        state,
        inner.reason,
        inner.tier,
        prefix + inner.text,
        inner.waiting_helps,
        inner.facts,
        inner.changes,
        inner.also,
        inner.story,
        inner.tasks,
        inner.queue,
    )


def _about_job(question: WhyQuestion, job: JSON) -> WhyQuestion:
    return WhyQuestion("Job", _name(job), question.namespace, job, [], question.events, question.logs, question.known,
                    question.changes)  # fmt: skip


def _jobs_by_name(question: WhyQuestion) -> dict[str, JSON]:
    return {_name(each): each for each in question.objects if each.get("kind") == "Job"}


def _name(body: JSON) -> str:
    return str((body.get("metadata") or {}).get("name") or "")


def _phase(job: JSON | None) -> str:
    if job is None:
        return ""
    return ((job.get("status") or {}).get("state") or {}).get("phase") or "Pending"


# -- cron jobs --------------------------------------------------------------------------------------------------------
def answer_cron(around: KnownCluster, question: WhyQuestion, explained: Explained) -> WhyAnswer:
    """Suspended, waiting for its next run, or what its current run waits for."""
    body, about = question.object or {}, f"{question.namespace}/{question.name}"
    spec = body.get("spec") or {}
    if spec.get("suspend"):
        found = finding("CronSuspended")
        return answer_with(found, about, "Suspended", changes=owner_changes(found, question, None))
    running = [job for job in _jobs_by_name(question).values() if _phase(job) not in FINISHED_PHASES]
    if running and question.kind == "CronJob":
        inner = explained(_about_job(question, running[0]))
        if inner.tier not in ("nothing to do", "starting"):
            return _retold(inner, question, "Active", f"run {_name(running[0])}: ")
        if spec.get("concurrencyPolicy") == "Forbid":
            return answer_with(finding("CronForbidden", job=_name(running[0])), about, "Active")
    times = timetable(spec.get("schedule") or "", spec.get("timeZone"), UTC)
    if isinstance(times, BadSchedule):
        return answer_with(finding("CronBadSchedule", message=times.message), about, "Pending")
    moment = times.schedule.next(around.now)
    time = timestamp(moment) if moment is not None else "no time: the schedule names no day"
    return answer_with(finding("CronNextRun", time=time), about, "Active" if running else "Waiting")
