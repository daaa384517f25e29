"""Statuses of tasks, and the groups of statuses that rules refer to."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from volcano.api.core import Pod


class Status(IntEnum):
    PENDING = 0
    ALLOCATED = 1
    PIPELINED = 2
    BINDING = 3
    BOUND = 4
    RUNNING = 5
    RELEASING = 6
    SUCCEEDED = 7
    FAILED = 8
    UNKNOWN = 9

    @property
    def label(self) -> str:
        return self.name.capitalize()


ALLOCATED: Final = (Status.ALLOCATED, Status.BINDING, Status.BOUND, Status.RUNNING)
READY: Final = (*ALLOCATED, Status.SUCCEEDED)
VALID: Final = (*READY, Status.PIPELINED, Status.PENDING)
SCHEDULED: Final = (Status.BOUND, Status.RUNNING, Status.SUCCEEDED, Status.FAILED)
COMPLETED: Final = (Status.SUCCEEDED, Status.FAILED)
IS_ALLOCATED: Final = tuple(status in ALLOCATED for status in Status)
IS_HELD: Final = tuple(status in (*ALLOCATED, Status.PIPELINED) for status in Status)
IS_READY: Final = tuple(status in READY for status in Status)
IS_TERMINATED: Final = tuple(status in COMPLETED for status in Status)


def status_from(pod: Pod) -> Status:
    """The status that follows from a pod's phase, node and deletion."""
    match pod.status.phase:
        case "Running":
            return Status.RELEASING if pod.is_deleting else Status.RUNNING
        case "Pending":
            if pod.is_deleting:
                return Status.RELEASING
            return Status.BOUND if pod.spec.node_name else Status.PENDING
        case "Succeeded":
            return Status.SUCCEEDED
        case "Failed":
            return Status.FAILED
    return Status.UNKNOWN
