"""What server-side apply needs of a type: which maps and lists are atomic, and which keys identify elements.

Nodes are made from schemas of the core table or of a CRD, lazily, as far as objects reach. Without a schema,
objects merge and lists are atomic.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import FREE_FORM, INT_OR_STRING, OBJECT_META, QUANTITY, core_table

SCALAR: Final = "scalar"
MAP: Final = "map"
LIST: Final = "list"
ANY: Final = "any"
_SCALARS: Final = ("string", "integer", "number", "boolean")


class TypeNode:
    """One place in a type."""

    __slots__ = ("_children", "_fields", "_item", "_others", "atomic", "defaults", "keys", "list_type", "shape")

    def __init__(
        self,
        shape: str,
        *,
        fields: Mapping[str, Callable[[], TypeNode]] | None = None,
        others: Callable[[], TypeNode] | None = None,
        item: Callable[[], TypeNode] | None = None,
        atomic: bool = False,
        list_type: str = "atomic",
        keys: tuple[str, ...] = (),
        defaults: Mapping[str, Any] | None = None,
    ) -> None:
        self.shape = shape
        self.atomic = atomic
        self.list_type = list_type
        self.keys = keys
        self.defaults: Mapping[str, Any] = defaults or {}
        self._fields = fields or {}
        self._others = others
        self._item = item
        self._children: dict[str, TypeNode] = {}

    def has_field(self, name: str) -> bool:
        """Whether the type names this field, rather than having it as one key of many."""
        return name in self._fields

    def knows(self, name: str) -> bool:
        return name in self._fields or self._others is not None or self.shape == ANY

    def child(self, name: str) -> TypeNode:
        node = self._children.get(name)
        if node is None:
            make = self._fields.get(name) or self._others
            if make is None:
                return UNTYPED
            node = make()
            if name in self._fields:  # keys of maps are without number and are not kept
                self._children[name] = node
        return node

    @property
    def item(self) -> TypeNode:
        return self._item() if self._item is not None else UNTYPED


UNTYPED: Final = TypeNode(ANY)
SCALAR_NODE: Final = TypeNode(SCALAR)


@cache
def core_node(name: str) -> TypeNode:
    """The node of a type in the core table."""
    if name in (QUANTITY, INT_OR_STRING):
        return SCALAR_NODE
    if name in FREE_FORM or name not in core_table().schemas:
        return UNTYPED
    return _node(core_table().schemas[name], is_core=True)


def custom_node(openapi: JSON) -> TypeNode:
    """The node of a CRD's schema; metadata is Kubernetes' own."""
    return _node({**openapi, "x-kubernetes-embedded-resource": True}, is_core=False)


def _node(schema: JSON, *, is_core: bool) -> TypeNode:
    if "$ref" in schema:
        return core_node(schema["$ref"])
    if schema.get("x-kubernetes-int-or-string") is True or schema.get("type") in _SCALARS:
        return SCALAR_NODE
    if schema.get("type") == "array":
        return _list_node(schema, is_core=is_core)
    if schema.get("type") == "object" or schema.get("properties") or schema.get("additionalProperties"):
        return _map_node(schema, is_core=is_core)
    return UNTYPED


def _lazily(schema: JSON, is_core: bool) -> Callable[[], TypeNode]:
    made: list[TypeNode] = []

    def make() -> TypeNode:
        if not made:
            made.append(_node(schema, is_core=is_core))
        return made[0]

    return make


def _map_node(schema: JSON, *, is_core: bool) -> TypeNode:
    properties: JSON = schema.get("properties") or {}
    fields = {name: _lazily(child, is_core) for name, child in properties.items() if isinstance(child, dict)}
    if schema.get("x-kubernetes-embedded-resource") is True:
        fields |= {
            "apiVersion": lambda: SCALAR_NODE,
            "kind": lambda: SCALAR_NODE,
            "metadata": lambda: core_node(OBJECT_META),
        }
    more = schema.get("additionalProperties")
    others = _lazily(more, is_core) if isinstance(more, dict) else None
    free = more is True or schema.get("x-kubernetes-preserve-unknown-fields") is True or not (fields or others)
    if others is None and free:
        others = _untyped
    atomic = schema.get("x-kubernetes-map-type") == "atomic"
    return TypeNode(MAP, fields=fields, others=others, atomic=atomic)


def _untyped() -> TypeNode:
    return UNTYPED


def _list_node(schema: JSON, *, is_core: bool) -> TypeNode:
    items = schema.get("items")
    list_type = str(schema.get("x-kubernetes-list-type") or "atomic")
    keys = tuple(schema.get("x-kubernetes-list-map-keys") or ())
    defaults: JSON = {}
    if list_type == "map" and isinstance(items, dict):
        element = core_table().resolve(items) if is_core else items
        for key in keys:
            child = (element.get("properties") or {}).get(key) or {}
            if child.get("default") is not None:
                defaults[key] = child["default"]
    if list_type == "map" and not keys:
        list_type = "atomic"
    return TypeNode(
        LIST,
        item=_lazily(items, is_core) if isinstance(items, dict) else None,
        list_type=list_type,
        keys=keys,
        defaults=defaults,
    )
