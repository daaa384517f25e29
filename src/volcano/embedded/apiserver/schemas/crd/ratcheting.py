"""Ratcheting: an update may keep values that were already invalid; errors about unchanged values are dropped."""

from __future__ import annotations

from typing import Any, Final

from volcano.api.field_errors import Path
from volcano.api.meta import JSON
from volcano.embedded.apiserver.schemas.crd.junctions import Errors

_MISSING: Final = object()


def without_unchanged(errors: Errors, value: Any, old: Any, schema: JSON) -> Errors:
    return [(path, error) for path, error in errors if not _is_unchanged(path, value, old, schema)]


def _is_unchanged(path: Path, value: Any, old: Any, schema: JSON) -> bool:
    """Whether the place an error names, or anything around it below the root, is as it was."""
    steps: list[str | int] = []
    while isinstance(path, tuple):
        path, step = path
        steps.append(step)
    for step in reversed(steps):
        if isinstance(step, int):
            value, old = _item(value, old, step, schema)
            schema = schema.get("items") or {}
        else:
            value = value.get(step, _MISSING) if isinstance(value, dict) else _MISSING
            old = old.get(step, _MISSING) if isinstance(old, dict) else _MISSING
            more = schema.get("additionalProperties")
            schema = (schema.get("properties") or {}).get(step) or (more if isinstance(more, dict) else {})
        if old is _MISSING or value is _MISSING:
            return False  # a missing required field is an error of its parent, which was compared before
        if value == old:
            return True
    return False


def _item(value: Any, old: Any, index: int, schema: JSON) -> tuple[Any, Any]:
    """The element and its counterpart, which only lists with keys have."""
    item = value[index] if isinstance(value, list) and index < len(value) else _MISSING
    keys = schema.get("x-kubernetes-list-map-keys")
    if schema.get("x-kubernetes-list-type") != "map" or not keys or not isinstance(item, dict):
        return item, _MISSING
    key = [item.get(name) for name in keys]
    for candidate in old if isinstance(old, list) else ():
        if isinstance(candidate, dict) and [candidate.get(name) for name in keys] == key:
            return item, candidate
    return item, _MISSING
