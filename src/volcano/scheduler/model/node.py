"""Node: what is true of one machine apart from amounts, which are columns of core.node_table."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from volcano.api.core import Node as ApiNode
from volcano.api.core import Taint
from volcano.api.topology import NumatopologySpec
from volcano.scheduler.model.resources import Resources
from volcano.scheduler.model.task import Task


@dataclass(slots=True, frozen=True)
class NodeUsage:
    """Measured load: ten-minute averages in percent, and when they were taken."""

    cpu: float = 0.0
    memory: float = 0.0
    measured: datetime | None = None


@dataclass(slots=True, eq=False)
class Node:
    name: str
    allocatable: Resources
    capacity: Resources
    labels: dict[str, str] = field(default_factory=dict)
    annotations: dict[str, str] = field(default_factory=dict)
    taints: tuple[Taint, ...] = ()
    unschedulable: bool = False
    images: dict[str, int] = field(default_factory=dict)  # image name → bytes
    revocable_zone: str = ""
    usage: NodeUsage = NodeUsage()
    numa: NumatopologySpec | None = None
    devices: dict[str, Any] = field(default_factory=dict)  # by device family, for device plugins
    offline_job_evicting: bool = False
    object: ApiNode | None = None
    row: int = -1  # its place in the node table
    tasks: dict[str, Task] = field(default_factory=dict)  # namespace/name → tasks that occupy or are promised room here

    @property
    def tasks_in_order(self) -> list[Task]:
        """The least important first, the later before the earlier: so victims are offered to plugins."""
        return sorted(self.tasks.values(), key=_standing, reverse=True)

    @property
    def present_tasks(self) -> list[Task]:
        """Tasks whose pods count for predicates: not those this session evicted."""
        return [task for task in self.tasks.values() if not task.evicted]

    def __repr__(self) -> str:
        return f"<Node {self.name}>"


def _standing(task: Task) -> tuple[int, int, datetime, str]:
    return (-task.priority, -1 if task.index is None else task.index, task.created, task.uid)
