"""A structural schema compiled to two walkers: one drops what the schema does not have, one fills in defaults."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from typing import Any, Final, TypeAlias

from volcano.api.field_errors import Path, path_text
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.crd.checks import MAX_DEPTH, TooDeep

Pruner: TypeAlias = Callable[[Any, Path, list[str]], None]
Filler: TypeAlias = Callable[[Any], None]

META_FIELDS: Final = frozenset(("apiVersion", "kind", "metadata"))
_UNKNOWN: Final = object()


def keeps_unknown(schema: JSON) -> bool:
    return schema.get("x-kubernetes-preserve-unknown-fields") is True


def compile_pruner(schema: JSON, *, depth: int = 0) -> Pruner | None:
    """Drops unknown fields, and nulls where the field may not be null and has no default. None: nothing to drop."""
    if depth > MAX_DEPTH:
        raise TooDeep(f"schema is nested deeper than {MAX_DEPTH} levels")
    kind = schema.get("type")
    if kind == "array" and isinstance(schema.get("items"), dict):
        return _list_pruner(compile_pruner(schema["items"], depth=depth + 1))
    if kind == "object" or "properties" in schema or "additionalProperties" in schema:
        return _object_pruner(schema, depth)
    return None


def _list_pruner(inner: Pruner | None) -> Pruner | None:
    if inner is None:
        return None

    def prune(value: Any, path: Path, removed: list[str]) -> None:
        if type(value) is list:
            for index, item in enumerate(value):
                inner(item, (path, index), removed)

    return prune


def _object_pruner(schema: JSON, depth: int) -> Pruner | None:
    properties: JSON = schema.get("properties") or {}
    table: dict[str, Any] = {name: compile_pruner(child, depth=depth + 1) for name, child in properties.items()}
    more = schema.get("additionalProperties")
    default = compile_pruner(more, depth=depth + 1) if isinstance(more, dict) else None
    otherwise: Any = _UNKNOWN if not (more or keeps_unknown(schema)) else default
    nulls = {name for name, child in properties.items() if _drops_null(child)}
    null_values = isinstance(more, dict) and _drops_null(more)
    if schema.get("x-kubernetes-embedded-resource") is True:
        table |= dict.fromkeys(META_FIELDS - table.keys())
    if otherwise is None and not nulls and not null_values and not any(table.values()):
        return None

    def prune(value: Any, path: Path, removed: list[str]) -> None:
        if type(value) is not dict:
            return
        dropped: list[str] | None = None
        for name, item in value.items():
            inner = table.get(name, otherwise)
            if inner is _UNKNOWN:
                dropped = [*(dropped or ()), name]
                removed.append(path_text((path, name)))
            elif item is None:
                if name in nulls or (null_values and name not in table):
                    dropped = [*(dropped or ()), name]
            elif inner is not None:
                inner(item, (path, name), removed)
        if dropped is not None:
            for name in dropped:
                del value[name]

    return prune


def _drops_null(schema: JSON) -> bool:
    return schema.get("nullable") is not True and schema.get("default") is None


def compile_filler(schema: JSON, *, depth: int = 0) -> Filler | None:
    """Fills in defaults, also for nulls that may not be null. None: the schema has no default anywhere below."""
    if depth > MAX_DEPTH:
        raise TooDeep(f"schema is nested deeper than {MAX_DEPTH} levels")
    properties: JSON = schema.get("properties") or {}
    defaults = [
        (name, child["default"], child.get("nullable") is not True, isinstance(child["default"], dict | list))
        for name, child in properties.items()
        if child.get("default") is not None
    ]
    children = {
        name: filler
        for name, child in properties.items()
        if (filler := compile_filler(child, depth=depth + 1)) is not None
    }
    more, items = schema.get("additionalProperties"), schema.get("items")
    other = compile_filler(more, depth=depth + 1) if isinstance(more, dict) else None
    item_filler = compile_filler(items, depth=depth + 1) if isinstance(items, dict) else None
    if not (defaults or children or other or item_filler):
        return None

    def fill(value: Any) -> None:
        if type(value) is dict:
            for name, default, replaces_null, copied in defaults:
                if name not in value or (replaces_null and value[name] is None):
                    value[name] = deepcopy(default) if copied else default
            for name, inner in children.items():
                if name in value:
                    inner(value[name])
            if other is not None:
                for name, item in value.items():
                    if name not in properties:
                        other(item)
        elif type(value) is list and item_filler is not None:
            for item in value:
                item_filler(item)

    return fill
