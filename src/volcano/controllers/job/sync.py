"""Pending and Running: make plugin objects, claims, the PodGroup and the pods match the spec, and count."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import msgspec

from volcano.api.batch import Action, JobState, JobStatus, Phase
from volcano.api.jobs.estimates import LearnedEstimate
from volcano.controllers.job.again import back_off, is_still_there, makes_again, rest_of_back_off
from volcano.controllers.job.dependencies import hold
from volcano.controllers.job.groups import DIGEST_KEY, group_steps, is_admitted
from volcano.controllers.job.kill import ending, intent, victims
from volcano.controllers.job.plugins import JobPluginBase, JobPluginError, digest, plugins_of
from volcano.controllers.job.pods import FORWARDING_KEY, missing_pods, superfluous
from volcano.controllers.job.policies import ActionRequest, Waiting, forgotten, lost_waiting
from volcano.controllers.job.reasons import why_it_waits, why_placed_pods_wait
from volcano.controllers.job.states import effect_of, settled
from volcano.controllers.job.status import JobPodCounts, count, entering, tally, with_counts, written
from volcano.controllers.job.view import JobView
from volcano.controllers.job.volumes import claims, making, missing_claim, naming
from volcano.machinery.plan import NOTHING, Create, Delete, Later, Look, Patch, Plan, Record, Step, Together, ref

FIRST_RETRY_DELAY: Final = timedelta(milliseconds=5)
MAX_RETRY_DELAY: Final = timedelta(seconds=60)


@dataclass(frozen=True, slots=True)
class Problem:
    """Why the job cannot be synced now; a later retry may succeed."""

    reason: str
    message: str
    passes: bool = False  # it always ends by itself, so retry without limit


def sync(
    view: JobView,
    waiting: Sequence[Waiting],
    causes: tuple[Hashable, ...] = (),
    *,
    give_up_after: timedelta | None,
    now_idle: bool = True,
    learned: LearnedEstimate | None = None,
) -> Plan:
    """One round. The order of the steps makes a crash between any two of them harmless.

    `now_idle`: no more urgent key waits, so a postponed status is written now. `learned`: what past runs took.
    """
    try:
        plugins = plugins_of(view.job)
        for plugin in plugins:
            plugin.check()
        problem = _problem(view) or _leftovers(view, plugins)
    except JobPluginError as error:
        plugins, problem = [], Problem("PluginError", str(error))
    if problem is not None:
        return _wait_out(view, problem, None if problem.passes else give_up_after)
    change = _forwarding(view) or naming(view)
    if change:
        return change  # the changed job is reconciled again
    status = _status(view, plugins, waiting)
    if status.state.phase not in (Phase.PENDING, Phase.RUNNING):
        return written(view, status)
    creates = missing_pods(view, plugins) if is_admitted(view.group) else []
    looks: Plan = NOTHING
    if creates and (pause := rest_of_back_off(view)):
        looks, creates = (Later(pause),), []
    elif creates and makes_again(view, causes) and not is_still_there(view, causes):
        looks = (Look(ref(view.job)),) if is_still_there(view, causes) is None else NOTHING
        creates = []
    status_steps = written(view, status, now_idle=now_idle)
    return (*_prepared(view, plugins, creates, learned), *status_steps, *_pods(view, creates), *looks)


def _problem(view: JobView) -> Problem | None:
    if view.queue is None:
        return Problem("QueueNotFound", f"queue {view.job.spec.queue!r} does not exist")
    held = hold(view)
    if held is not None:
        return Problem(*held, passes=True)
    claim = missing_claim(view) if view.phase is Phase.PENDING else ""
    return Problem("PVCError", f"persistent volume claim {claim!r} does not exist") if claim else None


def _leftovers(view: JobView, plugins: list[JobPluginBase]) -> Problem | None:
    """Plugin objects are named after the job: wait until those of an older job of this name are deleted."""
    begins = any(plugin.is_recorded and plugin.name not in view.records.plugins for plugin in plugins)
    if not begins or not view.leftovers:
        return None
    names = ", ".join(view.leftovers[:3])
    return Problem("OlderJobEnding", f"an older job of this name is still ending: {names}", passes=True)


# -- what surrounds the pods ------------------------------------------------------------------------------------
def _forwarding(view: JobView) -> Plan:
    forwards = view.queue is not None and bool(view.queue.spec.extend_clusters)
    if not forwards or view.job.annotations.get(FORWARDING_KEY) == "true":
        return NOTHING
    return (Patch(ref(view.job), {"metadata": {"annotations": {FORWARDING_KEY: "true"}}}),)


def _prepared(
    view: JobView, plugins: list[JobPluginBase], creates: list[Create], learned: LearnedEstimate | None
) -> Plan:
    """Plugin objects are created once, and again when a pod was lost, since they may have been deleted with it."""
    known, wanted = view.records.plugins, digest(plugins)
    steps: list[Step] = []
    for plugin in plugins:
        if plugin.is_recorded and plugin.name not in known:
            steps += plugin.objects()
        elif view.group is None or view.group.annotations.get(DIGEST_KEY, "") != wanted:
            steps += plugin.refresh()
        elif creates and view.phase is Phase.RUNNING:
            steps += plugin.objects()
    return (*steps, *(making(view) if view.phase is Phase.PENDING else ()), *group_steps(view, wanted, learned))


# -- pods -------------------------------------------------------------------------------------------------------
def _pods(view: JobView, creates: list[Create]) -> Plan:
    goes = victims(view)
    steps: list[Step] = list(ending(member for member in view.members if goes(member)))
    surplus = [Delete(ref(member.pod)) for member in superfluous(view) if not goes(member)]
    if surplus:
        steps.append(Together(tuple(surplus)))
    if creates:
        steps.append(Together(tuple(creates)))
    return tuple(steps)


# -- the status ---------------------------------------------------------------------------------------------------
def _status(view: JobView, plugins: list[JobPluginBase], waiting: Sequence[Waiting]) -> JobStatus:
    counts = count(view, victims(view))
    status = view.job.status
    records = view.records.without_restart()
    records = records.holding((p.name for p in plugins if p.is_recorded), claims(view.job))
    done = forgotten(view)
    records = records.without_evicted(*done) if done else records
    for pod, moment in lost_waiting(view, waiting).items():
        records = records.losing(pod, moment)
    wanted = with_counts(
        status,
        counts,
        min_available=view.job.spec.min_available,
        controlled_resources=records.entries,
        running_duration=None,
    )
    return _phased(view, wanted, counts, awaits_policy=bool(waiting))


def _phased(view: JobView, wanted: JobStatus, counts: JobPodCounts, *, awaits_policy: bool) -> JobStatus:
    if not wanted.state.phase:
        wanted = entering(view, wanted, Phase.PENDING)
    rule = settled(view.phase, tally(view, counts, awaits_policy=awaits_policy))
    phase = rule.then if rule is not None else view.phase
    reason, message = _reason(view, phase, counts)
    if phase != wanted.state.phase:
        return entering(view, wanted, phase, reason=reason, message=message)
    state = JobState(
        phase=phase, reason=reason, message=message, last_transition_time=wanted.state.last_transition_time
    )
    return msgspec.structs.replace(wanted, state=state)


def _reason(view: JobView, phase: Phase, counts: JobPodCounts) -> tuple[str, str]:
    if phase is Phase.FAILED:
        return "TooFewSucceeded", f"{counts.succeeded} of {view.total} pods succeeded, {counts.failed} failed"
    waits = phase is Phase.PENDING or (phase is Phase.RUNNING and counts.pending > 0)
    if not waits:
        return "", ""
    if phase is Phase.PENDING and rest_of_back_off(view):
        times, seconds = view.job.status.retry_count, back_off(view).total_seconds()
        return "RestartBackOff", f"restarted {times} times; this time its pods are made after {seconds:.0f} s"
    reason, message = why_it_waits(view.group)
    return (reason, message) if reason or message else why_placed_pods_wait([member.pod for member in view.members])


# -- problems that may pass -------------------------------------------------------------------------------------
def _wait_out(view: JobView, problem: Problem, give_up_after: timedelta | None) -> Plan:
    """Record the problem, retry with growing delays, and terminate the job after `give_up_after`.

    The status holds the time of the first failure, so nothing else is written while the job waits.
    """
    state = view.job.status.state
    if state.reason != problem.reason or state.last_transition_time is None or not state.phase:
        phase = Phase(state.phase) if state.phase else Phase.PENDING
        status = msgspec.structs.replace(view.job.status, min_available=view.job.spec.min_available)
        wanted = entering(view, status, phase, reason=problem.reason, message=problem.message)
        warning = Record(ref(view.job), problem.reason, problem.message, "Warning")
        return (*written(view, wanted), warning, Later(FIRST_RETRY_DELAY))
    elapsed = view.now - state.last_transition_time
    if give_up_after is not None and elapsed >= give_up_after:
        effect = effect_of(view.phase, Action.TERMINATE_JOB)
        assert effect is not None, "a job that is synced can be terminated"
        why = f"retry limit reached: {problem.message}"
        return intent(view, ActionRequest(Action.TERMINATE_JOB, effect, why), view.records)
    pause = min(max(elapsed, FIRST_RETRY_DELAY), MAX_RETRY_DELAY)
    return (Later(min(pause, give_up_after - elapsed) if give_up_after is not None else pause),)
