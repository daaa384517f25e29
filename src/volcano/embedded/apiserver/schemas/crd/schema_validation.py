"""Validation of a CRD's schema: structural, that is, types everywhere, no references, and restricted junctions."""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from typing import Any, Final

from volcano.api import field_errors as say
from volcano.api.cel import evaluator as cel
from volcano.api.errors import FieldError
from volcano.api.field_errors import Path, path_text
from volcano.api.meta import JSON
from volcano.api.patterns import PatternError, compile_pattern
from volcano.embedded.apiserver.schemas.crd.checks import compile_check
from volcano.embedded.apiserver.schemas.crd.pruning import compile_pruner

MAX_DEPTH: Final = 100
TYPES: Final = ("array", "boolean", "integer", "number", "object", "string")
NOT_SUPPORTED: Final = ("id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref")
JUNCTIONS: Final = ("allOf", "anyOf", "oneOf")
LIST_TYPES: Final = ("atomic", "set", "map")
MAP_TYPES: Final = ("atomic", "granular")
REASONS: Final = ("FieldValueDuplicate", "FieldValueForbidden", "FieldValueInvalid", "FieldValueRequired")
MISSING_TYPE: Final = {
    "root": "must not be empty at the root",
    "item": "must not be empty for specified array items",
    "field": "must not be empty for specified object fields",
}
INTEGER_OR_STRING: Final = [{"type": "integer"}, {"type": "string"}]
UNDEFINED_WHEN_NESTED: Final = (
    ("type", "must be empty to be structural"),
    ("additionalProperties", "must be undefined to be structural"),
    ("default", "must be undefined to be structural"),
    ("title", "must be empty to be structural"),
    ("description", "must be empty to be structural"),
    ("nullable", "must be false to be structural"),
    ("x-kubernetes-preserve-unknown-fields", "must be false to be structural"),
    ("x-kubernetes-embedded-resource", "must be false to be structural"),
    ("x-kubernetes-int-or-string", "must be false to be structural"),
    ("x-kubernetes-list-map-keys", "must be empty to be structural"),
    ("x-kubernetes-list-type", "must be undefined to be structural"),
    ("x-kubernetes-map-type", "must be undefined to be structural"),
    ("x-kubernetes-validations", "must be empty to be structural"),
)


def schema_errors(schema: JSON, path: Path) -> Iterator[FieldError]:
    yield from _node_errors(schema, path, "root", 0)


def _key(path: Path, part: str, name: str) -> Path:
    """`properties[name]`, as Kubernetes writes it."""
    return (path, f"{part}[{name}]")


def _node_errors(schema: Any, path: Path, level: str, depth: int) -> Iterator[FieldError]:
    if depth > MAX_DEPTH:
        yield say.forbidden(path, f"must not be nested deeper than {MAX_DEPTH} levels")
        return
    if not isinstance(schema, dict):
        yield say.invalid(path, schema, "must be an object")
        return
    yield from _unsupported_errors(schema, path)
    yield from _type_errors(schema, path, level)
    yield from _list_and_map_errors(schema, path)
    yield from _rule_errors(schema, path)
    yield from _default_errors(schema, path)
    if "items" in schema and isinstance(schema["items"], dict):
        yield from _node_errors(schema["items"], (path, "items"), "item", depth + 1)
    for name, child in _properties(schema).items():
        yield from _node_errors(child, _key(path, "properties", name), "field", depth + 1)
        if level == "root" and name == "metadata":
            yield from _metadata_errors(child, _key(path, "properties", name))
    more = schema.get("additionalProperties")
    if more is not None:
        if level == "root":
            yield say.forbidden((path, "additionalProperties"), "must not be used at the root")
        if _properties(schema) and more is not True:
            detail = "additionalProperties and properties are mutual exclusive"
            yield say.forbidden((path, "additionalProperties"), detail)
        if isinstance(more, dict):
            yield from _node_errors(more, (path, "additionalProperties"), "field", depth + 1)
    yield from _validation_errors(schema, path, depth)


def _properties(schema: JSON) -> JSON:
    properties = schema.get("properties")
    return properties if isinstance(properties, dict) else {}


def _unsupported_errors(schema: JSON, path: Path) -> Iterator[FieldError]:
    for name in NOT_SUPPORTED:
        if schema.get(name):
            yield say.forbidden((path, name), f"{name} is not supported")
    if schema.get("uniqueItems") is True:
        detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic"
        yield say.forbidden((path, "uniqueItems"), detail)
    if isinstance(schema.get("items"), list):
        yield say.forbidden((path, "items"), "items must be a schema object and not an array")
    if schema.get("x-kubernetes-preserve-unknown-fields") is False:
        yield say.invalid((path, "x-kubernetes-preserve-unknown-fields"), False, "must be true or undefined")


