"""Events: one kind under two groups, kept in the form of the core group."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.kinds.strategy import Strategy

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
_SELECTABLE: Final = (
    "involvedObject.kind", "involvedObject.namespace", "involvedObject.name", "involvedObject.uid",
    "involvedObject.apiVersion", "involvedObject.resourceVersion", "involvedObject.fieldPath",
    "reason", "reportingComponent", "source", "type",
)  # fmt: skip


class CoreEvents(Strategy):
    has_generation = False
    selectable_fields: Mapping[str, str] = dict.fromkeys(_SELECTABLE, "")

    def __init__(self, row: ResourceType) -> None:
        super().__init__(row)
        self.storage = "events"

    def field_texts(self, obj: JSON) -> dict[str, str]:
        texts, source = super().field_texts(obj), obj.get("source")
        if isinstance(source, dict):
            texts["source"] = str(source.get("component") or obj.get("reportingComponent") or "")
        return texts


class GroupEvents(CoreEvents):
    """events.k8s.io, with other names for some fields."""

    has_stored_form = False

    def from_stored(self, obj: JSON) -> JSON:
        obj["apiVersion"] = self.row.api_version
        return {_FROM_CORE.get(field, field): value for field, value in obj.items()}

    def to_stored(self, obj: JSON) -> JSON:
        obj = {_TO_CORE.get(field, field): value for field, value in obj.items()}
        obj["apiVersion"] = "v1"
        return obj
