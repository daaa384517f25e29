"""metadata.managedFields: who manages which fields, read from an object and written back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.apply.field_sets import BadFields, Tree, from_fields, to_fields, union
from volcano.embedded.apiserver.schemas.reading import at, moment

APPLY: Final = "Apply"
UPDATE: Final = "Update"
MAX_UPDATERS: Final = 10
MAX_ENTRIES: Final = 256
ANCIENT: Final = "ancient-changes"


class Owner(NamedTuple):
    """The manager that an entry belongs to. An applier is the same owner at any API version."""

    manager: str
    operation: str
    api_version: str
    subresource: str

    @property
    def shown(self) -> str:
        """The owner's name in a conflict message."""
        text = f'"{self.manager}"'
        if self.subresource:
            text += f' with subresource "{self.subresource}"'
        return f"{text} using {self.api_version}" if self.operation == UPDATE else text


class ManagedEntry(msgspec.Struct, frozen=True):
    """The fields of one owner."""

    fields: Tree
    api_version: str
    time: str | None


Managed = dict[Owner, ManagedEntry]


def owner_of(manager: str, operation: str, api_version: str, subresource: str) -> Owner:
    return Owner(manager, operation, "" if operation == APPLY else api_version, subresource)


def read_managed(obj: Mapping[str, Any] | None) -> Managed:
    """The entries of an object; BadFields when one cannot be read."""
    entries = at(obj, "metadata", "managedFields")
    found: Managed = {}
    for entry in entries[:MAX_ENTRIES] if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            raise BadFields("managedFields must be objects")
        operation = entry.get("operation")
        if operation not in (APPLY, UPDATE):
            raise BadFields(f'metadata.managedFields: operation must be "Apply" or "Update", not {operation!r}')
        if entry.get("fieldsType", "FieldsV1") not in ("FieldsV1", ""):
            raise BadFields("metadata.managedFields: fieldsType must be FieldsV1")
        version = str(entry.get("apiVersion") or "")
        owner = owner_of(str(entry.get("manager") or ""), operation, version, str(entry.get("subresource") or ""))
        fields = from_fields(entry.get("fieldsV1") or {})
        time = entry.get("time")
        if owner in found:
            fields = union(found[owner].fields, fields)
        found[owner] = ManagedEntry(fields, version, time if isinstance(time, str) else None)
    return found


def written(managed: Managed) -> list[JSON]:
    """The entries as they are stored, in Kubernetes' order."""
    entries = []
    for owner, entry in managed.items():
        stored: JSON = {
            "apiVersion": entry.api_version,
            "fieldsType": "FieldsV1",
            "fieldsV1": to_fields(entry.fields),
            "manager": owner.manager,
            "operation": owner.operation,
        }
        if owner.subresource:
            stored["subresource"] = owner.subresource
        if entry.time is not None:
            stored["time"] = entry.time
        entries.append(stored)
    return sorted(entries, key=_order)


def _order(entry: JSON) -> tuple[Any, ...]:
    time = moment(entry, "time")
    seconds = int(time.timestamp()) if time is not None else 0
    return (entry["operation"], seconds, entry["manager"], entry["apiVersion"], entry.get("subresource", ""))


def capped(managed: Managed) -> Managed:
    """At most ten updaters: the oldest of a version are put together as `ancient-changes`."""
    updaters = [owner for owner in managed if owner.operation == UPDATE]
    excess = len(updaters) - MAX_UPDATERS
    if excess <= 0:
        return managed
    updaters.sort(key=lambda owner: (managed[owner].time or "", owner))
    answer, first = dict(managed), dict[str, Owner]()
    for owner in updaters:
        entry = managed[owner]
        bucket = Owner(ANCIENT, UPDATE, entry.api_version, "")
        if entry.api_version not in first:
            first[entry.api_version] = owner
            continue
        if bucket not in answer:
            answer[bucket] = answer.pop(first[entry.api_version])
        answer[bucket] = ManagedEntry(union(answer[bucket].fields, entry.fields), entry.api_version, entry.time)
        if owner != bucket:
            del answer[owner]
        excess -= 1
        if excess <= 0:
            break
    return answer
