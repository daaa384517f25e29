"""A write under review and the answer to it, as values; and what rules may read besides the object itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, Protocol, TypeVar

import msgspec

from volcano.api.copies import copied
from volcano.api.decode import Unreadable, decode_object
from volcano.api.indexes import QUEUES_BY_PARENT
from volcano.api.meta import JSON, Key, Resource

R = TypeVar("R", bound=Resource)

DEFAULT_QUEUE: Final = "default"


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


class FieldChange(msgspec.Struct, frozen=True):
    """One field of the object gets a value, or a list one more item."""

    path: tuple[str, ...]
    value: object
    operation: Literal["add", "replace"] = "add"
    """What a JSON patch calls it; both set the field."""
    appends: bool = False

    def as_json_patch(self) -> JSON:
        parts = (*self.path, "-") if self.appends else self.path
        pointer = "".join(f"/{part.replace('~', '~0').replace('/', '~1')}" for part in parts)
        return {"op": self.operation, "path": pointer, "value": self.value}

    def apply_to(self, obj: JSON) -> None:
        """Make the change in place; objects on the path that are missing are made."""
        *parents, last = self.path
        for part in parents:
            child = obj.get(part)
            if not isinstance(child, dict):
                child = obj[part] = {}
            obj = child
        value = copied(self.value)
        obj[last] = [*(obj.get(last) or ()), value] if self.appends else value


class ReviewAnswer(msgspec.Struct, frozen=True):
    """The answer of one rule: the changes it makes, or the reason of a refusal; and warnings for the user."""

    changes: tuple[FieldChange, ...] = ()
    denial: str = ""
    warnings: tuple[str, ...] = ()
    notices: tuple[Notice, ...] = ()

    def changed(self, obj: JSON | None) -> JSON | None:
        """The object after the changes; the given one stays as it is."""
        if not self.changes or obj is None:
            return obj
        fresh: JSON = copied(obj)
        for change in self.changes:
            change.apply_to(fresh)
        return fresh

    @property
    def patch(self) -> list[JSON]:
        """The changes as a webhook sends them."""
        return [change.as_json_patch() for change in self.changes]


ALLOWED: Final = ReviewAnswer()


CONTROLLER_USERS: Final = ("system:vc-controller-manager", "system:serviceaccount:volcano-system:volcano-controllers")
"""As whom the controllers write: in the embedded system, and as they are installed on a cluster."""


def controller_users(namespace: str) -> tuple[str, ...]:
    """The same where the installation has a namespace of its own."""
    own = f"system:serviceaccount:{namespace}:volcano-controllers"
    return (CONTROLLER_USERS[0], own) if namespace else CONTROLLER_USERS


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
    controller_users: tuple[str, ...] = CONTROLLER_USERS
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


def change(*path: str, value: object, operation: Literal["add", "replace"] = "add") -> FieldChange:
    return FieldChange(path, value, operation)
