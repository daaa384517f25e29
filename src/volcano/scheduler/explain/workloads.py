"""AskedWorkload: which PodGroup and pods a question is about, and the object that a change would be made to."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from volcano.api.batch import FINISHED_PHASES, JOB_NAME_KEY, Phase
from volcano.api.core import Pod
from volcano.api.decode import decode_object
from volcano.api.meta import JSON
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY, PodGroup
from volcano.scheduler.explain.owners import (
    ChangedOwner,
    remake_from_group,
    remake_from_pod,
    remake_from_template,
)
from volcano.scheduler.explain.questions_asked import KnownCluster, WhyQuestion
from volcano.scheduler.explain.trials import TriedJob
from volcano.scheduler.explain.waiting_case import Planned, subject_of
from volcano.scheduler.model import Job, Status


@dataclass(slots=True)
class AskedWorkload:
    """What a question is about: its PodGroup if any, all its pods, what a user wrote, and what that plans."""

    phase: str
    pods: list[Pod]
    subject: TriedJob | None = None
    owner: ChangedOwner | None = None
    planned: Planned = field(default_factory=Planned)
    wanted: int = 0  # pods in all


def workload_of(around: KnownCluster, question: WhyQuestion) -> AskedWorkload:
    match question.kind:
        case "Job":
            return _volcano_job(around, question)
        case "PodGroup":
            return _pod_group(around, question)
        case "Pod":
            return _pod(around, question)
    return _templated(around, question)


def _volcano_job(around: KnownCluster, question: WhyQuestion) -> AskedWorkload:
    body = question.object or {}
    pods = [pod for pod in around.pods(question.namespace) if pod.annotations.get(JOB_NAME_KEY) == question.name]
    job = _job_owned_by(around, question, body)
    phase = ((body.get("status") or {}).get("state") or {}).get("phase") or "Pending"
    if not body:
        subject = subject_of(job) if job is not None else None
        return AskedWorkload(phase, pods, subject, wanted=len(pods))

    group = job.group if job is not None else None

    def remake(changed: JSON) -> TriedJob:
        return expanded_subject(around, changed, group, pods)[0]

    if phase in (*FINISHED_PHASES, Phase.ABORTED):
        return AskedWorkload(phase, pods, None, ChangedOwner("Job", body, remake))
    subject, planned = expanded_subject(around, body, group, pods, keep_group=True)
    return AskedWorkload(
        phase, pods, subject, ChangedOwner("Job", body, remake), planned, sum(planned.replicas.values())
    )


def expanded_subject(
    around: KnownCluster, body: JSON, group: PodGroup | None, pods: Sequence[Pod], *, keep_group: bool = False
) -> tuple[TriedJob, Planned]:
    """The PodGroup and the pods that are not placed: existing ones where they stay, planned ones where they do not.

    Of a body that was changed everything is made anew, with the PodGroup in its place.
    """
    expanded = around.expand(body)
    made: list[Pod] = expanded.read_pods()
    new_group: PodGroup = expanded.read_group(group)
    existing = {pod.name: pod for pod in pods if not pod.is_deleting}
    chosen = []
    for pod in made:
        role = pod.annotations.get(TASK_SPEC_KEY, "")
        known = existing.get(pod.name)
        if known is not None and (known.spec.node_name or known.is_finished):
            continue
        if known is None and role in expanded.after:
            continue
        chosen.append(known if known is not None and keep_group else pod)
    stated = group if keep_group and group is not None else new_group
    return TriedJob(stated, tuple(chosen)), Planned(expanded.replicas, expanded.after)


def _job_owned_by(around: KnownCluster, question: WhyQuestion, body: JSON) -> Job | None:
    uid = (body.get("metadata") or {}).get("uid")
    for job in around.snapshot.jobs.values():
        if job.namespace != question.namespace or job.group is None:
            continue
        for owner in job.group.metadata.owner_references:
            if owner.kind == "Job" and (owner.uid == uid if uid else owner.name == question.name):
                return job
    return None


def _pod_group(around: KnownCluster, question: WhyQuestion) -> AskedWorkload:
    job = around.snapshot.jobs.get(f"{question.namespace}/{question.name}")
    pods = [
        pod for pod in around.pods(question.namespace) if pod.annotations.get(GROUP_NAME_ANNOTATION) == question.name
    ]
    if job is None or job.group is None:
        return AskedWorkload("Unknown", pods)
    subject, owner = subject_of(job), None
    if question.object is not None and not job.group.metadata.owner_references:
        owner = ChangedOwner(
            "PodGroup", question.object, remake_from_group(subject, lambda body: decode_object(PodGroup, body))
        )
    return AskedWorkload(job.phase or "Pending", pods, subject, owner, wanted=len(pods))


def _pod(around: KnownCluster, question: WhyQuestion) -> AskedWorkload:
    pod = next((each for each in around.pods(question.namespace) if each.name == question.name), None)
    if pod is None:
        return AskedWorkload("Unknown", [])
    job = _job_of_pod(around, pod)
    waits = not pod.spec.node_name and not pod.is_finished
    subject = subject_of(job) if job is not None and job.group is not None and waits else None
    owner = None
    if subject is not None and question.object is not None and not pod.metadata.owner_references:
        owner = ChangedOwner("Pod", question.object, remake_from_pod(subject, _read_pod))
    return AskedWorkload(pod.status.phase or "Pending", [pod], subject, owner, wanted=1)


def _job_of_pod(around: KnownCluster, pod: Pod) -> Job | None:
    for job in around.snapshot.jobs.values():
        if pod.uid in job.tasks:
            return job
    return None


def _templated(around: KnownCluster, question: WhyQuestion) -> AskedWorkload:
    """Workloads of Kubernetes: their pods are found by their owners; the first PodGroup that waits is explained."""
    owners = {question.name}
    for body in question.objects:
        metadata = body.get("metadata") or {}
        if any(owner.get("name") == question.name for owner in metadata.get("ownerReferences") or ()):
            owners.add(metadata.get("name", ""))
    pods = [
        pod
        for pod in around.pods(question.namespace)
        if any(owner.name in owners for owner in pod.metadata.owner_references)
    ]
    jobs = [job for pod in pods if (job := _job_of_pod(around, pod)) is not None and job.group is not None]
    waiting = [job for job in dict.fromkeys(jobs) if job.by_status[Status.PENDING]]
    subject = subject_of(waiting[0]) if waiting else None
    spec = (question.object or {}).get("spec") or {}
    wanted = int(spec.get("replicas", spec.get("parallelism", 1)) or 0)
    owner = None
    if subject is not None and question.object is not None:
        owner = ChangedOwner(question.kind, question.object, remake_from_template(subject, _read_pod))
    phase = "Running" if pods and all(pod.status.phase == "Running" for pod in pods) else "Pending"
    return AskedWorkload(phase, pods, subject, owner, wanted=wanted)


def _read_pod(template: JSON) -> Pod:
    metadata = {"name": "template", "namespace": "default", **(template.get("metadata") or {})}
    return decode_object(Pod, {**template, "metadata": metadata})
