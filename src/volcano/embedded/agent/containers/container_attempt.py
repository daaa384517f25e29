"""One start of one container of a pod, and the identifier it has in the supervisor, in folders and in logs."""

from __future__ import annotations

import msgspec

from volcano.api.kubelet import AgentPod


class ContainerAttempt(msgspec.Struct, frozen=True):
    """A container and the number of its start, counted from 0."""

    pod: AgentPod
    name: str
    number: int

    @property
    def id(self) -> str:
        return f"{self.pod.uid}/{self.name}/{self.number}"


def split_id(identity: str) -> tuple[str, str, int]:
    """The pod's UID, the container's name and the number of the start."""
    uid, name, number = identity.split("/")
    return uid, name, int(number)
