"""A step's `patch.jobSpec` over its template: strategically, and without what the CRD's defaults put into the patch.

Tasks merge by name, volumes by mount path, pod templates by Kubernetes' own keys; other lists are replaced.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any, Final, TypeAlias

from volcano.api.batch import JobSpec
from volcano.api.meta import JSON
from volcano.api.schemas.openapi_table import core_table
from volcano.api.schemas.structs import struct_schema

Merge: TypeAlias = Callable[[Any, Any], Any]

POD_TEMPLATE: Final = "io.k8s.api.core.v1.PodTemplateSpec"
JOB_LISTS: Final = {"tasks": "name", "volumes": "mountPath"}
MAX_DEPTH: Final = 50


def merged_spec(template: JSON, patch: JSON | None) -> JSON:
    """The template's job spec as the step wants it."""
    if not patch:
        return template
    wanted = _without_defaults(patch, _job_schema(), 0)
    merged = dict(template)
    for field, value in wanted.items():
        key = JOB_LISTS.get(field)
        if key is not None and isinstance(value, list):
            merge = _merged_task if field == "tasks" else _merged_plain
            merged[field] = _merged_list(template.get(field) or [], value, key, merge)
        else:
            merged[field] = _merged_plain(template.get(field), value)
    return merged


@cache
def _job_schema() -> JSON:
    return struct_schema(JobSpec)


def _without_defaults(value: Any, schema: Mapping[str, Any], depth: int) -> Any:
    """The API server has filled in defaults before anyone could see what was meant, so a default says nothing."""
    if depth > MAX_DEPTH:
        return value
    if isinstance(value, dict):
        fields = schema.get("properties") or {}
        inner = schema.get("additionalProperties")
        kept = {}
        for name, item in value.items():
            below = fields.get(name, inner if isinstance(inner, dict) else {})
            if "default" not in below or item != below["default"]:
                kept[name] = _without_defaults(item, below, depth + 1)
        return kept
    if isinstance(value, list):
        below = schema.get("items") or {}
        keys = set(schema.get("x-kubernetes-list-map-keys") or ())
        return [_keyed(item, _without_defaults(item, below, depth + 1), keys) for item in value]
    return value


def _keyed(item: Any, stripped: Any, keys: set[str]) -> Any:
    """The merge key of a list item stays, even if it has its default value."""
    if not isinstance(item, dict):
        return stripped
    return {**{key: item[key] for key in keys if key in item}, **stripped}


def _merged_plain(target: Any, patch: Any) -> Any:
    """Objects field by field, anything else replaced."""
    if not (isinstance(target, dict) and isinstance(patch, dict)):
        return patch
    return {**target, **{field: _merged_plain(target.get(field), value) for field, value in patch.items()}}


def _merged_task(target: Any, patch: Any) -> Any:
    if not (isinstance(target, dict) and isinstance(patch, dict)):
        return patch
    merged = _merged_plain(target, {field: value for field, value in patch.items() if field != "template"})
    if "template" in patch:
        template = {"$ref": POD_TEMPLATE}
        merged["template"] = _merged_core(target.get("template"), patch["template"], template, 0)
    return merged


def _merged_list(target: Sequence[Any], patch: Sequence[Any], key: str, merge: Merge) -> list[Any]:
    """Items of the same key merge; new ones come last. Items that have no key pair up by their place."""
    merged = list(target)
    places = {_name(item, key, place): place for place, item in enumerate(target)}
    for place, item in enumerate(patch):
        found = places.get(_name(item, key, place))
        if found is None:
            merged.append(item)
        else:
            merged[found] = merge(merged[found], item)
    return merged


def _name(item: Any, key: str, place: int) -> Any:
    name = item.get(key) if isinstance(item, dict) else None
    return name if name else place


def _merged_core(target: Any, patch: Any, schema: JSON, depth: int) -> Any:
    """A pod template, by what its schema says about merging."""
    if depth > MAX_DEPTH or not isinstance(patch, dict) or not isinstance(target, dict):
        return patch
    resolved = core_table().resolve(schema)
    fields = resolved.get("properties") or {}
    merged = dict(target)
    for name, value in patch.items():
        below = fields.get(name, {})
        key = below.get("x-kubernetes-patch-merge-key")
        if isinstance(value, list) and key is not None and isinstance(target.get(name), list):
            merged[name] = _merged_list(target[name], value, key, _item_merge(below, depth + 1))
        else:
            merged[name] = _merged_core(target.get(name), value, below, depth + 1)
    return merged


def _item_merge(schema: JSON, depth: int) -> Merge:
    """How two items of a keyed list become one. Of a volume, what the patch does not name goes: it has one source."""
    items = schema.get("items") or {}
    retains = "retainKeys" in schema.get("x-kubernetes-patch-strategy", "")

    def merge(old: Any, new: Any) -> Any:
        merged = _merged_core(old, new, items, depth)
        return {name: merged[name] for name in new} if retains and isinstance(new, dict) else merged

    return merge
