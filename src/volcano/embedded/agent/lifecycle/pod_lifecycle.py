"""What a pod does next: (pod, record, event, now) → (record, commands). Pure; the agent carries the commands out.

The record is all that is known of a running pod. It can be rebuilt from the pod's status and from what the runtime
still has, so an agent that starts again goes on where the last one was. How it looks to the API is pod_status's.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import Final, TypeAlias

import msgspec
from msgspec.structs import replace

from volcano.api.core import ContainerStatus
from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.embedded.agent.lifecycle.pod_events import (
    EXIT_CODE_SIGKILL,
    Assigned,
    Clean,
    ContainerEnded,
    Deleted,
    EmitEvent,
    Evicted,
    Exited,
    Forget,
    FoundContainer,
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

MIN_RESTART_BACKOFF: Final = timedelta(seconds=10)
MAX_RESTART_BACKOFF: Final = timedelta(minutes=5)
BACKOFF_RESET_AFTER: Final = timedelta(minutes=10)
PREPARE_RETRY_DELAY: Final = timedelta(seconds=2)
MAX_GRACE_AFTER_REMOVAL: Final = timedelta(seconds=2)
LOST: Final = "ContainerStatusUnknown"
LOST_MESSAGE: Final = "The container could not be located when the pod was terminated"
SHUTDOWN_MESSAGE: Final = "Pod was terminated in response to imminent node shutdown."
DEADLINE_MESSAGE: Final = "Pod was active on the node longer than the specified deadline"


class ContainerRole(Enum):
    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class ContainerWaiting(msgspec.Struct, frozen=True):
    reason: str
    message: str = ""
    until: datetime | None = None  # when it is started again; None: as soon as its turn comes


class ContainerLaunching(msgspec.Struct, frozen=True):
    """The runtime was asked to start it and has not answered."""


class ContainerRunning(msgspec.Struct, frozen=True):
    started_at: datetime
    is_stopping: bool = False
    passed_startup: bool = False
    passed_readiness: bool = False


RunState: TypeAlias = ContainerWaiting | ContainerLaunching | ContainerRunning | ContainerEnded


class ContainerRecord(msgspec.Struct, frozen=True):
    """One container of a running pod."""

    name: str
    role: ContainerRole
    state: RunState
    attempt: int = 0  # how often it was started before; the restart count
    last: ContainerEnded | None = None
    crashes: int = 0  # since it last ran long enough to be forgiven

    @property
    def is_live(self) -> bool:
        return isinstance(self.state, (ContainerLaunching, ContainerRunning))

    @property
    def has_run(self) -> bool:
        return self.last is not None or isinstance(self.state, ContainerEnded)

    @property
    def ended(self) -> ContainerEnded | None:
        return self.state if isinstance(self.state, ContainerEnded) else None


class Ending(msgspec.Struct, frozen=True):
    """Why a pod is being ended, and how."""

    grace: timedelta
    reason: str = ""
    message: str = ""
    phase: str = ""  # what it ends as whatever its containers say; empty: they decide
    restarts: bool = False  # its containers end, the pod does not: it starts again with the node


class PodRecord(msgspec.Struct, frozen=True):
    """All that is known of a pod on this node."""

    containers: tuple[ContainerRecord, ...]
    start_time: datetime
    address: str = ""
    is_prepared: bool = False
    trouble: Unprepared | None = None
    ending: Ending | None = None
    phase: str = ""  # set once it is finished: Succeeded or Failed
    is_cleaned: bool = False
    is_deleted: bool = False
    is_vanished: bool = False
    is_removed: bool = False

    @property
    def is_finished(self) -> bool:
        return bool(self.phase)

    @property
    def has_live(self) -> bool:
        return any(container.is_live for container in self.containers)

    def container(self, name: str) -> ContainerRecord | None:
        return next((found for found in self.containers if found.name == name), None)


Transition: TypeAlias = tuple[PodRecord, tuple[PodCommand, ...]]


def begin(pod: AgentPod, event: Assigned, now: datetime) -> Transition:
    """Take on a pod: a fresh one, or one that was already running when the agent started."""
    found = {each.container: each for each in event.found}
    mains = {container.name for container in pod.spec.containers}
    containers = tuple(
        _resumed(pod, each, found.get(each.name), each.name in mains, now) for each in pod.all_containers
    )
    known = bool(found) or bool(event.address)
    record = PodRecord(
        containers,
        start_time=pod.status.start_time or now,
        address=event.address or pod.status.pod_ip,
        is_prepared=known and bool(event.address),
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
    """One event's consequence."""
    commands: list[PodCommand] = []
    match event:
        case Prepared(address):
            record = replace(record, is_prepared=True, address=address, trouble=None)
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
            told = Ending(pod.grace, reason, message, "Failed")
            record = replace(record, ending=record.ending or told)
        case ShutDown(grace):
            record = _shut_down(pod, record, grace)
        case Woken():
            record = _woken(pod, record, now, commands)
        case Assigned():
            pass
    return _settled(pod, record, now, commands)


