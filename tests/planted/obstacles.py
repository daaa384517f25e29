"""Obstacles that end by themselves, put beside a planted cause that does not: the cause must still come first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.planted.causes import fill
from tests.planted.plain_cluster import GROUP, PlainCluster

GATE = {"name": "example.com/hold"}
HELD = "500"


def full(cluster: PlainCluster) -> None:
    """Jobs of others hold every cpu."""
    fill(cluster, 0, priority=100)


def gated(cluster: PlainCluster) -> None:
    """The job's pods have a scheduling gate that another program will lift."""
    for pod in _unplaced(cluster).values():
        pod["spec"].setdefault("schedulingGates", []).append(GATE)
    for task in cluster.jobs["demo"]["spec"]["tasks"]:
        task["template"]["spec"].setdefault("schedulingGates", []).append(GATE)


def quota_in_use(cluster: PlainCluster) -> None:
    """A quota that is large enough for the job, but that others use up; so its pods could not be created."""
    if cluster.every("ResourceQuota"):
        return
    cluster.put("ResourceQuota", {
        "metadata": {"name": "busy", "namespace": "default"}, "spec": {"hard": {"pods": HELD}},
        "status": {"hard": {"pods": HELD}, "used": {"pods": HELD}},
    })  # fmt: skip
    for key in _unplaced(cluster):
        del cluster.objects[key]


def _unplaced(cluster: PlainCluster) -> dict[tuple[str, str, str], dict[str, Any]]:
    return {
        key: body
        for key, body in cluster.objects.items()
        if key[0] == "Pod" and not body["spec"].get("nodeName")
        and (body["metadata"].get("annotations") or {}).get(GROUP) == "demo-group"
    }  # fmt: skip


OBSTACLES: tuple[Callable[[PlainCluster], None], ...] = (full, gated, quota_in_use)
