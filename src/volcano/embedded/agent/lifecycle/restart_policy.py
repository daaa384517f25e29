"""Whether a container that ended starts again, and after what back-off. Pure."""

from __future__ import annotations

from datetime import timedelta
from typing import Final

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.lifecycle.pod_events import ContainerEnded
from volcano.embedded.agent.lifecycle.pod_record import ContainerRecord, ContainerRole

MIN_RESTART_BACKOFF: Final = timedelta(seconds=10)
MAX_RESTART_BACKOFF: Final = timedelta(minutes=5)
BACKOFF_RESET_AFTER: Final = timedelta(minutes=10)
"""A container that ran this long starts its back-off from the beginning."""


def backoff(crashes: int) -> timedelta:
    """The delay after this many earlier crashes: none, then 10 s, 20 s … five minutes."""
    if crashes == 0:
        return timedelta(0)
    return min(MAX_RESTART_BACKOFF, MIN_RESTART_BACKOFF * (1 << min(crashes - 1, 10)))


def restarts(pod: AgentPod, container: ContainerRecord, ended: ContainerEnded) -> bool:
    """Whether the pod's restart policy starts the container again; sidecars always restart."""
    if container.role is ContainerRole.SIDECAR:
        return True
    match pod.spec.restart_policy:
        case "Never":
            return False
        case "OnFailure":
            return ended.exit_code != 0
        case _:
            return container.role is ContainerRole.MAIN or ended.exit_code != 0
