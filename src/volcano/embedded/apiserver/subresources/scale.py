"""scale: a workload's number of replicas, as autoscaling/v1 Scale whatever the kind calls it."""

from __future__ import annotations

import contextlib
from typing import Any, Final

import msgspec

from volcano.api.errors import BadRequest, FieldError, Invalid
from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.api.selectors import labels_selector, selector_from
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.schemas.builtin.fitting import fits
from volcano.embedded.apiserver.schemas.builtin.strict_fields import check_types
from volcano.embedded.apiserver.verbs.conversion import in_asked_version
from volcano.embedded.apiserver.verbs.patch import patched
from volcano.embedded.apiserver.verbs.update import given_object
from volcano.embedded.apiserver.verbs.writing import update_object
from volcano.embedded.apiserver.wire.representation import reply
from volcano.embedded.apiserver.wire.requests import write_options
from volcano.machinery.transport import Response

SCALE: Final = ResourceType("autoscaling", "v1", "Scale", "scales")


async def scale(call: Call) -> Response:
    if call.target.verb == "get":
        stored = await in_asked_version(call, call.found())
        return reply(_scale_of(call, call.strategy.from_stored(msgspec.json.decode(stored.raw))))
    options = write_options(call.request)

    def change(obj: JSON) -> JSON:
        current = _scale_of(call, obj)
        wanted = given_object(call) if call.target.verb == "update" else patched(call, current, options)
        if not fits(SCALE, wanted):
            check_types(SCALE, wanted)
        replicas = (wanted.get("spec") or {}).get("replicas", 0)
        version = (wanted.get("metadata") or {}).get("resourceVersion")
        if version:
            obj["metadata"]["resourceVersion"] = version
        if not isinstance(replicas, int) or isinstance(replicas, bool):
            raise BadRequest("Scale: spec.replicas must be an integer")
        if replicas < 0:
            error = FieldError("spec.replicas", f"Invalid value: {replicas}: must be greater than or equal to 0")
            raise Invalid.of("Scale", call.target.name, [error], "autoscaling")
        _put(obj, _paths(call)[0], replicas)
        return obj

    _, obj = await update_object(call, change, options, subresource="scale")
    return reply(_scale_of(call, obj), 200, call.warnings)


def _paths(call: Call) -> tuple[str, str, str]:
    """Where this kind keeps the wanted replicas, the actual ones, and its selector."""
    rule = call.served.scale
    if rule is None:
        return ".spec.replicas", ".status.replicas", ".spec.selector"
    return rule["specReplicasPath"], rule["statusReplicasPath"], rule.get("labelSelectorPath") or ""


def _scale_of(call: Call, obj: JSON) -> JSON:
    wanted, actual, selector = _paths(call)
    metadata = obj["metadata"]
    status: JSON = {"replicas": _number(_find(obj, actual))}
    labels = _find(obj, selector) if selector else None
    if isinstance(labels, str):
        status["selector"] = labels
    elif isinstance(labels, dict):
        has_parts = {"matchLabels", "matchExpressions"} & labels.keys()
        with contextlib.suppress(msgspec.ValidationError):  # a custom object may have anything there
            status["selector"] = str(selector_from(labels) if has_parts else labels_selector(labels))
    kept = ("name", "namespace", "uid", "resourceVersion", "creationTimestamp")
    return {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {field: metadata[field] for field in kept if field in metadata},
        "spec": {"replicas": _number(_find(obj, wanted))},
        "status": status,
    }


def _find(obj: JSON, path: str) -> Any:
    found: Any = obj
    for part in path.strip(".").split("."):
        found = found.get(part) if isinstance(found, dict) else None
    return found


def _number(found: Any) -> int:
    return found if isinstance(found, int) else 0


def _put(obj: JSON, path: str, value: int) -> None:
    *parents, last = path.strip(".").split(".")
    for part in parents:
        if obj.get(part) is None:
            obj[part] = {}
        obj = obj[part]
        if not isinstance(obj, dict):
            raise BadRequest(f"Scale: {path}: {part} of the scaled object is not an object")
    obj[last] = value
