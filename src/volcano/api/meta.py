"""Metadata shared by every object: Key, ObjectMeta, OwnerReference, and the struct all kinds extend.

Structs here are for *reading*: they decode only the fields the components use and drop the rest, so an
object is never written back from one. Writing goes through patches or plain JSON (machinery.plan).
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias

import msgspec

JSON: TypeAlias = dict[str, Any]
"""A JSON object passed through untouched, such as a pod template."""

Quantities: TypeAlias = dict[str, str | int | float]
"""Resource name to Kubernetes quantity as written on the wire; parsed once by api.quantity."""


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Key(NamedTuple):
    """Namespace and name; the namespace is empty for cluster-scoped objects."""

    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.namespace}/{self.name}" if self.namespace else self.name

    @classmethod
    def parse(cls, text: str) -> Key:
        namespace, slash, name = text.rpartition("/")
        return cls(namespace if slash else "", name)


class Model(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel", kw_only=True, gc=False):
    """A frozen value with camelCase JSON names; fields at their default are not encoded."""


class OwnerReference(Model, frozen=True):
    api_version: str = ""
    kind: str = ""
    name: str = ""
    uid: str = ""
    controller: bool | None = None
    block_owner_deletion: bool | None = None


class ObjectMeta(Model, frozen=True):
    name: str = ""
    generate_name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    generation: int = 0
    creation_timestamp: datetime | None = None
    deletion_timestamp: datetime | None = None
    deletion_grace_period_seconds: int | None = None
    labels: dict[str, str] = {}
    annotations: dict[str, str] = {}
    owner_references: list[OwnerReference] = []
    finalizers: list[str] = []


class Resource(Model, frozen=True):
    """Any API object. Subclasses add spec and status as far as they are read."""

    api_version: str = ""
    kind: str = ""
    metadata: ObjectMeta = ObjectMeta()

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)

    @property
    def name(self) -> str:
        return self.metadata.name

    @property
    def namespace(self) -> str:
        return self.metadata.namespace

    @property
    def uid(self) -> str:
        return self.metadata.uid

    @property
    def labels(self) -> dict[str, str]:
        return self.metadata.labels

    @property
    def annotations(self) -> dict[str, str]:
        return self.metadata.annotations

    @property
    def controller(self) -> OwnerReference | None:
        """The owner that manages this object, if one does."""
        return next((o for o in self.metadata.owner_references if o.controller), None)

    @property
    def is_deleting(self) -> bool:
        return self.metadata.deletion_timestamp is not None


def creation_order(resource: Resource) -> tuple[datetime, str, str]:
    """A sort key, oldest first: of the same second by namespace and name. An object without a time is the oldest."""
    return (resource.metadata.creation_timestamp or _EPOCH, resource.namespace, resource.name)


class LabelSelectorRequirement(Model, frozen=True):
    key: str = ""
    operator: str = ""
    values: list[str] = []


class LabelSelector(Model, frozen=True):
    match_labels: dict[str, str] = {}
    match_expressions: list[LabelSelectorRequirement] = []


class Condition(Model, frozen=True):
    """A standard condition, as Nodes, Pods and most kinds carry it."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None
    last_probe_time: datetime | None = None
    last_heartbeat_time: datetime | None = None
    observed_generation: int | None = None


class ObjectReference(Model, frozen=True):
    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    field_path: str = ""
