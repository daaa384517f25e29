"""From a struct to the OpenAPI schema of its CRD: types from annotations, limits from `wire(…)`, and descriptions.

Pod templates, claims, selectors and references inside our kinds are taken from the core table with every field, so that
nothing a user writes in one is pruned. What a manifest says around the schema is in api.schemas.crds.
"""

from __future__ import annotations

import types
from collections.abc import Mapping
from datetime import datetime
from typing import Annotated, Any, Final, Union, get_args, get_origin, get_type_hints

import msgspec

from volcano.api import meta
from volcano.api.meta import JSON, Quantities
from volcano.api.schemas.descriptions import core_field_description, field_description
from volcano.api.schemas.openapi_table import (
    FREE_FORM,
    INT_OR_STRING,
    LABEL_SELECTOR,
    OBJECT_META,
    QUANTITY,
    core_schema,
)

QUANTITY_PATTERN: Final = (
    r"^(\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))))?$"
)
INTEGER_OR_STRING: Final[JSON] = {
    "anyOf": [{"type": "integer"}, {"type": "string"}],
    "x-kubernetes-int-or-string": True,
}
QUANTITY_SCHEMA: Final[JSON] = {**INTEGER_OR_STRING, "pattern": QUANTITY_PATTERN}
FREE: Final[JSON] = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
MAX_DEPTH: Final = 40
REQUIRED_MARK: Final = "x-required"  # apart from "required", which lists an object's own fields

TEMPLATE_METADATA: Final[JSON] = {
    "type": "object",
    "properties": {
        "annotations": {"type": "object", "additionalProperties": {"type": "string"}},
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}
"""What is kept of the metadata inside a template."""

SCALARS: Final[Mapping[Any, JSON]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    bool: {"type": "boolean"},
    float: {"type": "number"},
    datetime: {"type": "string", "format": "date-time"},
}

CONDITION_SCHEMA: Final[JSON] = {
    "type": "object",
    "required": ["lastTransitionTime", "message", "reason", "status", "type"],
    "properties": {
        "lastTransitionTime": {"type": "string", "format": "date-time"},
        "message": {"type": "string", "maxLength": 32768},
        "observedGeneration": {"type": "integer", "format": "int64", "minimum": 0},
        "reason": {
            "type": "string",
            "maxLength": 1024,
            "minLength": 1,
            "pattern": r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$",
        },
        "status": {"type": "string", "enum": ["True", "False", "Unknown"]},
        "type": {
            "type": "string",
            "maxLength": 316,
            "pattern": r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
            r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$",
        },
    },
}
"""A standard condition with the limits Kubernetes' own generator writes."""

CORE_STRUCTS: Final[Mapping[type, str]] = {
    meta.LabelSelector: LABEL_SELECTOR,
    meta.ObjectReference: "io.k8s.api.core.v1.ObjectReference",
    meta.OwnerReference: "io.k8s.apimachinery.pkg.apis.meta.v1.OwnerReference",
}
"""Structs that read part of a Kubernetes type; the schema is the whole type's."""

COPIED: Final = (
    "type", "format", "enum", "default", "required",
    "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type",
)  # fmt: skip
EARLIER: Final = {"io.k8s.api.core.v1.PodSpec": ("workloadRef",)}
"""Fields that Kubernetes has given up and Volcano's definitions still name: kept, so that an upgrade loses nothing."""


def struct_schema(struct: type[msgspec.Struct]) -> JSON:
    """An object schema with one property per field of the struct."""
    hints = get_type_hints(struct, include_extras=True)
    properties: JSON = {}
    required: list[str] = []
    for field in msgspec.structs.fields(struct):
        schema = _type_schema(hints[field.name])
        if schema.pop(REQUIRED_MARK, False):
            required.append(field.encode_name)
        properties[field.encode_name] = _described(schema, field_description(struct, field.encode_name))
    answer: JSON = {"type": "object", "properties": properties}
    if required:
        answer["required"] = sorted(required)
    return answer


def _type_schema(annotation: Any) -> JSON:
    if annotation == Quantities:
        return {"type": "object", "additionalProperties": dict(QUANTITY_SCHEMA)}
    if annotation == JSON:
        return dict(FREE)
    if annotation in SCALARS:
        return dict(SCALARS[annotation])
    if isinstance(annotation, type) and issubclass(annotation, msgspec.Struct):
        if annotation is meta.Condition:
            return _with_core_descriptions("Condition", CONDITION_SCHEMA)
        core = CORE_STRUCTS.get(annotation)
        return inline(core) if core else struct_schema(annotation)
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated_schema(arguments[0], arguments[1:])
    if origin in (Union, types.UnionType):
        return _type_schema(next(argument for argument in arguments if argument is not type(None)))
    if origin is list:
        return {"type": "array", "items": _type_schema(arguments[0])}
    if origin is dict:
        return {"type": "object", "additionalProperties": _type_schema(arguments[1])}
    raise TypeError(f"no schema for {annotation}")


def _annotated_schema(annotation: Any, notes: tuple[Any, ...]) -> JSON:
    declared: JSON = {}
    for note in notes:
        if isinstance(note, msgspec.Meta) and note.extra:
            declared |= note.extra.get("wire", {})
    core = declared.pop("ref", None)
    schema = inline(core) if core else _type_schema(annotation)
    if declared.pop("required", False):
        declared[REQUIRED_MARK] = True
    if "enum" in declared:
        declared["enum"] = [str(value) for value in declared["enum"]]
    return schema | declared


def inline(name: str, depth: int = 0) -> JSON:
    """A core schema with all references replaced by what they name, as a CRD must have it."""
    if name == QUANTITY:
        return dict(QUANTITY_SCHEMA)
    if name == INT_OR_STRING:
        return dict(INTEGER_OR_STRING)
    if name == OBJECT_META:
        return _with_core_descriptions(name, TEMPLATE_METADATA)
    if name in FREE_FORM:
        return dict(FREE)
    if depth > MAX_DEPTH:
        raise RecursionError(f"{name} refers to itself")
    found = _inline_schema(core_schema(name), depth + 1)
    if name in EARLIER:
        found["properties"] |= {field: dict(FREE) for field in EARLIER[name]}
    return _with_core_descriptions(name, found)


def _described(schema: JSON, description: str) -> JSON:
    return schema | {"description": description} if description else schema


def _with_core_descriptions(name: str, schema: JSON) -> JSON:
    """The schema of one of Kubernetes' types, with a description of each of its fields."""
    if "properties" not in schema:
        return dict(schema)
    properties = {
        field: _described(value, core_field_description(name, field)) for field, value in schema["properties"].items()
    }
    return schema | {"properties": properties}


def _inline_schema(schema: JSON, depth: int) -> JSON:
    if "$ref" in schema:
        return inline(schema["$ref"], depth) | {key: schema[key] for key in COPIED if key in schema}
    answer: JSON = {key: schema[key] for key in COPIED if key in schema}
    if "properties" in schema:
        answer["properties"] = {key: _inline_schema(value, depth) for key, value in schema["properties"].items()}
    for key in ("items", "additionalProperties"):
        if isinstance(schema.get(key), dict):
            answer[key] = _inline_schema(schema[key], depth)
    return answer
