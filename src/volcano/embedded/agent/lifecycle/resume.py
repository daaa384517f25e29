"""The record of a container of a pod that already exists: from its status and what the runtime still runs. Pure."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from msgspec.structs import replace

from volcano.api.core import ContainerStatus
from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.embedded.agent.lifecycle.pod_events import EXIT_CODE_SIGKILL, ContainerEnded, FoundContainer
from volcano.embedded.agent.lifecycle.pod_record import (
    ContainerRecord,
    ContainerRole,
    ContainerRunning,
    ContainerWaiting,
    RunState,
)

LOST_REASON: Final = "ContainerStatusUnknown"
LOST_MESSAGE: Final = "The container could not be located when the pod was terminated"


def resumed_container(
    pod: AgentPod, spec: AgentContainer, found: FoundContainer | None, is_main: bool, now: datetime
) -> ContainerRecord:
    """What the runtime found counts first, then the status; a container that was running and is not found is lost."""
    role = ContainerRole.MAIN if is_main else ContainerRole.SIDECAR if spec.is_sidecar else ContainerRole.INIT
    status = pod.container_status(spec.name)
    first_reason = "ContainerCreating" if is_main and not pod.spec.init_containers else "PodInitializing"
    restarts = status.restart_count if status else 0
    if found is not None:
        ended_meanwhile = with_reason(found.ended) if found.ended is not None else None
        state: RunState = ended_meanwhile or ContainerRunning(found.started_at)
        return ContainerRecord(spec.name, role, state, found.attempt, _last(status), min(found.attempt, 1))
    if status is not None and (ended := status.state.terminated) is not None:
        again = ContainerEnded(
            ended.exit_code, ended.started_at or now, ended.finished_at or now, ended.reason, ended.message
        )
        return ContainerRecord(spec.name, role, again, restarts, _last(status))
    if status is not None and status.state.running is not None and not pod.is_finished:
        lost = ContainerEnded(EXIT_CODE_SIGKILL, status.state.running.started_at or now, now, LOST_REASON, LOST_MESSAGE)
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


def with_reason(ended: ContainerEnded) -> ContainerEnded:
    """The end with the reason that Kubernetes shows when the runtime gave none."""
    return ended if ended.reason else replace(ended, reason="Completed" if ended.exit_code == 0 else "Error")