# -- what each event changes ------------------------------------------------------------------------------------
def _resumed(
    pod: AgentPod, spec: AgentContainer, found: FoundContainer | None, is_main: bool, now: datetime
) -> ContainerRecord:
    """A container as its last report and the runtime know it; one that ran and cannot be found is lost."""
    role = ContainerRole.MAIN if is_main else ContainerRole.SIDECAR if spec.is_sidecar else ContainerRole.INIT
    status = pod.container_status(spec.name)
    first_reason = "ContainerCreating" if is_main and not pod.spec.init_containers else "PodInitializing"
    restarts = status.restart_count if status else 0
    if found is not None:
        ended_meanwhile = _reasoned(found.ended) if found.ended is not None else None
        state: RunState = ended_meanwhile or ContainerRunning(found.started_at)
        return ContainerRecord(spec.name, role, state, found.attempt, _last(status), min(found.attempt, 1))
    if status is not None and (ended := status.state.terminated) is not None:
        again = ContainerEnded(
            ended.exit_code, ended.started_at or now, ended.finished_at or now, ended.reason, ended.message
        )
        return ContainerRecord(spec.name, role, again, restarts, _last(status))
    if status is not None and status.state.running is not None and not pod.is_finished:
        lost = ContainerEnded(EXIT_CODE_SIGKILL, status.state.running.started_at or now, now, LOST, LOST_MESSAGE)
        return ContainerRecord(spec.name, role, lost, restarts, _last(status))
    attempt = restarts + 1 if status is not None and status.last_state.terminated is not None else restarts
    return ContainerRecord(spec.name, role, ContainerWaiting(first_reason), attempt, _last(status))


def _last(status: ContainerStatus | None) -> ContainerEnded | None:
    ended = status.last_state.terminated if status else None
    if ended is None or ended.finished_at is None:
        return None
    return ContainerEnded(
        ended.exit_code, ended.started_at or ended.finished_at, ended.finished_at, ended.reason, ended.message
    )


def _with(record: PodRecord, name: str, attempt: int, state: RunState) -> PodRecord:
    """The record with a container in a new state; an answer to an older attempt changes nothing."""
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
    return _with(record, name, attempt, _reasoned(ended))


def _reasoned(ended: ContainerEnded) -> ContainerEnded:
    return ended if ended.reason else replace(ended, reason="Completed" if ended.exit_code == 0 else "Error")


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
    """The ending after being asked once more: what was decided stays, a shorter grace counts."""
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


# -- what follows ---------------------------------------------------------------------------------------------------
def _settled(pod: AgentPod, record: PodRecord, now: datetime, commands: list[PodCommand]) -> Transition:
    """Bring the pod as far as it can go now."""
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
    """Start what may start: init containers one after another, then all others; end the pod when it is done."""
    containers = list(record.containers)
    is_initialized = True
    for index, container in enumerate(containers):
        # What has run before runs again on its own, whatever the containers before it are doing.
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
    """All of it has run and nothing comes again, as an agent may find when it starts."""
    mains = [each for each in record.containers if each.role is ContainerRole.MAIN]
    return all(each.ended is not None and not _comes_again(pod, each, each.ended) for each in mains)


def _has_begun(pod: AgentPod, container: ContainerRecord) -> bool:
    spec = pod.container(container.name)
    if spec is None or not isinstance(container.state, ContainerRunning):
        return False
    return spec.startup_probe is None or container.state.passed_startup


def _restarted(pod: AgentPod, container: ContainerRecord, now: datetime, commands: list[PodCommand]) -> ContainerRecord:
    """Start a container whose turn it is; start one again that ended, as the pod's policy says."""
    state = container.state
    if isinstance(state, ContainerWaiting):
        if state.until is not None and now < state.until:
            return container
        commands.append(Start(container.name, container.attempt))
        return replace(container, state=ContainerLaunching())
    if not isinstance(state, ContainerEnded) or not _comes_again(pod, container, state):
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


def backoff(crashes: int) -> timedelta:
    """How long to wait after so many earlier crashes: not at all, then 10 s, 20 s … five minutes."""
    if crashes == 0:
        return timedelta(0)
    return min(MAX_RESTART_BACKOFF, MIN_RESTART_BACKOFF * (1 << min(crashes - 1, 10)))


def _comes_again(pod: AgentPod, container: ContainerRecord, ended: ContainerEnded) -> bool:
    if container.role is ContainerRole.SIDECAR:
        return True
    match pod.spec.restart_policy:
        case "Never":
            return False
        case "OnFailure":
            return ended.exit_code != 0
        case _:
            return container.role is ContainerRole.MAIN or ended.exit_code != 0


def _ended(pod: AgentPod, record: PodRecord, commands: list[PodCommand]) -> PodRecord:
    """Stop what still runs; once nothing does, say how the pod ended."""
    assert record.ending is not None, "asked only of a pod that is being ended"
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
