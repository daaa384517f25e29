"""jobflow: start each step of a JobFlow once what it waits for is done or answers, and keep the flow's status.

Every Job has one name and one owner, and every Job that was seen is remembered in the status, so that a flow goes on
after a crash where it was: no step runs twice and none is skipped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import ClassVar, Final

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.flow import CREATED_BY_FLOW
from volcano.api.indexes import PODS_BY_JOB, Indexes
from volcano.api.jobs.estimates import submitter
from volcano.api.jobs.sources import JobFlowSource, JobTemplateSource
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import resource_type
from volcano.controllers.jobflow.merge import merged_spec
from volcano.controllers.jobflow.probes import WAITS, verdict_on
from volcano.controllers.jobflow.status import FAILED, SUCCEED, TERMINATING, next_phase, recounted, with_phase
from volcano.controllers.jobflow.steps import VANISHED, FlowStep, JobGone, steps_of
from volcano.controllers.jobflow.templates import CREATED_BY_TEMPLATE, label_value
from volcano.machinery.controller import Controller, Wake, Waker, self_key
from volcano.machinery.plan import (
    NOTHING,
    Create,
    Delete,
    Found,
    Later,
    Look,
    Plan,
    ProbeAnswer,
    Record,
    Ref,
    Together,
    owner_reference,
    patch_status,
    ref,
)
from volcano.machinery.plan import Step as PlanStep
from volcano.machinery.world import Change, World

ALL: Final = ""  # the name in the key that stands for all flows of a namespace
MAX_LABEL_CHARACTERS: Final = 63
RECHECK_DELAY: Final = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class TemplateAppeared:
    """A template that flows may wait for."""

    name: str


class JobFlowController(Controller):
    """Runs flows."""

    name: ClassVar = "jobflow"
    indexes: ClassVar[Indexes] = PODS_BY_JOB

    def __init__(self, *, probe_period: timedelta = timedelta(seconds=5)) -> None:
        self._probe_period = probe_period

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        return {JobFlowSource: self_key, Job: _jobs, JobTemplateSource: _templates}

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (Pod,)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        if key.name == ALL:
            return _waiting_for_templates(key.namespace, world, causes)
        flow = world.get(JobFlowSource, key)
        if flow is None or flow.is_deleting:
            return NOTHING
        phase = flow.status.state.phase
        if phase == SUCCEED:
            return _cleaned_up(flow, world)
        if phase == TERMINATING:
            return NOTHING
        steps = steps_of(flow, world, [cause for cause in causes if isinstance(cause, JobGone)])
        checks = _checks(flow, steps.values(), causes)
        if checks:
            return checks
        plan: list[PlanStep] = []
        if phase != FAILED:
            plan += self._starts(flow, steps.values(), world, causes)
        if not phase and not _has_its_templates(flow, steps.values(), world):
            return tuple(plan)
        status = recounted(flow.status, steps.values(), world.now)
        status = with_phase(status, next_phase(phase, status, len(steps)))
        if status != flow.status:
            plan.append(patch_status(flow, status))
            plan += _notes(flow, steps.values(), status.state.phase)
        return tuple(plan)

    def _starts(
        self, flow: JobFlowSource, steps: Iterable[FlowStep], world: World, causes: tuple[Hashable, ...]
    ) -> Iterable[PlanStep]:
        """Make the Jobs of all steps whose time has come, and ask what others wait for."""
        answers = {cause.name: cause.ok for cause in causes if isinstance(cause, ProbeAnswer)}
        creations: list[PlanStep] = []
        notes: list[PlanStep] = []
        questions: list[PlanStep] = []
        asks_again = False
        for step in steps:
            verdict = verdict_on(step, world, answers) if not step.has_started else WAITS
            questions += verdict.questions
            asks_again |= verdict.asks_again
            if verdict.starts:
                made, note = _made(flow, step, world)
                creations += [made] if made is not None else []
                notes += [note] if note is not None else []
        if creations:
            yield Together(tuple(creations))
        yield from notes
        if questions:
            yield Together(tuple(questions))
        if asks_again:
            yield Later(self._probe_period)


def _has_its_templates(flow: JobFlowSource, steps: Iterable[FlowStep], world: World) -> bool:
    """Whether the first steps of a new flow can start: until then it has no status, as in Volcano."""
    first = [step for step in steps if not (step.flow.depends_on and step.flow.depends_on.targets)]
    return all(
        step.has_started or world.get(JobTemplateSource, Key(flow.namespace, step.name)) is not None for step in first
    )


def _made(flow: JobFlowSource, step: FlowStep, world: World) -> tuple[Create | None, Record | None]:
    """The Job of a step, or why there is none."""
    template = world.get(JobTemplateSource, Key(flow.namespace, step.name))
    if step.foreign is not None:
        if step.foreign.is_deleting:
            return None, None  # an earlier flow's; this one is woken when it is gone
        message = f"the name {step.job_name} is taken by a Job that is not of this flow"
        return None, Record(ref(flow), "ForeignJob", message, "Warning")
    if template is None:
        message = f"JobTemplate {flow.namespace}/{step.name} does not exist"
        return None, Record(ref(flow), "SyncJobFlow", message, "Warning")
    note = Record(ref(flow), "Created", f"Job {step.job_name} of step {step.name} is created")
    return Create(resource_type(Job), job_for(flow, step, template)), note


def job_for(flow: JobFlowSource, step: FlowStep, template: JobTemplateSource) -> JSON:
    """The Job of a step."""
    made_by = {
        CREATED_BY_TEMPLATE: label_value(template.namespace, template.name),
        CREATED_BY_FLOW: label_value(flow.namespace, flow.name),
    }
    patch = step.flow.patch.job_spec if step.flow.patch is not None else None
    return {
        "metadata": {
            "name": step.job_name,
            "namespace": flow.namespace,
            "labels": {key: value for key, value in made_by.items() if len(value) <= MAX_LABEL_CHARACTERS},
            "annotations": {**made_by, **submitter(flow)},
            "ownerReferences": [owner_reference(flow)],
        },
        "spec": merged_spec(template.spec, patch),
    }


def _checks(flow: JobFlowSource, steps: Iterable[FlowStep], causes: tuple[Hashable, ...]) -> Plan:
    """Jobs that existed and are missing from the World: ask the server before they count as deleted."""
    deleted = {cause.name for cause in causes if isinstance(cause, JobGone)}
    looked = {cause.target.key.name: cause.present for cause in causes if isinstance(cause, Found)}
    missing = [step.job_name for step in steps if step.has_vanished and step.record and step.record.state != step.phase]
    if any(looked.get(name) for name in missing):
        return (Later(RECHECK_DELAY),)
    if all(name in deleted or name in looked for name in missing):
        return NOTHING
    return tuple(Look(Ref(resource_type(Job), Key(flow.namespace, name))) for name in missing)


def _cleaned_up(flow: JobFlowSource, world: World) -> Plan:
    if flow.spec.job_retain_policy != "delete":
        return NOTHING
    jobs = [job for job in world.where(Job, "owner", flow.uid) if not job.is_deleting]
    return (Together(tuple(Delete(ref(job), propagation="Background") for job in jobs)),) if jobs else NOTHING


def _notes(flow: JobFlowSource, steps: Iterable[FlowStep], phase: str) -> Iterable[PlanStep]:
    for step in steps:
        if step.has_vanished and step.phase == VANISHED and (step.record is None or step.record.state != VANISHED):
            message = f"Job {step.job_name} was deleted before it had finished; it is not made again"
            yield Record(ref(flow), "JobVanished", message, "Warning")
    if phase == SUCCEED and flow.status.state.phase != SUCCEED:
        yield Record(ref(flow), "Succeeded", "all steps are completed")
    if phase == FAILED and flow.status.state.phase != FAILED:
        yield Record(ref(flow), "Failed", "a step did not complete", "Warning")


def _jobs(change: Change[Job]) -> Iterable[Wake]:
    owner = change.object.controller
    if owner is None or owner.kind != "JobFlow":
        return
    job = change.object
    gone = JobGone(job.name, owner.uid, job.status.state.phase) if change.new is None else None
    yield Wake(Key(job.namespace, owner.name), gone)


def _templates(change: Change[JobTemplateSource]) -> Iterable[Wake]:
    if change.old is None and change.new is not None:
        yield Wake(Key(change.new.namespace, ALL), TemplateAppeared(change.new.name))


def _waiting_for_templates(namespace: str, world: World, causes: tuple[Hashable, ...]) -> Plan:
    appeared = {cause.name for cause in causes if isinstance(cause, TemplateAppeared)}
    flows = world.where(JobFlowSource, "namespace", namespace)
    waiting = [flow for flow in flows if any(step.name in appeared for step in flow.spec.flows)]
    return tuple(Later(timedelta(0), key=flow.key) for flow in waiting)
