"""What an agent is told: its nodes, and how it presents them. Parsed once; nothing here changes later."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from volcano.api.meta import JSON

SIMULATED_CAPACITY: Final[Mapping[str, str]] = {"cpu": "32", "memory": "256Gi", "pods": "110"}


@dataclass(frozen=True, slots=True)
class NodeShape:
    """One node to register. `body` is a whole Node object to begin with (from a nodes file), if there is one."""

    name: str
    capacity: Mapping[str, str]
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)
    taints: tuple[JSON, ...] = ()
    body: JSON | None = None


@dataclass(frozen=True, slots=True)
class NodeSettings:
    """The nodes of one agent and what they have in common."""

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
    """Nodes that only pretend; their leases last long, so that thousands cost little."""
    shape = {**SIMULATED_CAPACITY, **(capacity or {})}
    shapes = tuple(
        NodeShape(f"{prefix}-{index}", shape, {"type": "simulated", **(labels or {})}) for index in range(count)
    )
    return NodeSettings(shapes, lease_duration=timedelta(minutes=5), lease_renewal=timedelta(seconds=100))
