"""What the agent knows of one pod on its node: how each container stands, and whether the pod is ending.

Immutable values only. pod_lifecycle computes the next record; pod_status renders a record for the API.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from enum import Enum
from typing import TypeAlias

import msgspec

from volcano.embedded.agent.lifecycle.pod_events import ContainerEnded, Unprepared


class ContainerRole(Enum):
    """Init containers run one after another; sidecars are init containers that keep running; main ones come last."""

    INIT = "init"
    SIDECAR = "sidecar"
    MAIN = "main"


class ContainerWaiting(msgspec.Struct, frozen=True):
    """The container is not running and will be started."""

    reason: str
    message: str = ""
    until: datetime | None = None  # not started before this time; None: as soon as its turn comes


class ContainerLaunching(msgspec.Struct, frozen=True):
    """The runtime was given the Start command and has not reported the result."""


class ContainerRunning(msgspec.Struct, frozen=True):
    """The container's command runs."""

    started_at: datetime
    is_stopping: bool = False
    passed_startup: bool = False
    passed_readiness: bool = False


RunState: TypeAlias = ContainerWaiting | ContainerLaunching | ContainerRunning | ContainerEnded


class ContainerRecord(msgspec.Struct, frozen=True):
    """One container of a pod on this node."""

    name: str
    role: ContainerRole
    state: RunState
    attempt: int = 0  # number of earlier starts: the restart count
    last: ContainerEnded | None = None
    crashes: int = 0  # ends in a row without a run of BACKOFF_RESET_AFTER: determines the back-off

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
    """Why the agent ends a pod, and how."""

    grace: timedelta
    reason: str = ""
    message: str = ""
    phase: str = ""  # the final phase; empty: it follows from the exit codes
    restarts: bool = False  # the containers end but the pod does not: it starts again with the node


class PodRecord(msgspec.Struct, frozen=True):
    """Everything the agent keeps of a pod between two events."""

    containers: tuple[ContainerRecord, ...]
    start_time: datetime
    address: str = ""
    is_prepared: bool = False
    trouble: Unprepared | None = None
    ending: Ending | None = None
    phase: str = ""  # set once the pod is finished: Succeeded or Failed
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
