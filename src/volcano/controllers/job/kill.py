"""Ending pods: first the intent is written into the status, then pods are marked and deleted, as often as it takes.

Which pods have to go is read from the phase, the version and the `restart` record alone, so that a kill which was cut
short goes on where it stopped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import msgspec

from volcano.api.batch import OUT_OF_SYNC_KEY, Phase
from volcano.controllers.job.plugins import removal
from volcano.controllers.job.policies import ActionRequest
from volcano.controllers.job.records import EVERYTHING, UNFINISHED, Records, Target
from volcano.controllers.job.states import STATES, Keep, Kill, Work, settled
from volcano.controllers.job.status import (
    count,
    entering,
    lasting,
    tally,
    with_counts,
    with_final_counts,
    written,
    written_as_is,
)
from volcano.controllers.job.view import JobPod, JobView
from volcano.machinery.plan import NOTHING, Delete, Patch, Plan, Record, Step, Together, patch_status, ref

MARK = {"metadata": {"annotations": {OUT_OF_SYNC_KEY: "true"}}}


# -- the intent -----------------------------------------------------------------------------------------------
def intent(view: JobView, request: ActionRequest, records: Records) -> Plan:
    """The status in which the job is being killed; what follows from it is decided when it has been written."""
    status, effect = view.job.status, request.effect
    retries = status.retry_count + effect.counts_as_retry
    records = records.without_evicted()
    if isinstance(effect, Kill):
        keep = _kept(view, effect)
        version = status.version + 1
        records = records.without_restart()
        if (effect.then or view.phase) is Phase.RESTARTING:
            records = records.restarting(EVERYTHING if keep is Keep.NOTHING else UNFINISHED)
        counts = count(view, lambda member: keep is Keep.NOTHING or not member.is_finished)
    else:
        assert request.target is not None, "a targeted kill has a target"
        version, records = status.version, records.targeting(request.target)
        targets = records.targets
        counts = count(view, lambda member: any(hits(target, member) for target in targets))
    wanted = with_counts(
        status,
        counts,
        version=version,
        retry_count=retries,
        min_available=view.job.spec.min_available,
        controlled_resources=records.entries,
    )
    if effect.then is not None:
        wanted = entering(view, wanted, effect.then, reason=request.reason or request.action, message=request.why)
    return (
        patch_status(view.job, lasting(view, wanted)),
        Record(ref(view.job), "ExecuteAction", f"Start to execute action {request.action}: {request.why}"),
    )


def _kept(view: JobView, effect: Kill) -> Keep:
    """On the last retry what finished is kept for people to look at."""
    last_retry = view.job.status.retry_count >= view.job.spec.max_retry - 1
    return Keep.FINISHED if last_retry else effect.keep


def hits(target: Target, member: JobPod) -> bool:
    return target.covers(task=member.task, pod=member.name, partition=member.partition)


# -- victims -------------------------------------------------------------------------------------------------
def victims(view: JobView) -> Callable[[JobPod], bool]:
    """The rule for this phase. A pod that carries our mark always goes."""
    work = STATES[view.phase].work
    if work in (Work.DRAIN, Work.CLEAN_UP):
        return lambda member: member.marked or not member.is_finished
    if view.phase is Phase.RESTARTING:
        return _restart_victims(view)
    return lambda member: member.marked or (view.is_old(member) and not member.is_finished)


def _restart_victims(view: JobView) -> Callable[[JobPod], bool]:
    everything, targets = view.records.restart == EVERYTHING, view.records.targets

    def goes(member: JobPod) -> bool:
        if member.marked or (view.is_old(member) and (everything or not member.is_finished)):
            return True
        return any(hits(target, member) for target in targets)

    return goes


def ending(members: Iterable[JobPod]) -> Plan:
    """Mark, so that their end is not taken for a loss, then delete."""
    standing = [member for member in members if not member.is_deleting]
    unmarked = [Patch(ref(member.pod), MARK) for member in standing if not member.marked]
    return (*_together(unmarked), *_together([Delete(ref(member.pod)) for member in standing]))


def _together(steps: list[Patch] | list[Delete]) -> Plan:
    return (Together(tuple(steps)),) if steps else ()


def _group_removal(view: JobView) -> Plan:
    group = view.group
    return (Delete(ref(group)),) if group is not None and not group.is_deleting else ()


def _plugin_removal(view: JobView) -> Plan:
    return removal(view.job, view.records.plugins)


# -- the phases that end pods -----------------------------------------------------------------------------------
def drain(view: JobView, succeeded: int = 0) -> Plan:
    """Aborting, Completing, Terminating: end what is unfinished, and then the phase.

    `succeeded`: the pods that were removed since the last decision and had succeeded before that.
    """
    goes = victims(view)
    counts = count(view, goes)
    steps = (*ending(member for member in view.members if goes(member)), *_group_removal(view))
    rule = settled(view.phase, tally(view, counts))
    wanted = with_final_counts(view, view.job.status, counts, succeeded)
    if rule is None:
        return (*steps, *(written_as_is(view, wanted) if succeeded else ()))
    state = view.job.status.state
    records = view.records.without_plugins()
    wanted = msgspec.structs.replace(wanted, controlled_resources=records.entries)
    wanted = entering(view, wanted, rule.then, reason=state.reason, message=state.message)
    return (*steps, *_plugin_removal(view), patch_status(view.job, lasting(view, wanted)))


def finish_restart(view: JobView) -> Plan:
    """Restarting: end what is restarted; once that is under way the counts say how it goes on."""
    goes, everything = victims(view), view.records.restarts_all
    doomed = [member for member in view.members if goes(member)]
    if any(not member.is_deleting for member in doomed):
        return (*ending(doomed), *(_group_removal(view) if everything else ()))
    if everything and view.group is not None:
        return _group_removal(view)
    counts = count(view, goes)
    rule = settled(view.phase, tally(view, counts))
    if rule is None:
        return _refresh(view)
    records, cleaning = view.records.without_restart(), NOTHING
    if everything and rule.then is Phase.PENDING:
        records, cleaning = records.without_plugins(), _plugin_removal(view)
    wanted = with_counts(view.job.status, counts, controlled_resources=records.entries)
    reason, message = "", ""
    if rule.then is Phase.FAILED:
        reason, message = "MaxRetriesReached", f"restarted {wanted.retry_count} times; {view.job.status.state.message}"
    wanted = entering(view, wanted, rule.then, reason=reason, message=message)
    wanted = msgspec.structs.replace(wanted, min_available=view.job.spec.min_available)
    return (*cleaning, patch_status(view.job, lasting(view, wanted)))


def _refresh(view: JobView) -> Plan:
    """The gang's size may be changed while a job restarts."""
    wanted = msgspec.structs.replace(view.job.status, min_available=view.job.spec.min_available)
    return written(view, wanted)


def clean_up(view: JobView, succeeded: int = 0) -> Plan:
    """Finished and aborted jobs: nothing runs, no plugin object and no PodGroup is left, what finished is kept.

    `succeeded`: as for `drain`.
    """
    goes = victims(view)
    doomed = [member for member in view.members if goes(member)]
    steps: list[Step] = [*ending(doomed), *_plugin_removal(view), *_group_removal(view)]
    status, records = view.job.status, view.records.without_plugins().without_restart().without_evicted()
    wanted = msgspec.structs.replace(status, controlled_resources=records.entries)
    if status.running_duration is None:
        # The counts ended this job, not a kill: this is its kill.
        wanted = lasting(view, msgspec.structs.replace(wanted, version=status.version + 1))
    if not doomed or succeeded or wanted != status:
        wanted = with_final_counts(view, wanted, count(view, goes), succeeded)
    return (*steps, *written_as_is(view, wanted))