def _type_errors(schema: JSON, path: Path, level: str) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    where = (path, "type")
    embedded = schema.get("x-kubernetes-embedded-resource") is True
    int_or_string = schema.get("x-kubernetes-int-or-string") is True
    free = schema.get("x-kubernetes-preserve-unknown-fields") is True
    if kind and kind not in TYPES:
        yield say.not_supported(where, kind, TYPES)
    if kind == "null":
        yield say.forbidden(where, "type cannot be set to null, use nullable as an alternative")
    if embedded and kind != "object":
        detail = "must be object if x-kubernetes-embedded-resource is true"
        yield say.invalid(where, kind, detail) if kind else say.required(where, detail)
    elif not kind and not int_or_string and not free:
        yield say.required(where, MISSING_TYPE[level])
    if level == "root" and kind and kind != "object":
        yield say.invalid(where, kind, "must be object at the root")
    if level == "root" or embedded:
        for name in ("apiVersion", "kind"):
            named = _properties(schema).get(name)
            if isinstance(named, dict) and named.get("type") != "string":
                place = (_key(path, "properties", name), "type")
                yield say.invalid(place, named.get("type") or "", "must be string")
    if kind == "array" and schema.get("items") is None:
        yield say.required((path, "items"), "must be specified")
    if int_or_string and free:
        detail = "must be false if x-kubernetes-int-or-string is true"
        yield say.invalid((path, "x-kubernetes-preserve-unknown-fields"), True, detail)
    if embedded and not free and not _properties(schema):
        detail = (
            "must not be empty if x-kubernetes-embedded-resource is true without x-kubernetes-preserve-unknown-fields"
        )
        yield say.required((path, "properties"), detail)


def _metadata_errors(schema: JSON, path: Path) -> Iterator[FieldError]:
    if not isinstance(schema, dict):
        return
    if schema.get("type") != "object":
        yield say.invalid((path, "type"), schema.get("type") or "", "must be object")
    named = set(_properties(schema)) <= {"name", "generateName"}
    others = set(schema) - {"type", "properties", "description"}
    if not named or others:
        detail = "must not specify anything other than name and generateName, but metadata is implicitly specified"
        yield say.forbidden(path, detail)


def _list_and_map_errors(schema: JSON, path: Path) -> Iterator[FieldError]:
    kind = schema.get("type") or ""
    for name, wanted, accepted in (
        ("x-kubernetes-map-type", "object", MAP_TYPES),
        ("x-kubernetes-list-type", "array", LIST_TYPES),
    ):
        value = schema.get(name)
        if value is None:
            continue
        if kind != wanted:
            detail = f"must be {wanted} if {name} is specified"
            yield say.invalid((path, "type"), kind, detail) if kind else say.required((path, "type"), detail)
        if value not in accepted:
            yield say.not_supported((path, name), value, accepted)
    keys = schema.get("x-kubernetes-list-map-keys")
    list_type = schema.get("x-kubernetes-list-type")
    if keys and list_type != "map":
        where, detail = (path, "x-kubernetes-list-type"), "must be map if x-kubernetes-list-map-keys is non-empty"
        yield say.invalid(where, list_type, detail) if list_type else say.required(where, detail)
    items = schema.get("items")
    if list_type == "set" and isinstance(items, dict):
        detail = "must be atomic as item of a list with x-kubernetes-list-type=set"
        if items.get("type") == "object" and items.get("x-kubernetes-map-type") != "atomic":
            yield say.invalid(((path, "items"), "x-kubernetes-map-type"), items.get("x-kubernetes-list-type"), detail)
        elif items.get("type") == "array" and items.get("x-kubernetes-list-type") not in (None, "atomic"):
            yield say.invalid(((path, "items"), "x-kubernetes-list-type"), items["x-kubernetes-list-type"], detail)
    if list_type == "map":
        yield from _key_errors(schema, path, keys if isinstance(keys, list) else [])


def _key_errors(schema: JSON, path: Path, keys: list[Any]) -> Iterator[FieldError]:
    where = (path, "x-kubernetes-list-map-keys")
    items = schema.get("items")
    if not keys:
        yield say.required(where, "must not be empty if x-kubernetes-list-type is map")
    if not isinstance(items, dict):
        yield say.required((path, "items"), "must have a schema if x-kubernetes-list-type is map")
        return
    if items.get("type") != "object":
        detail = "must be object if parent array's x-kubernetes-list-type is map"
        yield say.invalid(((path, "items"), "type"), items.get("type") or "", detail)
        return
    if len({str(key) for key in keys}) < len(keys):
        yield say.invalid(where, keys, "must not contain duplicate entries")
    properties = _properties(items)
    for key in map(str, keys):
        child = properties.get(key)
        place = _key((path, "items"), "properties", key)
        if not isinstance(child, dict):
            yield say.invalid(where, keys, "entries must all be names of item properties")
        elif child.get("type") in ("array", "object"):
            detail = "must be a scalar type if parent array's x-kubernetes-list-type is map"
            yield say.invalid((place, "type"), items.get("type"), detail)
        elif child.get("default") is None and key not in (items.get("required") or ()):
            detail = (
                "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property"
            )
            yield say.required((place, "default"), detail)


