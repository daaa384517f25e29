"""The interface between pod_lifecycle and a Runtime: events (what happened) and commands (what to do).

Plain values. pod_lifecycle turns events into commands; a Runtime carries out commands and reports events.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final, Literal, TypeAlias

import msgspec

EXIT_CODE_SIGKILL: Final = 137
"""Exit code of a container that was killed, and of one whose end was not observed."""


class ContainerEnded(msgspec.Struct, frozen=True):
    """How a container ended."""

    exit_code: int
    started_at: datetime
    finished_at: datetime
    reason: str = ""
    message: str = ""


# -- events -------------------------------------------------------------------------------------------------------
class FoundContainer(msgspec.Struct, frozen=True):
    """A container that the runtime has from before the agent started: running, or ended."""

    container: str
    attempt: int
    started_at: datetime
    ended: ContainerEnded | None = None


class Assigned(msgspec.Struct, frozen=True):
    """The pod is bound to this node; `found` are its containers that already exist."""

    found: tuple[FoundContainer, ...] = ()
    address: str = ""


class Prepared(msgspec.Struct, frozen=True):
    """The volumes and the network of the pod exist.

    `warning` is what of its DNS settings could not be done, `lack` what the kernel would have to grant.
    """

    address: str
    warning: str = ""
    lack: str = ""


class Unprepared(msgspec.Struct, frozen=True):
    """The volumes or the network could not be made; preparation is retried."""

    reason: str
    message: str


class Started(msgspec.Struct, frozen=True):
    """The container's command runs."""

    container: str
    attempt: int
    started_at: datetime


class Unstarted(msgspec.Struct, frozen=True):
    """The container could not be started at all: a bad configuration, no image, no such program."""

    container: str
    attempt: int
    reason: str
    message: str
    is_run: bool = False  # counts as a failed run (a missing program), not as a configuration error to retry


class Exited(msgspec.Struct, frozen=True):
    """The container has ended."""

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
    """The pod's deletion was requested, or requested again with another grace period."""

    grace: timedelta


class Vanished(msgspec.Struct, frozen=True):
    """The API server no longer has the pod."""


class ShutDown(msgspec.Struct, frozen=True):
    """The node shuts down."""

    grace: timedelta


class Evicted(msgspec.Struct, frozen=True):
    """The node evicts the pod."""

    message: str
    reason: str = "Evicted"


class Woken(msgspec.Struct, frozen=True):
    """The time of an earlier WakeAt has come."""


PodEvent: TypeAlias = (
    Assigned | Prepared | Unprepared | Started | Unstarted | Exited | Probed | Deleted | Vanished | ShutDown | Evicted
    | Woken
)  # fmt: skip


# -- commands -----------------------------------------------------------------------------------------------------
class Prepare(msgspec.Struct, frozen=True):
    """Make the pod's volumes and network."""


class Start(msgspec.Struct, frozen=True):
    """Start a container."""

    container: str
    attempt: int


class Stop(msgspec.Struct, frozen=True):
    """Run the preStop hook, send SIGTERM, and kill what still runs after the grace period."""

    container: str
    attempt: int
    grace: timedelta


class WakeAt(msgspec.Struct, frozen=True):
    """Report `Woken` at this time."""

    at: datetime


class Clean(msgspec.Struct, frozen=True):
    """No process of the pod runs any more: release its address and remove its volumes; keep its logs."""


class Remove(msgspec.Struct, frozen=True):
    """Delete the pod from the API server, once its last status is written."""


class Forget(msgspec.Struct, frozen=True):
    """Drop everything about the pod, its logs included."""


class EmitEvent(msgspec.Struct, frozen=True):
    """Record a Kubernetes Event about the pod."""

    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


PodCommand: TypeAlias = Prepare | Start | Stop | WakeAt | Clean | Remove | Forget | EmitEvent
