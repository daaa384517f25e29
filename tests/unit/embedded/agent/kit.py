"""Pods and their lifecycle, for tests: a pod that is driven by events until it rests."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from volcano.api.decode import decode_object
from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.lifecycle.pod_events import (
    Assigned,
    ContainerEnded,
    Exited,
    PodCommand,
    PodEvent,
    Prepared,
    Start,
    Started,
)
from volcano.embedded.agent.lifecycle.pod_lifecycle import begin, step
from volcano.embedded.agent.lifecycle.pod_record import PodRecord

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def a_pod(
    *names: str, status: dict[str, Any] | None = None, metadata: dict[str, Any] | None = None, **spec: Any
) -> AgentPod:
    containers = [{"name": name, "image": "x", "command": ["run"]} for name in names or ("main",)]
    body = {
        "metadata": {"name": "pod", "namespace": "default", "uid": "u1", **(metadata or {})},
        "spec": {"containers": containers, "restartPolicy": "Never", "nodeName": "n", **spec},
        "status": status or {},
    }
    return decode_object(AgentPod, body)


class Driven:
    """A pod's record, what it asked for so far, and a clock that only moves when told."""

    def __init__(self, pod: AgentPod, found: Assigned | None = None) -> None:
        self.pod, self.now = pod, NOW
        self.commands: list[PodCommand] = []
        self.record: PodRecord
        self.record, commands = begin(pod, found or Assigned(), self.now)
        self.commands += commands

    def tell(self, event: PodEvent) -> tuple[PodCommand, ...]:
        self.record, commands = step(self.pod, self.record, event, self.now)
        self.commands += commands
        return commands

    def start_all(self) -> None:
        """Prepared, and every start that is asked for works."""
        self.tell(Prepared("10.0.0.1"))
        self.started()

    def started(self) -> None:
        for command in list(self.commands):
            if isinstance(command, Start):
                self.commands.remove(command)
                self.tell(Started(command.container, command.attempt, self.now))

    def exits(self, name: str = "main", code: int = 0) -> tuple[PodCommand, ...]:
        container = self.record.container(name)
        assert container is not None
        return self.tell(Exited(name, container.attempt, ContainerEnded(code, self.now, self.now)))

    def wait(self, seconds: float) -> None:
        self.now += timedelta(seconds=seconds)
