"""The pod state machine: (pod, record, event, now) → (record, commands). Pure; the agent carries the commands out.

The record can be rebuilt from the pod's status and from what the runtime still runs (resume.py), so a restarted agent
continues where the last one stopped. Whether a container restarts is restart_policy's; the API's view is pod_status's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, TypeAlias

from msgspec.structs import replace

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.lifecycle.pod_events import (
    Assigned,
    Clean,
    ContainerEnded,
    Deleted,
    EmitEvent,
    Evicted,
    Exited,
    Forget,
    PodCommand,
    PodEvent,
    Prepare,
    Prepared,
    Probed,
    Remove,
    ShutDown,
    Start,
    Started,
    Stop,
    Unprepared,
    Unstarted,
    Vanished,
    WakeAt,
    Woken,
)
from volcano.embedded.agent.lifecycle.pod_record import (
    ContainerLaunching,
    ContainerRecord,
    ContainerRole,
    ContainerRunning,
    ContainerWaiting,
    Ending,
    PodRecord,
    RunState,
)
from volcano.embedded.agent.lifecycle.restart_policy import BACKOFF_RESET_AFTER, MIN_RESTART_BACKOFF, backoff, restarts
from volcano.embedded.agent.lifecycle.resume import resumed_container, with_reason

PREPARE_RETRY_DELAY: Final = timedelta(seconds=2)
MAX_GRACE_AFTER_REMOVAL: Final = timedelta(seconds=2)
"""For a pod that the API server no longer has: nothing waits for its containers any more."""
SHUTDOWN_MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"


Transition: TypeAlias = tuple[PodRecord, tuple[PodCommand, ...]]


def begin(pod: AgentPod, event: Assigned, now: datetime) -> Transition:
    """The first record of a pod: a new one, or one that was already running when the agent started."""
    found = {each.container: each for each in event.found}
    mains = {container.name for container in pod.spec.containers}
    containers = tuple(
        resumed_container(pod, each, found.get(each.name), each.name in mains, now) for each in pod.all_containers
    )
    record = PodRecord(
        containers,
        start_time=pod.status.start_time or now,
        address=event.address or pod.status.pod_ip,
        is_prepared=bool(event.address),
        phase=pod.status.phase if pod.is_finished else "",
    )
    commands: list[PodCommand] = []
    if not record.is_finished:
        if not record.is_prepared:
            commands.append(Prepare())
        if pod.deadline is not None:
            commands.append(WakeAt(record.start_time + pod.deadline))
    if pod.is_deleting:
        record = replace(record, is_deleted=True, ending=Ending(pod.grace))
    return _settled(pod, record, now, commands)


def step(pod: AgentPod, record: PodRecord, event: PodEvent, now: datetime) -> Transition:
    """The record after one event, and the commands that follow from it."""
    commands: list[PodCommand] = []
    match event:
        case Prepared(address, warning, lack):
            record = replace(record, is_prepared=True, address=address, trouble=None)
            commands += [EmitEvent("MissingClusterDNS", warning, "Warning")] if warning else []
            commands += [EmitEvent("MissingCapability", lack, "Warning")] if lack else []
        case Unprepared():
            record = replace(record, trouble=event)
            commands += [EmitEvent(event.reason, event.message, "Warning"), WakeAt(now + PREPARE_RETRY_DELAY)]
        case Started(name, attempt, started_at):
            record = _with(record, name, attempt, ContainerRunning(started_at))
        case Unstarted():
            record = _unstarted(record, event, now, commands)
        case Exited(name, attempt, ended):
            record = _exited(record, name, attempt, ended)
        case Probed():
            record = _probed(pod, record, event, commands)
        case Deleted(grace):
            record = replace(record, is_deleted=True, ending=_ending(record, Ending(grace), commands))
        case Vanished():
            gone = Ending(min(pod.grace, MAX_GRACE_AFTER_REMOVAL))
            record = replace(record, is_vanished=True, ending=_ending(record, gone, commands))
        case Evicted(message, reason):
            eviction = Ending(pod.grace, reason, message, "Failed")
            record = replace(record, ending=record.ending or eviction)
        case ShutDown(grace):
            record = _shut_down(pod, record, grace)
        case Woken():
            record = _woken(pod, record, now, commands)
        case Assigned():
            pass
    return _settled(pod, record, now, commands)


# -- effects of each event ---------------------------------------------------------------------------------------
def _with(record: PodRecord, name: str, attempt: int, state: RunState) -> PodRecord:
    """The record with a container in a new state; a report of an older attempt changes nothing."""
    return replace(
        record,
        containers=tuple(
            replace(each, state=state) if each.name == name and each.attempt == attempt and each.is_live else each
            for each in record.containers
        ),
    )


def _unstarted(record: PodRecord, event: Unstarted, now: datetime, commands: list[PodCommand]) -> PodRecord:
    commands.append(EmitEvent(event.reason, event.message, "Warning"))
    if event.is_run:
        ended = ContainerEnded(128, now, now, event.reason, event.message)
        return _exited(record, event.container, event.attempt, ended)
    until = now + MIN_RESTART_BACKOFF
    commands.append(WakeAt(until))
    return _with(record, event.container, event.attempt, ContainerWaiting(event.reason, event.message, until))


def _exited(record: PodRecord, name: str, attempt: int, ended: ContainerEnded) -> PodRecord:
    return _with(record, name, attempt, with_reason(ended))


def _probed(pod: AgentPod, record: PodRecord, event: Probed, commands: list[PodCommand]) -> PodRecord:
    container = record.container(event.container)
    if container is None or container.attempt != event.attempt or not isinstance(container.state, ContainerRunning):
        return record
    state = container.state
    if event.probe == "readiness":
        if not event.ok and state.passed_readiness:
            commands.append(EmitEvent("Unhealthy", f"Readiness probe failed: {event.message}", "Warning"))
        return _with(record, container.name, container.attempt, replace(state, passed_readiness=event.ok))
    if event.ok:
        return _with(record, container.name, container.attempt, replace(state, passed_startup=True))
    if state.is_stopping:
        return record
    commands += [
        EmitEvent("Unhealthy", f"{event.probe.capitalize()} probe failed: {event.message}", "Warning"),
        EmitEvent("Killing", f"Container {container.name} failed {event.probe} probe, will be restarted"),
        Stop(container.name, container.attempt, pod.grace),
    ]
    return _with(record, container.name, container.attempt, replace(state, is_stopping=True, passed_readiness=False))


def _ending(record: PodRecord, wanted: Ending, commands: list[PodCommand]) -> Ending:
    """The ending after a further request: reason and phase stay, a shorter grace period replaces the longer one."""
    ending = record.ending
    if ending is None:
        return wanted
    if wanted.grace < ending.grace:
        commands += [
            Stop(container.name, container.attempt, wanted.grace)
            for container in record.containers
            if container.is_live
        ]
    return replace(ending, grace=min(wanted.grace, ending.grace), restarts=False)


def _shut_down(pod: AgentPod, record: PodRecord, grace: timedelta) -> PodRecord:
    if record.ending is not None or record.is_finished:
        return record
    grace = min(grace, pod.grace)
    if pod.spec.restart_policy == "Never":
        return replace(record, ending=Ending(grace, "Terminated", SHUTDOWN_MESSAGE, "Failed"))
    return replace(record, ending=Ending(grace, restarts=True))


def _woken(pod: AgentPod, record: PodRecord, now: datetime, commands: list[PodCommand]) -> PodRecord:
    if record.is_finished or record.ending is not None:
        return record
    if pod.deadline is not None and now >= record.start_time + pod.deadline:
        commands.append(EmitEvent("DeadlineExceeded", DEADLINE_MESSAGE))
        return replace(record, ending=Ending(pod.grace, "DeadlineExceeded", DEADLINE_MESSAGE, "Failed"))
    if record.trouble is not None and not record.is_prepared:
        commands.append(Prepare())
    return record


# -- consequences ---------------------------------------------------------------------------------------------------
def _settled(pod: AgentPod, record: PodRecord, now: datetime, commands: list[PodCommand]) -> Transition:
    """Advance the pod as far as possible now; clean up once nothing of it runs."""
    if not record.is_finished:
        if record.ending is None and record.is_prepared:
            record = _advanced(pod, record, now, commands)
        elif record.ending is None and _is_over(pod, record):
            record = replace(record, ending=Ending(pod.grace))
        if record.ending is not None:
            record = _ended(pod, record, commands)
    if (record.is_finished or record.is_vanished) and not record.has_live:
        if not record.is_cleaned:
            record = replace(record, is_cleaned=True)
            commands.append(Clean())
        if record.is_vanished:
            commands.append(Forget())
        elif record.is_deleted and not record.is_removed:
            record = replace(record, is_removed=True)
            commands.append(Remove())
    return record, tuple(commands)


def _advanced(pod: AgentPod, record: PodRecord, now: datetime, commands: list[PodCommand]) -> PodRecord:
    """Start the containers whose turn it is: init containers in order, then the others; end a pod that is done."""
    containers = list(record.containers)
    is_initialized = True
    for index, container in enumerate(containers):
        # A container that has run before restarts on its own, whatever the state of the containers before it.
        if not (is_initialized or (container.role is not ContainerRole.INIT and container.has_run)):
            continue
        containers[index] = container = _restarted(pod, container, now, commands)
        if container.role is ContainerRole.INIT:
            if container.ended is not None and container.ended.exit_code != 0:
                return replace(record, containers=tuple(containers), ending=Ending(pod.grace, phase="Failed"))
            is_initialized = is_initialized and container.ended is not None
        elif container.role is ContainerRole.SIDECAR:
            is_initialized = is_initialized and _has_begun(pod, container)
    record = replace(record, containers=tuple(containers))
    mains = [each for each in containers if each.role is ContainerRole.MAIN]
    if all(each.ended is not None for each in mains):
        return replace(record, ending=Ending(pod.grace))
    return record


def _is_over(pod: AgentPod, record: PodRecord) -> bool:
    """Whether every main container has ended for good, which an agent may find when it starts."""
    mains = [each for each in record.containers if each.role is ContainerRole.MAIN]
    return all(each.ended is not None and not restarts(pod, each, each.ended) for each in mains)


def _has_begun(pod: AgentPod, container: ContainerRecord) -> bool:
    spec = pod.container(container.name)
    if spec is None or not isinstance(container.state, ContainerRunning):
        return False
    return spec.startup_probe is None or container.state.passed_startup


def _restarted(pod: AgentPod, container: ContainerRecord, now: datetime, commands: list[PodCommand]) -> ContainerRecord:
    """Start a waiting container; restart one that ended, after its back-off, if the restart policy allows it."""
    state = container.state
    if isinstance(state, ContainerWaiting):
        if state.until is not None and now < state.until:
            return container
        commands.append(Start(container.name, container.attempt))
        return replace(container, state=ContainerLaunching())
    if not isinstance(state, ContainerEnded) or not restarts(pod, container, state):
        return container
    crashes = 0 if state.finished_at - state.started_at >= BACKOFF_RESET_AFTER else container.crashes
    again = replace(container, attempt=container.attempt + 1, last=state, crashes=crashes + 1)
    delay = backoff(crashes) - (now - state.finished_at)
    if delay <= timedelta(0):
        commands.append(Start(again.name, again.attempt))
        return replace(again, state=ContainerLaunching())
    until = now + delay
    message = (
        f"back-off {int(backoff(crashes).total_seconds())}s restarting failed container={container.name} "
        f"pod={pod.name}_{pod.namespace}({pod.uid})"
    )
    commands += [
        EmitEvent("BackOff", f"Back-off restarting failed container {container.name}", "Warning"),
        WakeAt(until),
    ]
    return replace(again, state=ContainerWaiting("CrashLoopBackOff", message, until))


def _ended(pod: AgentPod, record: PodRecord, commands: list[PodCommand]) -> PodRecord:
    """Stop the containers that still run; once none does, set the final phase."""
    assert record.ending is not None, "only called for a pod that is being ended"
    ending, containers = record.ending, list(record.containers)
    for index, container in enumerate(containers):
        state = container.state
        if isinstance(state, ContainerRunning) and not state.is_stopping:
            commands.append(Stop(container.name, container.attempt, ending.grace))
            containers[index] = replace(container, state=replace(state, is_stopping=True, passed_readiness=False))
    record = replace(record, containers=tuple(containers))
    if record.has_live or ending.restarts:
        return record
    return replace(record, phase=ending.phase or _phase_by_containers(record))


def _phase_by_containers(record: PodRecord) -> str:
    mains = [each.ended for each in record.containers if each.role is ContainerRole.MAIN]
    return "Succeeded" if all(ended is not None and ended.exit_code == 0 for ended in mains) else "Failed"
