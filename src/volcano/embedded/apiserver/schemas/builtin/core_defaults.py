"""What kube-apiserver fills into Kubernetes' own kinds before it stores them.

Defaults belong to types (a Container has the same in a Pod and in a Deployment's template), so an object is walked by
the core table and each value gets the defaults of its type, the outer before the inner. Quantities get their canonical
spelling, and structs that Go always writes are present. The parts of the walk are compiled once per kind.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final, TypeAlias

from volcano.api.meta import JSON
from volcano.api.quantity import NANO, Quantity, QuantityError, parse_quantity
from volcano.api.schemas.openapi_table import FREE_FORM, JSON_SCHEMA, OBJECT_META, QUANTITY, core_table, schema_name
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.schemas.builtin.type_defaults import COMPUTED, CONSTANTS, ZERO_IS_UNSET

Visit: TypeAlias = Callable[[Any], None]

_MILLI: Final = NANO // 1000
_SKIPPED: Final = FREE_FORM | {OBJECT_META, JSON_SCHEMA}
"""Types without defaults inside; the second contains itself."""


def apply_core_defaults(resource: ResourceType, obj: JSON) -> None:
    """Fill in what is missing, in place. Values of a wrong type are left for the type check to report."""
    name = schema_name(resource.group, resource.version, resource.kind)
    if name is None:
        return
    visit = _visit_of(name)
    if visit is not None:
        visit(obj)


def canonical_quantity(value: Any) -> Any:
    """ "1000m" → "1"; finer than a thousandth is rounded up. What is no quantity stays as it is."""
    if not isinstance(value, str | int | float) or isinstance(value, bool):
        return value
    try:
        amount = parse_quantity(value)
    except QuantityError:
        return value
    nanos = amount.nanos
    if nanos % _MILLI:
        nanos += (_MILLI - nanos % _MILLI) if nanos > 0 else -(nanos % _MILLI)
    return str(Quantity(nanos, amount.notation))


@cache
def _visit_of(name: str) -> Visit | None:
    """The walk of one type, or None when nothing in it has a default."""
    if name in _SKIPPED or name not in core_table().schemas:
        return None
    schema = core_table().schemas[name]
    properties: Mapping[str, JSON] = schema.get("properties") or {}
    constants = tuple(CONSTANTS.get(name, {}).items())
    zeros: frozenset[str] = ZERO_IS_UNSET.get(name, frozenset())
    compute = COMPUTED.get(name)
    embedded = tuple(
        field for field, child in properties.items() if child.get("x-embedded") and child["$ref"] not in _SCALARS
    )
    children = {field: inner for field, child in properties.items() if (inner := _visit_in(child)) is not None}
    quantities = tuple(field for field, child in properties.items() if child.get("$ref") == QUANTITY)
    if not (constants or compute or embedded or children or quantities):
        return None

    def visit(obj: Any) -> None:
        if type(obj) is not dict:
            return
        if compute is not None:
            compute(obj)
        for field, value in constants:
            found = obj.get(field)
            if found is None or found == "" or (found == 0 and field in zeros):
                obj[field] = list(value) if isinstance(value, list) else dict(value) if value == {} else value
        for field in embedded:
            if obj.get(field) is None:
                obj[field] = {}
        for field in quantities:
            if field in obj:
                obj[field] = canonical_quantity(obj[field])
        for field, inner in children.items():
            if field in obj:
                inner(obj[field])

    return visit


_SCALARS: Final = frozenset(
    (
        QUANTITY,
        "io.k8s.apimachinery.pkg.util.intstr.IntOrString",
        "io.k8s.apimachinery.pkg.apis.meta.v1.Time",
        "io.k8s.apimachinery.pkg.apis.meta.v1.MicroTime",
        "io.k8s.apimachinery.pkg.runtime.RawExtension",
    )
)


def _visit_in(schema: JSON) -> Visit | None:
    if "$ref" in schema:
        return None if schema["$ref"] in _SCALARS else _visit_of(schema["$ref"])
    if isinstance(schema.get("items"), dict):
        return _each_item(_visit_in(schema["items"]))
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        return _canonical_values if more.get("$ref") == QUANTITY else _each_value(_visit_in(more))
    return None


def _each_item(inner: Visit | None) -> Visit | None:
    if inner is None:
        return None

    def visit(value: Any) -> None:
        if type(value) is list:
            for item in value:
                inner(item)

    return visit


def _each_value(inner: Visit | None) -> Visit | None:
    if inner is None:
        return None

    def visit(value: Any) -> None:
        if type(value) is dict:
            for item in value.values():
                inner(item)

    return visit


def _canonical_values(value: Any) -> None:
    if type(value) is dict:
        for key, amount in value.items():
            value[key] = canonical_quantity(amount)
