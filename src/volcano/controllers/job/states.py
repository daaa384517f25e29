"""The life of a Job as one table: what each phase does by itself, what each action makes of it, and which phase the
counts of its pods lead to. docs/reference/job-lifecycle.md is drawn from it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, TypeAlias

from volcano.api.batch import Action, Phase


class Keep(StrEnum):
    """Which pods are kept when the whole job is killed."""

    NOTHING = "nothing"
    FINISHED = "finished pods"


class Work(StrEnum):
    """What a phase does at every reconcile."""

    SYNC = "make plugin objects, claims, PodGroup and pods match the spec"
    FINISH_RESTART = "end what is being restarted"
    DRAIN = "end all unfinished pods"
    CLEAN_UP = "end unfinished pods, remove plugin objects and PodGroup"


@dataclass(frozen=True, slots=True)
class Kill:
    """End the whole job's pods: the version grows, and the PodGroup goes. Without `then` the phase stays."""

    keep: Keep
    then: Phase | None = None
    counts_as_retry: bool = False


@dataclass(frozen=True, slots=True)
class KillTarget:
    """End the pods of one task, one partition or one pod; version and PodGroup stay."""

    then: Phase | None = None
    counts_as_retry: bool = False


Effect: TypeAlias = Kill | KillTarget


@dataclass(frozen=True, slots=True)
class JobTally:
    """The numbers that the rules for leaving a phase compare."""

    total: int  # replicas of all tasks
    min_available: int
    known_min_available: int = 0  # as the status recorded it
    min_success: int | None = None
    max_retry: int = 3
    retries: int = 0
    pending: int = 0
    running: int = 0
    succeeded: int = 0
    failed: int = 0
    terminating: int = 0
    unplaced: int = 0  # pending pods without a node
    gang_is_short: bool = False  # its failed pods leave fewer than the gang or one of its tasks needs to start
    awaits_policy: bool = False  # a policy acts after its timeout
    a_task_fell_short: bool = False  # fewer successes than its own minAvailable, where the gang covers the tasks

    @property
    def all_finished(self) -> bool:
        return 0 < self.total == self.succeeded + self.failed


def gang_is_up(tally: JobTally) -> bool:
    return tally.min_available <= tally.running + tally.succeeded + tally.failed


def enough_succeeded(tally: JobTally) -> bool:
    return tally.total > 0 and tally.min_success is not None and tally.succeeded >= tally.min_success


def too_few_succeeded(tally: JobTally) -> bool:
    missed = tally.min_success is not None and tally.succeeded < tally.min_success
    return tally.all_finished and (tally.a_task_fell_short or missed or tally.succeeded < tally.min_available)


def all_finished(tally: JobTally) -> bool:
    return tally.all_finished


def gang_is_broken(tally: JobTally) -> bool:
    return tally.total > 0 and tally.pending > tally.total - tally.min_available


def gang_cannot_start(tally: JobTally) -> bool:
    """Nothing of the job runs, and what waits is too small for a gang, since failed pods do not count."""
    whole = tally.total == tally.pending + tally.succeeded + tally.failed
    nothing_runs = whole and tally.running == tally.terminating == 0 < tally.unplaced == tally.pending
    return nothing_runs and tally.gang_is_short and not tally.awaits_policy


def out_of_retries(tally: JobTally) -> bool:
    return tally.retries >= tally.max_retry


def room_for_the_gang(tally: JobTally) -> bool:
    return tally.total - tally.terminating >= tally.known_min_available


def drained(tally: JobTally) -> bool:
    return tally.terminating == tally.pending == tally.running == 0


@dataclass(frozen=True, slots=True)
class Settles:
    """The phase that follows once the counts allow it."""

    then: Phase
    when: Callable[[JobTally], bool]
    words: str


@dataclass(frozen=True, slots=True)
class PhaseRules:
    """One phase: its own work, what actions do instead, and where the counts lead. First rule that holds wins."""

    work: Work
    actions: Mapping[Action, Effect] = field(default_factory=dict)
    settles: tuple[Settles, ...] = ()


TARGETED: Final = (Action.RESTART_TASK, Action.RESTART_POD, Action.RESTART_PARTITION)

RESTART: Final = Kill(Keep.NOTHING, then=Phase.RESTARTING, counts_as_retry=True)
RESTART_TARGET: Final = KillTarget(then=Phase.RESTARTING, counts_as_retry=True)
RESUME: Final = Kill(Keep.FINISHED, then=Phase.RESTARTING, counts_as_retry=True)
RESTART_EVERYTHING: Final = Kill(Keep.NOTHING)
ADD_TARGET_TO_RESTART: Final = KillTarget()