def _rule_errors(schema: JSON, path: Path) -> Iterator[FieldError]:
    rules = schema.get("x-kubernetes-validations")
    for index, rule in enumerate(rules if isinstance(rules, list) else ()):
        where: Path = ((path, "x-kubernetes-validations"), index)
        source = rule.get("rule") if isinstance(rule, dict) else None
        if not isinstance(source, str) or not source.strip():
            yield say.required((where, "rule"), "rule is not specified")
            continue
        yield from _rule_text_errors(rule, source, where)
        yield from _rule_compile_errors(rule, source, schema, where)


def _rule_text_errors(rule: JSON, source: str, where: Path) -> Iterator[FieldError]:
    message = str(rule.get("message") or "")
    if message and not message.strip():
        yield say.invalid((where, "message"), message, "must be non-empty if specified")
    elif "\n" in message.strip():
        yield say.invalid((where, "message"), message, "must not contain line breaks")
    elif "\n" in source.strip() and not message:
        yield say.required((where, "message"), "message must be specified if rule contains line breaks")
    reason = rule.get("reason")
    if reason is not None and reason not in REASONS:
        yield say.not_supported((where, "reason"), reason, REASONS)


def _rule_compile_errors(rule: JSON, source: str, schema: JSON, where: Path) -> Iterator[FieldError]:
    if error := cel.compile_program(source, schema).error:
        yield say.invalid((where, "rule"), rule, f"compilation failed: {error}")
    message_source = str(rule.get("messageExpression") or "")
    if message_source and (error := cel.compile_program(message_source, schema).error):
        yield say.invalid((where, "messageExpression"), rule, f"messageExpression compilation failed: {error}")


def _default_errors(schema: JSON, path: Path) -> Iterator[FieldError]:
    """A default must itself be valid."""
    default = schema.get("default")
    if default is None:
        return
    found: list[Any] = []
    unknown: list[str] = []
    try:
        compile_check({key: value for key, value in schema.items() if key != "default"}).full(default, None, found)
        pruner = compile_pruner(schema)
        if pruner is not None:
            pruner(deepcopy(default), None, unknown)
    except (KeyError, TypeError, ValueError, AttributeError):
        return  # the schema is broken, and that is reported where it is broken
    if unknown:
        yield say.invalid((path, "default"), default, "must not have unknown fields")
    for where, error in found:
        place = path_text((path, "default"))
        inner = path_text(where)
        yield FieldError(f"{place}.{inner}" if inner else place, error.message, error.reason)


def _validation_errors(schema: JSON, path: Path, depth: int) -> Iterator[FieldError]:
    pattern = schema.get("pattern")
    if isinstance(pattern, str) and pattern:
        try:
            compile_pattern(pattern)
        except PatternError as error:
            detail = f"must be a valid regular expression, but isn't: {error}"
            yield say.invalid((path, "pattern"), pattern, detail)
    for name in JUNCTIONS:
        parts = schema.get(name)
        if name == "anyOf" and parts == INTEGER_OR_STRING and schema.get("x-kubernetes-int-or-string") is True:
            continue
        for index, part in enumerate(parts if isinstance(parts, list) else ()):
            if (
                name == "allOf"
                and index == 0
                and isinstance(part, dict)
                and part.get("anyOf") == INTEGER_OR_STRING
                and schema.get("x-kubernetes-int-or-string") is True
            ):
                continue
            yield from _nested_errors(part, ((path, name), index), depth + 1)
    if schema.get("not") is not None:
        yield from _nested_errors(schema["not"], (path, "not"), depth + 1)


def _nested_errors(schema: Any, path: Path, depth: int) -> Iterator[FieldError]:
    """Inside a junction only values may be restricted; types and properties are declared outside."""
    if depth > MAX_DEPTH:
        yield say.forbidden(path, f"must not be nested deeper than {MAX_DEPTH} levels")
        return
    if not isinstance(schema, dict):
        yield say.invalid(path, schema, "must be an object")
        return
    for name, detail in UNDEFINED_WHEN_NESTED:
        if schema.get(name):
            yield say.forbidden((path, name), detail)
    if isinstance(schema.get("items"), dict):
        yield from _nested_errors(schema["items"], (path, "items"), depth + 1)
    for name, child in _properties(schema).items():
        place = _key(path, "properties", name)
        if name == "metadata":
            yield say.forbidden(place, "must not be specified in a nested context")
        yield from _nested_errors(child, place, depth + 1)
    yield from _validation_errors(schema, path, depth)
