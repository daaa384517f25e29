"""The words between a pod's lifecycle and its runtime: what happened (events) and what to do (commands).

Plain values; pod_lifecycle turns the first into the second, a Runtime turns the second into the first.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

EXIT_CODE_SIGKILL: Final = 137
"""The exit code of a container that ended by SIGKILL, and of one whose end nobody saw."""


class ContainerEnded(msgspec.Struct, frozen=True):
    """How a container ended."""

    exit_code: int
    started_at: datetime
    finished_at: datetime
    reason: str = ""
    message: str = ""


# -- events -------------------------------------------------------------------------------------------------------
class FoundContainer(msgspec.Struct, frozen=True):
    """A container the runtime already has, from before the agent started: running, or ended."""

    container: str
    attempt: int
    started_at: datetime
    ended: ContainerEnded | None = None


class Assigned(msgspec.Struct, frozen=True):
    """The pod is ours from now on; `found` is what already runs of it."""

    found: tuple[FoundContainer, ...] = ()
    address: str = ""


class Prepared(msgspec.Struct, frozen=True):
    """Volumes and network are there."""

    address: str


class Unprepared(msgspec.Struct, frozen=True):
    """Volumes or network could not be made; tried again later unless it is final."""

    reason: str
    message: str


class Started(msgspec.Struct, frozen=True):
    container: str
    attempt: int
    started_at: datetime


class Unstarted(msgspec.Struct, frozen=True):
    """The container could not be started at all: a bad configuration, no image, no such program."""

    container: str
    attempt: int
    reason: str
    message: str
    is_run: bool = False  # it counts as a run that failed (a missing program), not as a mistake to wait on


class Exited(msgspec.Struct, frozen=True):
    container: str
    attempt: int
    ended: ContainerEnded


class Probed(msgspec.Struct, frozen=True):
    """A probe crossed its threshold."""

    container: str
    attempt: int
    probe: Literal["startup", "liveness", "readiness"]
    ok: bool
    message: str = ""


class Deleted(msgspec.Struct, frozen=True):
    """Someone asked for the pod's deletion, or asked again with another grace period."""

    grace: timedelta


class Vanished(msgspec.Struct, frozen=True):
    """The API server no longer has the pod."""


class ShutDown(msgspec.Struct, frozen=True):
    """The node ends."""

    grace: timedelta


class Evicted(msgspec.Struct, frozen=True):
    """The node cannot keep the pod."""

    message: str
    reason: str = "Evicted"


class Woken(msgspec.Struct, frozen=True):
    """A moment that was waited for has come."""


PodEvent: TypeAlias = (
    Assigned | Prepared | Unprepared | Started | Unstarted | Exited | Probed | Deleted | Vanished | ShutDown | Evicted
    | Woken
)  # fmt: skip


# -- commands -----------------------------------------------------------------------------------------------------
class Prepare(msgspec.Struct, frozen=True):
    """Make volumes and network."""


class Start(msgspec.Struct, frozen=True):
    container: str
    attempt: int


class Stop(msgspec.Struct, frozen=True):
    """Run the preStop hook, ask the container to end, and kill what is left of it after the grace period."""

    container: str
    attempt: int
    grace: timedelta


class WakeAt(msgspec.Struct, frozen=True):
    """Say `Woken` at this time."""

    at: datetime


class Clean(msgspec.Struct, frozen=True):
    """Nothing of the pod runs any more: give back its address and take down its volumes; keep its logs."""


class Remove(msgspec.Struct, frozen=True):
    """Tell the API server that the pod is gone, once its last status is written."""


class Forget(msgspec.Struct, frozen=True):
    """Drop everything kept of the pod, logs too."""


class EmitEvent(msgspec.Struct, frozen=True):
    """An event for people."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


PodCommand: TypeAlias = Prepare | Start | Stop | WakeAt | Clean | Remove | Forget | EmitEvent
