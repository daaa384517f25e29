"""A record of everything that happened to pods and jobs, read from the API server's audit log."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

from .control_plane import ControlPlane


def audited(plane: ControlPlane) -> Iterator[dict[str, Any]]:
    """Every request so far. The server is still writing, so a last line without its end is not read yet."""
    complete, _, _unfinished = plane.audit_log.read_text().rpartition("\n")
    yield from map(json.loads, complete.splitlines())


def requests(plane: ControlPlane, namespace: str) -> list[dict[str, Any]]:
    """What was asked and granted in a namespace."""
    found = []
    for entry in audited(plane):
        where = entry.get("objectRef", {})
        if where.get("namespace") == namespace and 200 <= entry.get("responseStatus", {}).get("code", 0) < 300:
            found.append(entry)
    return found


def binds(plane: ControlPlane, namespace: str) -> Counter[str]:
    """How often each pod was bound, by name."""
    return Counter(
        entry["objectRef"]["name"]
        for entry in requests(plane, namespace)
        if entry["verb"] == "create" and entry["objectRef"].get("subresource") == "binding"
    )


def creations(plane: ControlPlane, namespace: str) -> Counter[str]:
    """How often a pod of each name was created."""
    return Counter(
        entry["objectRef"].get("name", "")
        for entry in requests(plane, namespace)
        if entry["verb"] == "create"
        and entry["objectRef"]["resource"] == "pods"
        and not entry["objectRef"].get("subresource")
    )
