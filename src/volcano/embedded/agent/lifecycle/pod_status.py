"""The pod status that a kubelet would report, computed from a PodRecord. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.api.meta import JSON
from volcano.api.pods.quality import quality_of_service
from volcano.api.times import timestamp
from volcano.embedded.agent.lifecycle.pod_events import ContainerEnded
from volcano.embedded.agent.lifecycle.pod_record import (
    ContainerLaunching,
    ContainerRecord,
    ContainerRole,
    ContainerRunning,
    ContainerWaiting,
    PodRecord,
)

CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
MAX_MESSAGE_CHARACTERS: Final = 4096


def status_of(pod: AgentPod, record: PodRecord, now: datetime, *, host_address: str, runtime: str) -> JSON:
    """The whole status that a node owns. The caller keeps the transition times of unchanged conditions."""
    status: JSON = {
        "phase": phase_of(record),
        "startTime": timestamp(record.start_time),
        "hostIP": host_address,
        "hostIPs": [{"ip": host_address}],
        "qosClass": quality_of_service(pod.spec),
        "conditions": _conditions(pod, record, now),
        "containerStatuses": [
            _container_status(spec, record, runtime=runtime, uid=pod.uid) for spec in pod.spec.containers
        ],
    }
    if record.address:
        status |= {"podIP": record.address, "podIPs": [{"ip": record.address}]}
    if pod.spec.init_containers:
        status["initContainerStatuses"] = [
            _container_status(spec, record, runtime=runtime, uid=pod.uid) for spec in pod.spec.init_containers
        ]
    if record.ending is not None and record.is_finished and record.ending.reason:
        status |= {"reason": record.ending.reason, "message": record.ending.message[:MAX_MESSAGE_CHARACTERS]}
    return status


def phase_of(record: PodRecord) -> str:
    """Pending until a main container has started; then Running until it is finished."""
    if record.phase:
        return record.phase
    mains = (each for each in record.containers if each.role is ContainerRole.MAIN)
    begun = any(isinstance(each.state, (ContainerRunning, ContainerEnded)) or each.last is not None for each in mains)
    return "Running" if begun else "Pending"


def is_ready(spec: AgentContainer, container: ContainerRecord) -> bool:
    """A container is ready when it runs and its readiness probe, if it has one, has passed."""
    if not isinstance(container.state, ContainerRunning) or container.state.is_stopping:
        return False
    if not has_started(spec, container):
        return False
    return spec.readiness_probe is None or container.state.passed_readiness


def has_started(spec: AgentContainer, container: ContainerRecord) -> bool:
    if not isinstance(container.state, ContainerRunning):
        return False
    return spec.startup_probe is None or container.state.passed_startup


def _conditions(pod: AgentPod, record: PodRecord, now: datetime) -> list[JSON]:
    specs = {spec.name: spec for spec in pod.all_containers}
    mains = [each for each in record.containers if each.role is ContainerRole.MAIN]
    watched = [each for each in record.containers if each.role is not ContainerRole.INIT]
    unready = [each.name for each in watched if not is_ready(specs[each.name], each)]
    uninitialized = [each.name for each in record.containers if not _is_past(specs[each.name], each)]
    has_begun = any(isinstance(each.state, (ContainerRunning, ContainerEnded)) or each.has_run for each in mains)
    truths: dict[str, tuple[bool, str, str]] = {
        "PodReadyToStartContainers": (record.is_prepared and not record.is_cleaned, "", ""),
        "Initialized": (
            has_begun or not uninitialized,
            "ContainersNotInitialized",
            f"containers with incomplete status: [{' '.join(uninitialized)}]",
        ),
        "ContainersReady": (
            not unready,
            "ContainersNotReady",
            f"containers with unready status: [{' '.join(unready)}]",
        ),
        "Ready": (not unready, "ContainersNotReady", f"containers with unready status: [{' '.join(unready)}]"),
        "PodScheduled": (True, "", ""),
    }
    if record.is_finished:
        completed = record.phase == "Succeeded"
        reason = "PodCompleted" if completed else "PodFailed"
        truths["Ready"] = truths["ContainersReady"] = (False, reason, "")
        if completed:
            truths["Initialized"] = (True, "PodCompleted", "")
    return [_condition(name, *truths[name], now=now) for name in CONDITIONS]


def _is_past(spec: AgentContainer, container: ContainerRecord) -> bool:
    """Whether the container no longer delays the ones after it."""
    match container.role:
        case ContainerRole.INIT:
            return container.ended is not None and container.ended.exit_code == 0
        case ContainerRole.SIDECAR:
            return has_started(spec, container)
        case ContainerRole.MAIN:
            return True


def _condition(name: str, truth: bool, reason: str, message: str, *, now: datetime) -> JSON:
    condition: JSON = {"type": name, "status": "True" if truth else "False", "lastTransitionTime": timestamp(now)}
    if reason and (not truth or reason == "PodCompleted"):
        condition["reason"] = reason
        if message and not truth:
            condition["message"] = message[:MAX_MESSAGE_CHARACTERS]
    return condition


def _container_status(spec: AgentContainer, record: PodRecord, *, runtime: str, uid: str) -> JSON:
    container = record.container(spec.name)
    assert container is not None, "every container of a pod has a record"
    status: JSON = {
        "name": spec.name,
        "image": spec.image,
        "imageID": "",
        "ready": is_ready(spec, container),
        "started": has_started(spec, container),
        "restartCount": _restarts(container),
        "state": _state(container, runtime, uid),
        "lastState": {},
    }
    if container.role is ContainerRole.INIT and container.ended is not None:
        status["ready"] = container.ended.exit_code == 0
    if isinstance(container.state, (ContainerRunning, ContainerEnded)):
        status["containerID"] = _container_id(runtime, uid, spec.name, container.attempt)
    if container.last is not None:
        identity = _container_id(runtime, uid, spec.name, container.attempt - 1)
        status["lastState"] = {"terminated": _terminated(container.last, identity)}
    return status


def _restarts(container: ContainerRecord) -> int:
    """The restart count; a restart that is still in back-off is not counted yet."""
    waits = isinstance(container.state, (ContainerWaiting, ContainerLaunching)) and container.last is not None
    return max(0, container.attempt - 1) if waits else container.attempt


def _container_id(runtime: str, uid: str, name: str, attempt: int) -> str:
    return f"{runtime}://{uid}/{name}/{attempt}"


def _state(container: ContainerRecord, runtime: str, uid: str) -> JSON:
    match container.state:
        case ContainerWaiting(reason, message):
            return {"waiting": {"reason": reason, **({"message": message[:MAX_MESSAGE_CHARACTERS]} if message else {})}}
        case ContainerLaunching():
            return {"waiting": {"reason": "ContainerCreating"}}
        case ContainerRunning(started_at):
            return {"running": {"startedAt": timestamp(started_at)}}
        case ContainerEnded() as ended:
            identity = _container_id(runtime, uid, container.name, container.attempt)
            return {"terminated": _terminated(ended, identity)}


def _terminated(ended: ContainerEnded, identity: str) -> JSON:
    terminated: JSON = {
        "exitCode": ended.exit_code,
        "reason": ended.reason,
        "startedAt": timestamp(ended.started_at),
        "finishedAt": timestamp(ended.finished_at),
        "containerID": identity,
    }
    if ended.message:
        terminated["message"] = ended.message[:MAX_MESSAGE_CHARACTERS]
    return terminated
