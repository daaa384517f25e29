"""Any object of any kind by its metadata alone: what garbage collection and namespace deletion look at.

One World table holds them all, so a PartialObject's key also contains its kind.
"""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.meta import Key, OwnerReference, Resource
from volcano.api.scheme import ResourceType

NO_TYPE: Final = ResourceType("", "", "", "")
FOREGROUND: Final = "foregroundDeletion"
ORPHAN: Final = "orphan"


class PartialObject(Resource, frozen=True):
    """Metadata, and which kind of object it is of."""

    resource: ResourceType = msgspec.field(default=NO_TYPE, name="$resource")  # set by the reader, not on the wire

    @property
    def key(self) -> Key:
        return partial_key(self.resource.group, self.resource.kind, Key(self.namespace, self.name))

    @property
    def object_key(self) -> Key:
        """The key among objects of its own kind."""
        return Key(self.namespace, self.name)

    @property
    def waits_for_dependents(self) -> bool:
        """Being deleted in the foreground: it goes after what belongs to it."""
        return self.is_deleting and FOREGROUND in self.metadata.finalizers

    @property
    def orphans_dependents(self) -> bool:
        return self.is_deleting and ORPHAN in self.metadata.finalizers


def partial_key(group: str, kind: str, key: Key) -> Key:
    return Key(key.namespace, f"{kind}.{group}/{key.name}")


def owner_keys(namespace: str, owner: OwnerReference) -> tuple[Key, ...]:
    """Where an owner may be found: in the namespace of what it owns, or in none."""
    group = owner.api_version.rpartition("/")[0]
    places = (namespace, "") if namespace else ("",)
    return tuple(partial_key(group, owner.kind, Key(place, owner.name)) for place in places)


def partial_of(resource: ResourceType, read: PartialObject) -> PartialObject:
    """A decoded PartialObject of a known kind; objects in lists do not carry theirs."""
    return msgspec.structs.replace(read, resource=resource, api_version=resource.api_version, kind=resource.kind)
