"""job: turns a Job into a PodGroup and pods, and ends, restarts and cleans up as its policies and Commands require.

A reconcile first checks for an interruption: a Command, or a policy that matches an event. If there is one, it writes
only that intent into the status; the next reconcile carries it out from the status. A controller that is stopped
between any two writes therefore continues where it stopped.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from datetime import timedelta
from typing import ClassVar, Final

import msgspec

from volcano.api.batch import MAX_PODS_PER_JOB, Action, Job, Phase
from volcano.api.bus import Command
from volcano.api.core import PersistentVolumeClaim, Pod, PriorityClass, Service
from volcano.api.durations import format_duration
from volcano.api.indexes import PODS_BY_JOB, Indexes
from volcano.api.jobs.run_times import RunTimes, run_name
from volcano.api.meta import Key, Resource
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.times import is_recent
from volcano.controllers.job.dependencies import DEPENDENTS, released_by
from volcano.controllers.job.kill import clean_up, drain, finish_restart, intent, victims
from volcano.controllers.job.occurrences import Armed, PodBecame, PodGone, succeeded_while_ended
from volcano.controllers.job.policies import NO_VERDICT, ActionRequest, Verdict, Waiting, command_request, judge
from volcano.controllers.job.states import STATES, Work, effect_of
from volcano.controllers.job.status import COUNTERS_INTERVAL
from volcano.controllers.job.sync import sync
from volcano.controllers.job.time_limit import limit_request, time_limit
from volcano.controllers.job.view import TARGET_INDEX, JobView
from volcano.controllers.job.wakes import (
    ArrayMemberGone,
    GroupWaits,
    WakeCause,
    command_changes,
    group_changes,
    job_changes,
    pod_changes,
    targets_of,
)
from volcano.machinery.controller import Controller, PlanFailed, Wake, Waker
from volcano.machinery.plan import NOTHING, Delete, Later, Plan, Record, patch_status, ref
from volcano.machinery.world import Change, World

FIRST_RETRY_DELAY: Final = timedelta(milliseconds=5)

FAILURES: Final[Mapping[tuple[str, str], str]] = {
    ("Pod", "Create"): "FailedCreate",
    ("Pod", ""): "FailedDelete",
    ("PodGroup", ""): "PodGroupError",
    ("PersistentVolumeClaim", ""): "PVCError",
    ("ConfigMap", ""): "PluginError",
    ("Service", ""): "PluginError",
    ("NetworkPolicy", ""): "PluginError",
    ("Secret", ""): "PluginError",
}
"""The reason of the Event about a failed step, by the kind of the step's object. Conflicts on the Job itself get no
Event: they are retried."""
TOO_MANY_PODS: Final = "TooManyPods"
MAX_MESSAGE_CHARACTERS: Final = 1024
MIN_PODS_TO_BATCH: Final = 100
"""From this many pods on, a job is not reconciled for each pod that starts or succeeds, but for many at a time."""


class JobController(Controller):
    """Reconciles Jobs with their specs, policies and Commands.

    All it remembers is how long completed Jobs ran: a new PodGroup gets that as its learned estimate. No job's life
    depends on it. After a restart it is learned again from the Jobs that are still there, and from the history if there
    is one (`run_times`).
    """

    name: ClassVar = "job"
    indexes: ClassVar[Indexes] = {**PODS_BY_JOB, **DEPENDENTS, Command: {TARGET_INDEX: targets_of}}

    def __init__(
        self,
        *,
        max_requeue: int = 15,
        commands: bool = True,
        priority_classes: bool = True,
        run_times: RunTimes | None = None,
    ) -> None:
        self._max_requeue = max_requeue
        self._give_up_after = FIRST_RETRY_DELAY * ((1 << min(max_requeue, 40)) - 1) if max_requeue >= 0 else None
        self._obeys = commands
        self._run_times = run_times or RunTimes()
        self._classes: tuple[type[Resource], ...] = (PriorityClass,) if priority_classes else ()

    @property
    def wakes_on(self) -> Mapping[type[Resource], Waker]:
        wakers: dict[type[Resource], Waker] = {Job: self._job_changes, Pod: pod_changes, PodGroup: group_changes}
        return {**wakers, Command: command_changes} if self._obeys else wakers

    @property
    def reads(self) -> tuple[type[Resource], ...]:
        return (Queue, *self._classes, PersistentVolumeClaim, Service)

    def _job_changes(self, change: Change[Job]) -> Iterable[Wake]:
        new, old = change.new, change.old
        if new is not None and (old is None or old.status.state.phase != new.status.state.phase):
            self._run_times.add_finished(new)
        return job_changes(change)

    def decide(self, key: Key, world: World, causes: tuple[Hashable, ...]) -> Plan:
        job = world.get(Job, key)
        released = released_by(key, job, world, [cause.array for cause in causes if isinstance(cause, ArrayMemberGone)])
        if job is None:
            orphans = world.where(Command, TARGET_INDEX, str(key)) if self._obeys else []
            return (*(Delete(ref(command)) for command in orphans), *released)
        if job.is_deleting:
            return released
        wanted = sum(task.replicas for task in job.spec.tasks)
        if wanted > MAX_PODS_PER_JOB:  # admission refuses it, but it may have been stored before or without admission
            about = f"the job is left alone: it has {wanted} replicas, and at most {MAX_PODS_PER_JOB} are possible"
            return (Record(ref(job), TOO_MANY_PODS, about, "Warning"), *released)
        return (*self._decide_for(JobView(job, world), causes), *released)

    def _decide_for(self, view: JobView, causes: tuple[Hashable, ...]) -> Plan:
        delay = _batch_delay(view, causes)
        if delay is not None:
            return (Later(delay),)
        events = _group_events(view, causes)
        commanded = _command_steps(view) if self._obeys else None
        if commanded is not None:
            return (*commanded, *events)
        verdict = self._verdict(view, causes)
        if verdict.request is not None:
            return (*intent(view, verdict.request, view.records), *events)
        limit = limit_request(view, causes)
        if limit is not None:
            return (*intent(view, limit, view.records), *events)
        steps = self._continue(view, verdict, causes)
        return (*steps, *events, *_reminders(view, verdict.waiting, causes), *_until_limit(view, causes))

    def on_failure(self, key: Key, world: World, failure: PlanFailed) -> Plan:
        """Record an Event about the failed step; terminate the job after more than max_requeue refusals."""
        job = world.get(Job, key)
        if job is None or job.is_deleting:
            return NOTHING
        reason = FAILURES.get((failure.kind, failure.step)) or FAILURES.get((failure.kind, ""))
        about = f"{failure.step.lower()} {failure.kind} {failure.object}: {failure.message}"
        events = (Record(ref(job), reason, f"Failed to {about}", "Warning"),) if reason else NOTHING
        view = JobView(job, world)
        effect = effect_of(view.phase, Action.TERMINATE_JOB)
        gives_up = failure.refused and 0 <= self._max_requeue < failure.tries
        if not gives_up or effect is None or view.phase is Phase.RESTARTING:
            return events
        why = f"retry limit reached: {about}"[:MAX_MESSAGE_CHARACTERS]
        return (*events, *intent(view, ActionRequest(Action.TERMINATE_JOB, effect, why), view.records))

    @staticmethod
    def _verdict(view: JobView, causes: tuple[Hashable, ...]) -> Verdict:
        match STATES[view.phase].work:
            case Work.SYNC:
                return judge(view, causes)
            case Work.FINISH_RESTART if not view.records.restarts_all:
                goes = victims(view)
                spared = frozenset(member.name for member in view.members if goes(member))
                return judge(view, causes, spared=spared)
        return NO_VERDICT

    def _continue(self, view: JobView, verdict: Verdict, causes: tuple[Hashable, ...]) -> Plan:
        now_idle = WakeCause.WHEN_IDLE in causes
        match STATES[view.phase].work:
            case Work.SYNC:
                learned = self._run_times.learned(run_name(view.job)) if view.group is None else None
                return sync(
                    view, verdict.waiting, causes, give_up_after=self._give_up_after, now_idle=now_idle, learned=learned
                )
            case Work.FINISH_RESTART:
                return finish_restart(view)
            case Work.DRAIN:
                return drain(view, succeeded_while_ended(view, causes))
            case Work.CLEAN_UP:
                return clean_up(view, succeeded_while_ended(view, causes))


def _batch_delay(view: JobView, causes: tuple[Hashable, ...]) -> timedelta | None:
    """Batch status updates: changes of pods of a large job wait while its status is younger than COUNTERS_INTERVAL."""
    if view.total < MIN_PODS_TO_BATCH or not causes:
        return None
    if not all(isinstance(cause, PodBecame) and cause.phase != "Failed" for cause in causes):
        return None
    last = view.job.status.state.last_transition_time
    if last is None or not is_recent(last, view.now, COUNTERS_INTERVAL):
        return None
    return last + COUNTERS_INTERVAL - view.now


# -- Commands ---------------------------------------------------------------------------------------------------
def _command_steps(view: JobView) -> Plan | None:
    """Record the oldest Command in the status, delete it, then act, so that it is carried out exactly once."""
    known = view.records.command
    if known is not None and not known.is_done:
        removal = tuple(Delete(ref(command)) for command in view.commands if command.uid == known.uid)
        records = view.records.done(known.uid)
        request = command_request(view, known.action)
        if request is not None:
            return (*removal, *intent(view, request, records))
        status = msgspec.structs.replace(view.job.status, controlled_resources=records.entries)
        return (*removal, patch_status(view.job, status))
    for command in view.commands:
        if known is not None and command.uid == known.uid:
            return (Delete(ref(command)),)
        issued = Record(ref(view.job), "CommandIssued", f"Command {command.name}: {command.action}")
        if command_request(view, command.action) is None:
            return (Delete(ref(command)), issued)  # it changes nothing in this phase
        records = view.records.accepting(command.uid, command.action)
        status = msgspec.structs.replace(view.job.status, controlled_resources=records.entries)
        return (patch_status(view.job, status), issued)
    return None


# -- Events, and timeouts of policies -----------------------------------------------------------------------------
def _group_events(view: JobView, causes: tuple[Hashable, ...]) -> Plan:
    job = view.job
    return tuple(
        Record(
            ref(job),
            "PodGroupPending",
            f"PodGroup {job.namespace}:{job.name} {cause.condition.lower()}: {cause.message}",
            "Warning",
        )
        for cause in causes
        if isinstance(cause, GroupWaits)
    )


def _until_limit(view: JobView, causes: tuple[Hashable, ...]) -> Plan:
    limit = time_limit(view)
    return (limit.reminder(view.now),) if limit is not None and not limit.is_over(view.now, causes) else NOTHING


def _reminders(view: JobView, waiting: tuple[Waiting, ...], causes: tuple[Hashable, ...]) -> Plan:
    """Requeue for the first timeout; record Events for the timeouts that start with this decision."""
    if not waiting:
        return NOTHING
    began = {(cause.pod, cause.phase) for cause in causes if isinstance(cause, PodBecame)}
    gone = {cause.pod for cause in causes if isinstance(cause, PodGone)}
    steps: list[Record | Later] = []
    for each in waiting:
        about = each.occurrence
        phase = view.by_name[about.pod].phase if about.pod in view.by_name else ""
        if (about.pod, phase) in began or about.pod in gone:
            delay = format_duration(each.answer.delay or timedelta(0))
            message = f"Execute action {each.answer.action} after {delay}: {about}"
            steps.append(Record(ref(view.job), "ExecuteAction", message))
    first = min(waiting, key=lambda each: each.due)
    about = first.occurrence
    cause = Armed(about.event, about.task, about.pod, view.now) if about.since is None else None
    return (*steps, Later(first.due - view.now, cause))
