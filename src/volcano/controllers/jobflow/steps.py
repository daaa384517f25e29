"""The steps of a flow: which Job each has, what became of it, and whether it may start.

A step that has a Job, one whose Job is gone and one that never had any are three different things: the flow's status
remembers each Job that was seen, so a Job that vanished is never made again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from volcano.api.batch import FINISHED_PHASES, Job, Phase
from volcano.api.flow import FlowCondition, FlowJobStatus
from volcano.api.jobs.sources import FlowSource, JobFlowSource
from volcano.api.meta import Key
from volcano.machinery.world import World

VANISHED: Final = "Vanished"
"""The state of a step whose Job was deleted before it had finished."""


@dataclass(frozen=True, slots=True)
class JobGone:
    """A Job of a flow was seen to go, in this state."""

    name: str
    flow_uid: str
    phase: str


@dataclass(slots=True)
class FlowStep:
    """One step, as far as it has come."""

    name: str
    flow: FlowSource
    job_name: str
    job: Job | None = None
    record: FlowJobStatus | None = None
    condition: FlowCondition | None = None
    last_phase: str = ""  # of a Job that went before it was recorded
    foreign: Job | None = None
    targets: list[FlowStep] = field(default_factory=list)

    @property
    def has_started(self) -> bool:
        return self.job is not None or self.record is not None or bool(self.last_phase)

    @property
    def has_vanished(self) -> bool:
        """It had a Job, and that is gone."""
        return self.job is None and self.has_started

    @property
    def phase(self) -> str:
        """The phase of its Job; of one that is gone, the last one if that was final."""
        if self.job is not None:
            return self.job.status.state.phase
        if not self.has_started:
            return ""
        last = self.last_phase or (self.record.state if self.record is not None else "")
        return last if last in FINISHED_PHASES else VANISHED

    @property
    def is_completed(self) -> bool:
        return self.phase == Phase.COMPLETED


def job_name(flow: JobFlowSource, step: str) -> str:
    return f"{flow.name}-{step}"


def steps_of(flow: JobFlowSource, world: World, gone: Iterable[JobGone]) -> dict[str, FlowStep]:
    """All steps by name, in order; of several of one name the last counts."""
    records = {record.name: record for record in flow.status.job_status_list}
    went = {each.name: each.phase for each in gone if each.flow_uid == flow.uid}
    steps: dict[str, FlowStep] = {}
    for source in flow.spec.flows:
        name = job_name(flow, source.name)
        step = FlowStep(source.name, source, name, record=records.get(name), condition=flow.status.conditions.get(name))
        found = world.get(Job, Key(flow.namespace, name))
        if found is not None and is_owned(found, flow):
            step.job = found
        else:
            step.foreign = found
            step.last_phase = (went[name] or VANISHED) if name in went else ""
        steps[source.name] = step
    _link(steps)
    return steps


def is_owned(job: Job, flow: JobFlowSource) -> bool:
    return any(owner.uid == flow.uid for owner in job.metadata.owner_references)


def _link(steps: Mapping[str, FlowStep]) -> None:
    for step in steps.values():
        wanted = step.flow.depends_on.targets if step.flow.depends_on is not None else []
        step.targets = [steps[target] for target in wanted if target in steps]
