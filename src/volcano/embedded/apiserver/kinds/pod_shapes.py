"""A cache by shape: pods whose specs have one shape are pruned, type-checked, defaulted and validated once.

The specs of a job's pods differ only in values of environment variables and in the hostname. A spec without these is
its shape, and the result for a shape holds for every pod that has it.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import msgspec

from volcano.api.errors import FieldError
from volcano.api.meta import JSON
from volcano.api.names import dns_label_problems
from volcano.api.pods.quality import quality_of_service
from volcano.api.pods.requests import read_resources
from volcano.api.pods.validation import validate_pod_spec
from volcano.api.scheme import ResourceType, find_resource_type
from volcano.embedded.apiserver.schemas.builtin.core_defaults import apply_core_defaults
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types, prune_core

MAX_CACHED_SHAPES: Final = 1024
_CONTAINERS: Final = ("containers", "initContainers")


class PreparedSpec(msgspec.Struct, frozen=True):
    """A spec with its defaults, the unknown fields it had, and the pod's QoS class."""

    spec: JSON
    unknown: tuple[str, ...]
    quality: str


def pod_shape(spec: Any) -> bytes:
    """The spec without hostname and variable values, which have no influence on the result."""
    if not isinstance(spec, dict):
        return msgspec.json.encode(spec)
    shape = dict(spec)
    if _has_free_hostname(spec):
        shape["hostname"] = "a"
    for field in _CONTAINERS:
        if isinstance(shape.get(field), list):
            shape[field] = [_without_values(container) for container in shape[field]]
    return msgspec.json.encode(shape)


def shape_errors(shape: bytes) -> tuple[FieldError, ...]:
    """What is wrong with the specs of a shape."""
    return _errors(shape)


def prepared_spec(spec: JSON) -> PreparedSpec | None:
    """The spec ready to be stored; BadRequest when a value has a wrong type. None when its shape cannot be used."""
    encoded, unknown, quality = _prepared(pod_shape(spec))
    fresh: JSON = msgspec.json.decode(encoded)
    if not _refill(fresh, spec):
        return None
    return PreparedSpec(fresh, unknown, quality)


def _has_free_hostname(spec: JSON) -> bool:
    hostname = spec.get("hostname")
    return isinstance(hostname, str) and not spec.get("setHostnameAsFQDN") and not dns_label_problems(hostname)


def _has_free_value(variable: Any) -> bool:
    return isinstance(variable, dict) and isinstance(variable.get("value"), str) and bool(variable["value"])


def _without_values(container: Any) -> Any:
    variables = container.get("env") if isinstance(container, dict) else None
    if not isinstance(variables, list):
        return container
    stripped = [{**variable, "value": "x"} if _has_free_value(variable) else variable for variable in variables]
    return {**container, "env": stripped}


def _refill(fresh: JSON, spec: JSON) -> bool:
    """Put back what the shape left out; False when defaults changed the number of containers or variables."""
    if _has_free_hostname(spec):
        fresh["hostname"] = spec["hostname"]
    for field in _CONTAINERS:
        given, made = spec.get(field) or [], fresh.get(field) or []
        if len(given) != len(made):
            return False
        for source, target in zip(given, made):
            if not isinstance(source, dict) or not isinstance(target, dict):  # null in a list
                return False
            variables, places = source.get("env") or [], target.get("env") or []
            if len(variables) != len(places):
                return False
            for variable, place in zip(variables, places):
                if _has_free_value(variable):
                    place["value"] = variable["value"]
    return True


def _pods() -> ResourceType:
    row = find_resource_type("", "Pod")
    assert row is not None
    return row


@lru_cache(maxsize=MAX_CACHED_SHAPES)
def _prepared(shape: bytes) -> tuple[bytes, tuple[str, ...], str]:
    pod: JSON = {"apiVersion": "v1", "kind": "Pod", "metadata": {}, "spec": msgspec.json.decode(shape)}
    unknown = prune_core(_pods(), pod)
    check_types(_pods(), pod)
    apply_core_defaults(_pods(), pod)
    quality = quality_of_service(read_resources(pod["spec"]))
    return msgspec.json.encode(pod["spec"]), tuple(unknown), quality


@lru_cache(maxsize=MAX_CACHED_SHAPES)
def _errors(shape: bytes) -> tuple[FieldError, ...]:
    return tuple(validate_pod_spec(msgspec.json.decode(shape), "spec"))
