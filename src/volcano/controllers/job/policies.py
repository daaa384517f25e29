"""Lifecycle policies: the action for an event, immediately or after a timeout."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from volcano.api.batch import Action, BusEvent, Job, LifecyclePolicy
from volcano.api.durations import DurationError, parse_duration
from volcano.controllers.job.occurrences import Occurrence, has_run_again, occurrences
from volcano.controllers.job.records import Target
from volcano.controllers.job.states import TARGETED, Effect, KillTarget, effect_of
from volcano.controllers.job.view import JobView, task_name

INTERNAL: Final = (BusEvent.POD_RUNNING, BusEvent.OUT_OF_SYNC, BusEvent.COMMAND_ISSUED)


@dataclass(frozen=True, slots=True)
class Answer:
    """The action of the policy that matches, and its timeout."""

    action: str
    delay: timedelta | None = None


@dataclass(frozen=True, slots=True)
class ActionRequest:
    """An action that is due, and why."""

    action: str
    effect: Effect
    why: str
    target: Target | None = None
    reason: str = ""  # as the status states it; the action's name when empty


@dataclass(frozen=True, slots=True)
class Waiting:
    """An action whose policy has a timeout that has not passed yet."""

    answer: Answer
    occurrence: Occurrence
    due: datetime


@dataclass(frozen=True, slots=True)
class Verdict:
    """The action that is due now, if any, and those that wait for their timeout."""

    request: ActionRequest | None = None
    waiting: tuple[Waiting, ...] = ()


NO_VERDICT: Final = Verdict()


def answer_to(job: Job, occurrence: Occurrence) -> Answer | None:
    """Policies of the task first, then those of the job; the first that matches decides. None: nothing to do."""
    if occurrence.event in INTERNAL:
        return None
    for policy in (*_task_policies(job, occurrence.task), *job.spec.policies):
        if matches(policy, occurrence):
            return Answer(policy.action, _timeout(policy))
    return None


def matches(policy: LifecyclePolicy, occurrence: Occurrence) -> bool:
    events = {policy.event, *policy.events}
    # Every pod is pending at first; only a policy with a timeout means one that stays pending.
    counts = occurrence.event != BusEvent.POD_PENDING or policy.timeout is not None
    if counts and (occurrence.event in events or BusEvent.ANY in events):
        return True
    return policy.exit_code is not None and policy.exit_code == occurrence.exit_code != 0


def _task_policies(job: Job, task: str) -> Sequence[LifecyclePolicy]:
    return next((each.policies for each in job.spec.tasks if task_name(each) == task), ())


def _timeout(policy: LifecyclePolicy) -> timedelta | None:
    if policy.timeout is None:
        return None
    try:
        return parse_duration(policy.timeout)
    except DurationError:
        return timedelta(0)  # admission accepted an invalid timeout: act immediately


def has_policies(job: Job) -> bool:
    return bool(job.spec.policies) or any(task.policies for task in job.spec.tasks)


def judge(view: JobView, causes: Sequence[Hashable], *, spared: frozenset[str] = frozenset()) -> Verdict:
    """The first action that is due and has an effect in this phase, and the actions that wait."""
    if not has_policies(view.job):
        return NO_VERDICT
    waiting = []
    for occurrence in occurrences(view, causes, spared=spared):
        answer = answer_to(view.job, occurrence)
        if answer is None:
            continue
        due = (occurrence.since or view.now) + (answer.delay or timedelta(0))
        if due > view.now:
            waiting.append(Waiting(answer, occurrence, due))
            continue
        request = request_for(view, answer.action, occurrence)
        if request is not None:
            return Verdict(request)
    return Verdict(waiting=tuple(waiting))


def request_for(view: JobView, action: str, occurrence: Occurrence) -> ActionRequest | None:
    """The action as something to do in the job's phase; None when it would change nothing."""
    effect = effect_of(view.phase, action)
    if effect is None:
        return None
    if not isinstance(effect, KillTarget):
        return ActionRequest(action, effect, str(occurrence))
    target = Target(Action(action), occurrence.task, occurrence.pod, occurrence.partition)
    return ActionRequest(action, effect, str(occurrence), target) if is_there(view, target) else None


def is_there(view: JobView, target: Target) -> bool:
    """Whether the target of a restart exists."""
    if target.action is Action.RESTART_PARTITION:
        members = view.by_task.get(target.task, [])
        return target.partition != "" and any(member.partition == target.partition for member in members)
    if target.action is Action.RESTART_POD:
        return bool(target.pod)
    return any(task_name(task) == target.task for task in view.job.spec.tasks)


def command_request(view: JobView, action: str) -> ActionRequest | None:
    """The action of a Command. A Command names no task and no pod, so targeted restarts are ignored."""
    effect = effect_of(view.phase, action)
    if effect is None or action in TARGETED:
        return None
    return ActionRequest(action, effect, "a Command")


def lost_waiting(view: JobView, waiting: Iterable[Waiting]) -> dict[str, datetime]:
    """Lost pods whose policy waits for its timeout: they must be recorded, because no object is left of them."""
    known = view.records.evicted
    return {
        each.occurrence.pod: each.occurrence.since or view.moment
        for each in waiting
        if each.occurrence.event is BusEvent.POD_EVICTED and each.occurrence.pod not in known
    }


def forgotten(view: JobView) -> tuple[str, ...]:
    """Recorded losses whose pod has been replaced and has run."""
    return tuple(pod for pod in view.records.evicted if has_run_again(view, pod))
