"""What a decision may ask for: pure values that only machinery.apply carries out.

A Plan is a tuple of steps done in order; `Together` does its steps side by side. A step that fails ends the plan, and
the decision is taken again later from what is true then, so each step must be safe to ask for twice.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Final, Literal, TypeAlias

import msgspec

from volcano.api.meta import JSON, Key, Model, OwnerReference, Resource
from volcano.api.scheme import ResourceType, resource_type

PatchKind = Literal["merge", "json", "apply", "strategic"]


@dataclass(frozen=True, slots=True)
class Ref:
    """An object to act on. With a uid or a resource version, only that very object or state is meant."""

    resource: ResourceType
    key: Key
    uid: str = ""
    resource_version: str = ""


def ref(target: Resource, *, fresh: bool = False) -> Ref:
    """The object a reader saw; `fresh` asks the server to refuse if it has changed since."""
    version = target.metadata.resource_version if fresh else ""
    return Ref(resource_type(type(target)), target.key, target.uid, version)


@dataclass(frozen=True, slots=True)
class Create:
    """Make an object. One of that name already there is fine if `exists_ok`: deciding twice makes it once."""

    resource: ResourceType
    body: JSON
    exists_ok: bool = True

    @property
    def key(self) -> Key:
        metadata = self.body.get("metadata", {})
        return Key(metadata.get("namespace", ""), metadata.get("name", ""))


@dataclass(frozen=True, slots=True)
class Patch:
    """Change an object. A target that is gone is fine if `gone_ok`."""

    target: Ref
    body: Any
    kind: PatchKind = "merge"
    subresource: str = ""
    gone_ok: bool = True
    manager: str = "volcano"


@dataclass(frozen=True, slots=True)
class Delete:
    """Remove an object; one that is already gone is fine."""

    target: Ref
    grace_seconds: int | None = None
    propagation: Literal["", "Background", "Foreground", "Orphan"] = ""


@dataclass(frozen=True, slots=True)
class Bind:
    """Give a pod its node."""

    pod: Ref
    node: str
    annotations: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Evict:
    """End a pod in favour of another, with its grace period; the reason goes into the pod's status first."""

    pod: Ref
    reason: str
    message: str


@dataclass(frozen=True, slots=True)
class EnsureSecret:
    """A Secret whose content is made only if it does not exist, so that deciding again never rotates a key."""

    key: Key
    make: Callable[[], dict[str, bytes]]
    owner: OwnerReference | None = None
    labels: dict[str, str] = field(default_factory=dict)
    type: str = "Opaque"


@dataclass(frozen=True, slots=True)
class Record:
    """An Event about an object, for people."""

    regarding: Ref
    reason: str
    message: str
    type: Literal["Normal", "Warning"] = "Normal"


@dataclass(frozen=True, slots=True)
class Later:
    """Decide again after this long, at the latest; `cause` is handed to that decision.

    With a `key`, it is another object of the same controller that is looked at again. With `when_idle` it is looked at
    as soon as nothing more urgent waits; if it is looked at for another reason first, this is dropped.
    """

    after: timedelta
    cause: Hashable = None
    key: Key | None = None
    when_idle: bool = False


@dataclass(frozen=True, slots=True)
class NetworkProbe:
    """Ask something outside the API; the answer comes back as a cause of the next decision."""

    name: str
    ask: Literal["http", "tcp"]
    host: str
    port: int
    path: str = "/"
    headers: tuple[tuple[str, str], ...] = ()
    timeout: timedelta = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class ProbeAnswer:
    """What a NetworkProbe found, as the cause of the next decision."""

    name: str
    ok: bool
    message: str = ""


@dataclass(frozen=True, slots=True)
class Look:
    """Ask the API server itself, past what was seen last, whether this very object is there; answered by Found."""

    target: Ref


@dataclass(frozen=True, slots=True)
class Found:
    """What a Look found, as a cause of the next decision."""

    target: Ref
    present: bool
    annotations: tuple[tuple[str, str], ...] = ()
    is_deleting: bool = False


@dataclass(frozen=True, slots=True)
class Together:
    """Steps that do not wait for one another."""

    steps: tuple[Step, ...]


Step: TypeAlias = (
    "Create | Patch | Delete | Bind | Evict | EnsureSecret | Record | Later | NetworkProbe | Look | Together"
)
Plan: TypeAlias = "tuple[Step, ...]"

NOTHING: Final[Plan] = ()


def patch_status(target: Resource, status: Model, *, fresh: bool = True) -> Patch:
    """The smallest merge patch from the status a reader saw to the wanted one."""
    old = msgspec.to_builtins(getattr(target, "status", None)) or {}
    subresource = "status" if resource_type(type(target)).has_status else ""
    body = {"status": merge_difference(old, msgspec.to_builtins(status))}
    return Patch(ref(target, fresh=fresh), body, subresource=subresource)


def merge_difference(old: Any, new: Any) -> Any:
    """A JSON merge patch that turns `old` into `new`: what vanished becomes null."""
    if not (isinstance(old, dict) and isinstance(new, dict)):
        return new
    changed = {key: merge_difference(old.get(key), value) for key, value in new.items() if old.get(key) != value}
    return changed | {key: None for key in old if key not in new}


def owner_reference(owner: Resource, *, controller: bool = True, block: bool = True) -> JSON:
    """The owner reference of an object that belongs to `owner`."""
    row = resource_type(type(owner))
    reference: JSON = {"apiVersion": row.api_version, "kind": row.kind, "name": owner.name, "uid": owner.uid}
    if controller:
        reference["controller"] = True
    if block:
        reference["blockOwnerDeletion"] = True
    return reference
