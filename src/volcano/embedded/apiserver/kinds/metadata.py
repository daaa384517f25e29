"""What an object's metadata may look like: names, labels, annotations, owners, finalizers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

from volcano.api.errors import FieldError
from volcano.api.field_errors import invalid, required, too_long, type_invalid
from volcano.api.meta import JSON
from volcano.api.names import (
    annotations_are_too_large,
    label_value_problems,
    qualified_name_problems,
)

MAX_ANNOTATION_BYTES: Final = 256 * 1024

NameRule = Callable[[str], list[str]]


def metadata_errors(metadata: JSON, name_problems: NameRule, *, is_core: bool) -> list[FieldError]:
    """All that is wrong with an object's metadata, types first: a value of a wrong type is not checked further."""
    errors = _type_errors(metadata)
    if errors:
        return errors
    name = metadata.get("name") or ""
    generate = metadata.get("generateName") or ""
    if generate:
        errors += [invalid("metadata.generateName", generate, f) for f in name_problems(generate.rstrip("-.") or "a")]
    if not name:
        if not generate:
            errors.append(required("metadata.name", "name or generateName is required"))
    else:
        errors += [invalid("metadata.name", name, fault) for fault in name_problems(name)]
    errors += label_errors("metadata.labels", metadata.get("labels") or {})
    errors += annotation_errors("metadata.annotations", metadata.get("annotations") or {})
    errors += _owner_errors(metadata.get("ownerReferences") or [])
    for finalizer in metadata.get("finalizers") or []:
        errors += finalizer_errors("metadata.finalizers", finalizer, is_core=is_core)
    return errors


_TEXTS: Final = ("name", "generateName", "namespace", "resourceVersion", "uid")


def _type_errors(metadata: Any) -> list[FieldError]:
    if not isinstance(metadata, dict):
        return [type_invalid("metadata", metadata, "must be an object")]
    errors = [
        type_invalid(f"metadata.{field}", metadata[field], "must be a string")
        for field in _TEXTS
        if not isinstance(metadata.get(field) or "", str)
    ]
    for field in ("labels", "annotations"):
        found = metadata.get(field) or {}
        if not isinstance(found, dict) or not all(isinstance(v, str) for v in found.values()):
            errors.append(type_invalid(f"metadata.{field}", found, "must be a map of strings"))
    finalizers = metadata.get("finalizers") or []
    if not isinstance(finalizers, list) or not all(isinstance(v, str) for v in finalizers):
        errors.append(type_invalid("metadata.finalizers", finalizers, "must be a list of strings"))
    owners = metadata.get("ownerReferences") or []
    if not isinstance(owners, list) or not all(isinstance(v, dict) for v in owners):
        errors.append(type_invalid("metadata.ownerReferences", owners, "must be a list of objects"))
    return errors


def label_errors(path: str, labels: Mapping[str, str]) -> list[FieldError]:
    errors = []
    for key, value in labels.items():
        errors += [invalid(path, key, fault) for fault in _key_problems(key)]
        errors += [invalid(path, value, fault) for fault in _value_problems(value)]
    return errors


@lru_cache(maxsize=4096)
def _key_problems(key: str) -> tuple[str, ...]:
    return tuple(qualified_name_problems(key))


@lru_cache(maxsize=16384)
def _value_problems(value: str) -> tuple[str, ...]:
    return tuple(label_value_problems(value))


def annotation_errors(path: str, annotations: Mapping[str, str]) -> list[FieldError]:
    errors = [invalid(path, key, fault) for key in annotations for fault in _key_problems(key.lower())]
    if annotations_are_too_large(annotations):
        errors.append(too_long(path, MAX_ANNOTATION_BYTES))
    return errors


_STANDARD_FINALIZERS: Final = frozenset({"orphan", "foregroundDeletion", "kubernetes"})


def finalizer_errors(path: str, finalizer: str, *, is_core: bool) -> list[FieldError]:
    errors = [invalid(path, finalizer, fault) for fault in qualified_name_problems(finalizer)]
    if is_core and not errors and "/" not in finalizer and finalizer not in _STANDARD_FINALIZERS:
        errors.append(invalid(path, finalizer, "name is neither a standard finalizer name nor is it fully qualified"))
    return errors


def _owner_errors(owners: list[JSON]) -> list[FieldError]:
    errors: list[FieldError] = []
    controllers = []
    for owner in owners:
        path = "metadata.ownerReferences"  # Kubernetes leaves the index out
        for field in ("apiVersion", "kind", "name", "uid"):
            value = owner.get(field)
            if not value:
                what = "version must" if field == "apiVersion" else "must"
                errors.append(invalid(f"{path}.{field}", value or "", f"{what} not be empty"))
            elif not isinstance(value, str):
                errors.append(type_invalid(f"{path}.{field}", value, "must be a string"))
        if owner.get("apiVersion") == "v1" and owner.get("kind") == "Event":
            errors.append(invalid(path, owner, "/v1, Kind=Event is disallowed from being an owner"))
        if owner.get("controller") is True:
            controllers.append(f"{owner.get('kind')}/{owner.get('name')}")
    if len(controllers) > 1:
        errors.append(
            invalid(
                "metadata.ownerReferences",
                owners,
                f'Only one reference can have Controller set to true. Found "true" in references for '
                f"{controllers[0]} and {controllers[1]}",
            )
        )
    return errors