_ALIVE: Final[Mapping[Action, Effect]] = {
    Action.RESTART_JOB: RESTART,
    Action.RESTART_TASK: RESTART_TARGET,
    Action.RESTART_POD: RESTART_TARGET,
    Action.RESTART_PARTITION: RESTART_TARGET,
    Action.ABORT_JOB: Kill(Keep.FINISHED, then=Phase.ABORTING),
    Action.TERMINATE_JOB: Kill(Keep.FINISHED, then=Phase.TERMINATING),
    Action.COMPLETE_JOB: Kill(Keep.FINISHED, then=Phase.COMPLETING),
}
_RESTARTING: Final[Mapping[Action, Effect]] = {
    Action.RESTART_JOB: RESTART_EVERYTHING,
    Action.RESTART_TASK: ADD_TARGET_TO_RESTART,
    Action.RESTART_POD: ADD_TARGET_TO_RESTART,
    Action.RESTART_PARTITION: ADD_TARGET_TO_RESTART,
    Action.ABORT_JOB: RESTART_EVERYTHING,
    Action.TERMINATE_JOB: RESTART_EVERYTHING,
    Action.COMPLETE_JOB: RESTART_EVERYTHING,
    Action.RESUME_JOB: RESTART_EVERYTHING,
}

STATES: Final[Mapping[Phase, PhaseRules]] = {
    Phase.PENDING: PhaseRules(
        Work.SYNC,
        _ALIVE,
        (
            Settles(Phase.RUNNING, gang_is_up, "running + succeeded + failed ≥ minAvailable"),
            Settles(Phase.FAILED, gang_cannot_start, "none runs, too few are left for the gang"),
        ),
    ),
    Phase.RUNNING: PhaseRules(
        Work.SYNC,
        _ALIVE,
        (
            Settles(Phase.COMPLETED, enough_succeeded, "succeeded ≥ minSuccess"),
            Settles(Phase.FAILED, too_few_succeeded, "all finished, too few succeeded"),
            Settles(Phase.COMPLETED, all_finished, "all finished"),
            Settles(Phase.FAILED, gang_cannot_start, "none runs, too few are left for the gang"),
            Settles(Phase.PENDING, gang_is_broken, "pending > replicas − minAvailable"),
        ),
    ),
    Phase.RESTARTING: PhaseRules(
        Work.FINISH_RESTART,
        _RESTARTING,
        (
            Settles(Phase.FAILED, out_of_retries, "retryCount ≥ maxRetry"),
            Settles(Phase.PENDING, room_for_the_gang, "replicas − terminating ≥ minAvailable"),
        ),
    ),
    Phase.ABORTING: PhaseRules(
        Work.DRAIN, {Action.RESUME_JOB: RESUME}, (Settles(Phase.ABORTED, drained, "no pod is left unfinished"),)
    ),
    Phase.ABORTED: PhaseRules(Work.CLEAN_UP, {Action.RESUME_JOB: RESUME}),
    Phase.COMPLETING: PhaseRules(Work.DRAIN, {}, (Settles(Phase.COMPLETED, drained, "no pod is left unfinished"),)),
    Phase.COMPLETED: PhaseRules(Work.CLEAN_UP),
    Phase.TERMINATING: PhaseRules(Work.DRAIN, {}, (Settles(Phase.TERMINATED, drained, "no pod is left unfinished"),)),
    Phase.TERMINATED: PhaseRules(Work.CLEAN_UP),
    Phase.FAILED: PhaseRules(Work.CLEAN_UP),
}
"""An action that a phase does not list changes nothing: the phase goes on with its own work."""


def phase_from(text: str) -> Phase:
    """A new job has no phase yet and counts as Pending; so does an unknown phase."""
    return Phase(text) if text and text in tuple(Phase) else Phase.PENDING


def effect_of(phase: Phase, action: str) -> Effect | None:
    """What an action does to a job in this phase; None: nothing but the phase's own work."""
    return STATES[phase].actions.get(Action(action)) if action in tuple(Action) else None


def settled(phase: Phase, tally: JobTally) -> Settles | None:
    """The rule that ends this phase now, if one holds."""
    return next((rule for rule in STATES[phase].settles if rule.when(tally)), None)
