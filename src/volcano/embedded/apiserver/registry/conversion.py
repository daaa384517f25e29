"""Between the version an object is stored in and the one it is served in.

Versions of a CRD differ only in their apiVersion (conversion strategy None). Events are one kind under two groups.
"""

from __future__ import annotations

from typing import Final

from volcano.api.meta import JSON
from volcano.embedded.apiserver.registry.resources import Served

_EVENTS: Final = "events.k8s.io"

_TO_CORE: Final = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_FROM_CORE: Final = {core: events for events, core in _TO_CORE.items()}


def shows_stored_bytes(served: Served) -> bool:
    return served.type.group != _EVENTS and (not served.is_custom or served.type.version == served.storage_version)


def from_storage(served: Served, obj: JSON) -> JSON:
    """A stored object as this version shows it."""
    if shows_stored_bytes(served):
        return obj
    obj["apiVersion"] = served.type.api_version
    if served.type.group == _EVENTS:
        return {_FROM_CORE.get(field, field): value for field, value in obj.items()}
    return obj


def to_storage(served: Served, obj: JSON) -> JSON:
    """An object of this version as it is stored."""
    if shows_stored_bytes(served):
        return obj
    if served.type.group == _EVENTS:
        obj = {_TO_CORE.get(field, field): value for field, value in obj.items()}
        obj["apiVersion"] = "v1"
        return obj
    obj["apiVersion"] = f"{served.type.group}/{served.storage_version}"
    return obj
