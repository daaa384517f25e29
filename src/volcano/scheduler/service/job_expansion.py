"""What the simulation needs to turn a Job into a PodGroup and pods: the contract, and reading unstored objects.

Only the job controller knows how a Job expands; the composition root passes a function of type `ExpandJob`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final, Protocol

from volcano.api.core import Pod
from volcano.api.decode import Unreadable, decode_object
from volcano.api.meta import JSON, Resource

SIMULATED_UID: Final = "simulated"


class BadSimulation(ValueError):
    """The request cannot be simulated; the message gives the reason."""


@dataclass(slots=True, frozen=True)
class ExpandedJob:
    """Bodies as the controller would create them; each pod with its index in its task.

    `after` names, for every task that starts later, the tasks it depends on.
    """

    groups: list[JSON]
    pods: list[tuple[int, JSON]]
    replicas: dict[str, int] = field(default_factory=dict)
    after: dict[str, list[str]] = field(default_factory=dict)


class ExpandJob(Protocol):
    def __call__(
        self,
        body: JSON,
        objects: Iterable[Resource],
        *,
        default_queue: str,
        scheduler_name: str,
        now: datetime,
        max_pods: int,
    ) -> ExpandedJob: ...


def read_object(reader: Any, body: Any, number: int) -> Any:
    """Decode an object as the API server would have stored it: with a namespace, a uid and a phase."""
    if not isinstance(body, dict):
        raise BadSimulation(f"{reader.__name__} {number} is not an object")
    metadata = dict(body.get("metadata") or {})
    metadata["namespace"] = metadata.get("namespace") or "default"
    metadata.setdefault("name", metadata.get("generateName", "") + f"{SIMULATED_UID}-{number}")
    metadata["uid"] = f"{SIMULATED_UID}-{metadata['namespace']}-{metadata['name']}"
    whole = {**body, "metadata": metadata}
    if reader is Pod:
        whole["spec"] = {**(body.get("spec") or {}), "nodeName": ""}
        whole["status"] = {"phase": "Pending"}
    try:
        return decode_object(reader, whole)
    except (Unreadable, ValueError) as error:
        raise BadSimulation(f"{reader.__name__} {metadata['name']}: {error}") from error
