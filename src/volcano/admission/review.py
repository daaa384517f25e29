"""A write under review and the answer to it, as values; and what rules may read besides the object itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Protocol, TypeVar

import msgspec

from volcano.api.decode import Unreadable, decode_object
from volcano.api.indexes import QUEUES_BY_PARENT
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheme import ResourceType

R = TypeVar("R", bound=Resource)

CREATE: Final = "CREATE"
UPDATE: Final = "UPDATE"
DELETE: Final = "DELETE"

DEFAULT_QUEUE: Final = "default"


class Attributes(msgspec.Struct, frozen=True):
    """One write. The object is None on deletion, the old one on creation."""

    operation: str
    resource: ResourceType
    name: str = ""
    namespace: str = ""
    object: JSON | None = None
    old: JSON | None = None
    user: str = ""
    subresource: str = ""
    dry_run: bool = False


INDEXES: Final = QUEUES_BY_PARENT
"""What rules look up by index: a Reader has these."""


class Reader(Protocol):
    """What rules may look up: a World does, and so does the embedded server's store."""

    def get(self, kind: type[R], key: Key) -> R | None: ...

    def all(self, kind: type[R]) -> list[R]: ...

    def where(self, kind: type[R], index: str, value: str) -> list[R]: ...


class Notice(msgspec.Struct, frozen=True):
    """A Warning event about the refused object, to be recorded at the edge unless the write is a dry run."""

    reason: str
    message: str


class ReviewAnswer(msgspec.Struct, frozen=True):
    """The answer of one webhook: changes as a JSON patch, or the reason of a refusal; and warnings for the user."""

    patch: tuple[JSON, ...] = ()
    denial: str = ""
    warnings: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()


ALLOWED: Final = ReviewAnswer()


class ResourceGroup(msgspec.Struct, frozen=True):
    """One entry of the pod webhook's configuration file."""

    name: str = ""
    key: str = ""
    values: tuple[str, ...] = ()
    scheduler_name: str = ""
    tolerations: tuple[JSON, ...] = ()
    labels: dict[str, str] = {}
    affinity: str = ""


class Settings(msgspec.Struct, frozen=True):
    """The flags of the webhook manager that change an answer."""

    scheduler_names: tuple[str, ...] = ("volcano",)
    max_queue_depth: int = 5
    protects_root: bool = True
    checks_allocated_pods: bool = False
    gates_pods: bool = False  # feature gate SchedulingGatesQueueAdmission
    resource_groups: tuple[ResourceGroup, ...] | None = None  # None: no configuration file was loaded


def deny(message: str) -> ReviewAnswer:
    return ReviewAnswer(denial=message.strip())


def refuse_all(problems: Sequence[str], *, between: str = "; ") -> ReviewAnswer:
    return deny(between.join(problem.strip() for problem in problems)) if problems else ALLOWED


def read(reader: type[R], value: JSON | None) -> R | ReviewAnswer:
    """The object as its struct, or a denial with the decoding error."""
    if not isinstance(value, dict):
        return deny(f"cannot decode the {reader.__name__}: there is no object")
    try:
        return decode_object(reader, value)
    except (Unreadable, RecursionError) as error:
        return deny(f"cannot decode the {reader.__name__}: {str(error) or 'it is nested too deeply'}")


def section(value: JSON | None, *names: str) -> JSON:
    """A part of an object; empty when it is missing or something else."""
    place: object = value
    for name in names:
        place = place.get(name) if isinstance(place, dict) else None
    return place if isinstance(place, dict) else {}


def add(path: str, value: object) -> JSON:
    return {"op": "add", "path": path, "value": value}


def replace(path: str, value: object) -> JSON:
    return {"op": "replace", "path": path, "value": value}
