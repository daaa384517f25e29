"""A pod summed up as `kubectl get pods` shows it: its state in one word, ready containers, restarts.

The API server's tables and vcctl both ask here. They differ in one point, `counts_failures`: where one container
completed and another failed, kubectl 1.36 shows the failure; Volcano's vcctl was written after an older kubectl,
shows `Completed`, and scripts read its output, so vcctl keeps that.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

import msgspec

from volcano.api.ages import human_duration
from volcano.api.core import FINISHED_POD_PHASES, ContainerStateTerminated, ContainerStatus
from volcano.api.decode import Unreadable, decode_object
from volcano.api.meta import JSON, Condition, Model, Resource
from volcano.api.pods.requests import SizedContainer, is_sidecar


class Restarts(msgspec.Struct):
    """How often containers were started again, and when the last of those runs ended."""

    count: int = 0
    last: datetime | None = None

    def include(self, container: ContainerStatus) -> None:
        self.count += container.restart_count
        ended = container.last_state.terminated
        if ended is not None and ended.finished_at is not None and (self.last is None or ended.finished_at > self.last):
            self.last = ended.finished_at

    def text(self, now: datetime) -> str:
        if self.count and self.last is not None:
            return f"{self.count} ({human_duration(now - self.last)} ago)"
        return str(self.count)


class PodSummary(msgspec.Struct):
    """`state` is the one word; `total` counts containers and sidecars."""

    state: str
    ready: int = 0
    total: int = 0
    restarts: Restarts = msgspec.field(default_factory=Restarts)

    @property
    def ready_text(self) -> str:
        return f"{self.ready}/{self.total}"


class _ReadContainer(ContainerStatus, frozen=True):
    started: bool | None = None


class _ReadStatus(Model, frozen=True):
    phase: str = ""
    reason: str = ""
    conditions: list[Condition] = []
    container_statuses: list[_ReadContainer] = []
    init_container_statuses: list[_ReadContainer] = []


class _ReadSpec(Model, frozen=True):
    containers: list[SizedContainer] = []
    init_containers: list[SizedContainer] = []


class _ReadPod(Resource, frozen=True):
    spec: _ReadSpec = _ReadSpec()
    status: _ReadStatus = _ReadStatus()

    def has(self, condition: str) -> bool:
        return any(each.type == condition and each.status == "True" for each in self.status.conditions)


def summarize(pod: JSON, *, counts_failures: bool = True) -> PodSummary:
    """The pod in short; of one that cannot be read, its phase."""
    try:
        read = decode_object(_ReadPod, pod)
    except Unreadable:
        return PodSummary(_phase(pod))
    status = read.status
    sidecars = {each.name for each in read.spec.init_containers if is_sidecar(each)}
    summary = PodSummary(_first_word(status), total=len(read.spec.containers) + len(sidecars))
    of_sidecars = Restarts()
    initializing = _add_init_containers(read, summary, sidecars, of_sidecars)
    if not initializing or read.has("Initialized"):
        summary.restarts = of_sidecars
        _add_containers(read, summary, counts_failures=counts_failures)
    if read.is_deleting:
        if is_on_lost_node(status.reason):
            summary.state = "Unknown"
        elif status.phase not in FINISHED_POD_PHASES:
            summary.state = "Terminating"
    return summary


def _phase(pod: JSON) -> str:
    status: Any = pod.get("status")
    phase = status.get("phase") if isinstance(status, dict) else None
    return phase if isinstance(phase, str) else ""


def _first_word(status: _ReadStatus) -> str:
    gated = any(each.type == "PodScheduled" and each.reason == "SchedulingGated" for each in status.conditions)
    return "SchedulingGated" if gated else status.reason or status.phase


def _add_init_containers(pod: _ReadPod, summary: PodSummary, sidecars: set[str], of_sidecars: Restarts) -> bool:
    """Whether an init container still runs, waits or failed; sidecars that have started are past that."""
    for index, container in enumerate(pod.status.init_container_statuses):
        summary.restarts.include(container)
        if container.name in sidecars:
            of_sidecars.include(container)
        ended, waits = container.state.terminated, container.state.waiting
        if ended is not None and ended.exit_code == 0:
            continue
        if container.name in sidecars and container.started:
            summary.ready += container.ready
            continue
        if ended is not None:
            progress = _ending(ended)
        elif waits is not None and waits.reason not in ("", "PodInitializing"):
            progress = waits.reason
        else:
            progress = f"{index}/{len(pod.spec.init_containers)}"
        summary.state = f"Init:{progress}"
        return True
    return False


def _add_containers(pod: _ReadPod, summary: PodSummary, *, counts_failures: bool) -> None:
    """The first container that waits or ended gives the word; `Completed` only when no other container says more."""
    containers = pod.status.container_statuses
    for container in reversed(containers):
        summary.restarts.include(container)
        ended, waits = container.state.terminated, container.state.waiting
        if waits is not None and waits.reason:
            summary.state = waits.reason
        elif ended is not None:
            summary.state = _ending(ended)
    running = sum(map(_is_running_and_ready, containers))
    summary.ready += running
    if summary.state == "Completed":
        failure = _first_failure(containers) if counts_failures else ""
        if running and pod.has("Ready"):
            summary.state = "Running"
        elif failure:
            summary.state = failure
        elif running:
            summary.state = "NotReady"


def _is_running_and_ready(container: ContainerStatus) -> bool:
    state = container.state
    waits = state.waiting is not None and bool(state.waiting.reason)
    return container.ready and state.running is not None and state.terminated is None and not waits


def _first_failure(containers: Iterable[ContainerStatus]) -> str:
    for container in containers:
        ended, waits = container.state.terminated, container.state.waiting
        if ended is not None and ended.exit_code and not (waits is not None and waits.reason):
            return _ending(ended)
    return ""


def _ending(ended: ContainerStateTerminated) -> str:
    if ended.reason:
        return ended.reason
    return f"Signal:{ended.signal}" if ended.signal else f"ExitCode:{ended.exit_code}"


def is_on_lost_node(reason: str) -> bool:
    """Whether a pod's status says that its node no longer answers."""
    return reason == "NodeLost"
