"""managedFields: who wrote which field, kept true on every write; and server-side apply's own step.

The rules are apiserver.schemas.apply; here they meet requests. Pods of one shape are worked out once.
"""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from volcano.api.errors import BadRequest
from volcano.api.meta import JSON
from volcano.api.openapi_table import schema_name
from volcano.api.times import timestamp
from volcano.embedded.apiserver.kinds.pod_shapes import pod_shape
from volcano.embedded.apiserver.registry.resources import Served
from volcano.embedded.apiserver.schemas.apply.merge import apply_patch, track_update
from volcano.embedded.apiserver.schemas.apply.typed_values import TypedError

_EPOCH = datetime.fromisoformat("2026-01-01T00:00:00+00:00")


def track(served: Served, old: JSON | None, new: JSON, *, manager: str, now: datetime, subresource: str = "") -> JSON:
    """The new object with its managedFields."""
    if old is None and served.storage == "pods":
        return _tracked_pod(new, manager, now)
    return track_update(old, new, manager=manager, schema=_schema(served), now=now, subresource=subresource)


def applied(
    served: Served, live: JSON | None, given: JSON, *, manager: str, force: bool, now: datetime, subresource: str = ""
) -> JSON:
    """The object after an apply. A plain apply says nothing of status, one of status nothing of the rest."""
    if subresource:
        ignored = [field for field in given if field not in ("apiVersion", "kind", "metadata", subresource)]
    else:
        ignored = ["status"] if served.type.has_status else []
    try:
        return apply_patch(
            live,
            given,
            manager=manager,
            force=force,
            schema=_schema(served),
            now=now,
            subresource=subresource,
            ignored=ignored,
        )
    except TypedError as error:  # the stored object itself does not fit its schema
        raise BadRequest(f"failed to create typed live object: {error}") from error


def _schema(served: Served) -> Any:
    if served.is_custom:
        return served.schema
    return schema_name(served.type.group, served.type.version, served.type.kind)


def _tracked_pod(pod: JSON, manager: str, now: datetime) -> JSON:
    """Which fields a new pod has is the same for all pods of its shape; only the time differs."""
    metadata = pod["metadata"]
    frame = {
        "metadata": {
            "labels": dict.fromkeys(metadata.get("labels") or {}, ""),
            "annotations": dict.fromkeys(metadata.get("annotations") or {}, ""),
            "ownerReferences": metadata.get("ownerReferences") or [],
            "finalizers": metadata.get("finalizers") or [],
            "generateName": "a" if metadata.get("generateName") else "",
        },
        "status": pod.get("status") or {},
    }
    entries = _entries_of_pod(pod_shape(pod.get("spec")), msgspec.json.encode(frame), manager)
    moment = timestamp(now)
    kept = {field: value for field, value in metadata.items() if field != "managedFields"}
    if entries:
        kept["managedFields"] = [{**entry, "time": moment} for entry in entries]
    return {**pod, "metadata": kept}


@lru_cache(maxsize=1024)
def _entries_of_pod(shape: bytes, frame: bytes, manager: str) -> tuple[JSON, ...]:
    pod = {"apiVersion": "v1", "kind": "Pod", **msgspec.json.decode(frame), "spec": msgspec.json.decode(shape)}
    pod["metadata"] = {field: value for field, value in pod["metadata"].items() if value}
    tracked = track_update(None, pod, manager=manager, schema="io.k8s.api.core.v1.Pod", now=_EPOCH)
    return tuple(tracked["metadata"].get("managedFields") or ())
