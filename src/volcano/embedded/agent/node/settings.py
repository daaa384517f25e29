"""The settings of an agent's nodes: names, capacity, labels, lease times. Immutable after parsing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from volcano.api.meta import JSON

SIMULATED_CAPACITY: Final[Mapping[str, str]] = {"cpu": "32", "memory": "256Gi", "pods": "110"}


@dataclass(frozen=True, slots=True)
class NodeShape:
    """One node to register. `body` is the Node object of a nodes file, on which the rest is laid, if there is one."""

    name: str
    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[JSON, ...] = ()
    body: JSON | None = None
    allocatable: Mapping[str, str] = field(default_factory=dict)  # what differs from the capacity


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The nodes of one agent and the settings they share."""

    nodes: tuple[NodeShape, ...]
    address: str = "127.0.0.1"
    kubelet_port: int = 0  # 0: logs and exec are not served
    lease_duration: timedelta = timedelta(seconds=40)
    lease_renewal: timedelta = timedelta(seconds=10)
    conditions: tuple[tuple[str, str, str], ...] = ()  # further node conditions: type, reason, message


def simulated_nodes(
    count: int,
    *,
    capacity: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    prefix: str = "sim",
) -> NodeSettings:
    """Nodes whose pods are simulated; their leases last long, so that thousands of nodes cost few writes."""
    shape = {**SIMULATED_CAPACITY, **(capacity or {})}
    shapes = tuple(
        NodeShape(f"{prefix}-{index}", shape, {"type": "simulated", **(labels or {})}) for index in range(count)
    )
    return NodeSettings(shapes, lease_duration=timedelta(minutes=5), lease_renewal=timedelta(seconds=100))
