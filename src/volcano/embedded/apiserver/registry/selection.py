"""Selection: the objects that a list, a watch or a deletecollection is about, by namespace, name, labels, fields."""

from __future__ import annotations

from typing import Final

import msgspec

from volcano.api.errors import BadRequest
from volcano.api.selectors import (
    EVERYTHING,
    FieldRequirement,
    Selector,
    SelectorError,
    parse_field_selector,
    parse_label_selector,
)
from volcano.embedded.apiserver.registry.resources import Served
from volcano.embedded.apiserver.store.contract import Stored
from volcano.machinery.transport import Request

_COMMON_FIELDS: Final = ("metadata.name", "metadata.namespace")


class Selection(msgspec.Struct, frozen=True):
    """A conjunction; without any part, all objects of the resource."""

    served: Served
    namespace: str = ""
    name: str = ""
    labels: Selector = EVERYTHING
    fields: tuple[FieldRequirement, ...] = ()

    @property
    def has_selectors(self) -> bool:
        return bool(self.labels) or bool(self.fields)

    def matches(self, stored: Stored) -> bool:
        _, namespace, name = stored.key
        if self.namespace and namespace != self.namespace:
            return False
        if self.name and name != self.name:
            return False
        if self.labels and not self.labels.matches(self.served.index_of(stored).labels):
            return False
        return not self.fields or all(self._holds(requirement, stored) for requirement in self.fields)

    def _holds(self, requirement: FieldRequirement, stored: Stored) -> bool:
        if requirement.path == "metadata.name":
            found = stored.key.name
        elif requirement.path == "metadata.namespace":
            found = stored.key.namespace
        else:
            found = self.served.index_of(stored).fields.get(requirement.path, "")
        return (found == requirement.value) is requirement.equal


def selection_from(request: Request, served: Served, *, namespace: str, name: str = "") -> Selection:
    """The selection of a request; 400 for a malformed selector or a field that is not selectable."""
    try:
        labels = parse_label_selector(request.param("labelSelector"))
        fields = parse_field_selector(request.param("fieldSelector"))
    except SelectorError as error:
        raise BadRequest(str(error)) from error
    for requirement in fields:
        if requirement.path not in _COMMON_FIELDS and requirement.path not in served.strategy.selectable_fields:
            raise BadRequest(f"field label not supported: {requirement.path}")
    named = next((f.value for f in fields if f.path == "metadata.name" and f.equal), "")
    return Selection(served, namespace, name or named, labels, fields)
