"""rescheduling: pods are moved from busy nodes while others idle; the shuffle action evicts the tasks it names."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from volcano.api.pods.quality import CLASSES, quality_of_service
from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, MEMORY, Node, Status, Task

LOW_NODE_UTILIZATION: Final = "lowNodeUtilization"
MEASURED: Final = (CPU, MEMORY)
PLACED_THIS_CYCLE: Final = (Status.ALLOCATED, Status.PIPELINED, Status.BINDING)
"""Tasks that do not run yet: moving them would free nothing of what was measured."""
LAST_RUN: Final = "last run"


@dataclass(slots=True, frozen=True)
class Thresholds:
    """In percent of what a node has, by resource."""

    idle: Mapping[str, int]  # a node below all of these may take more
    target: Mapping[str, int]  # a node above one of these is too busy


class Rescheduling(Plugin):
    name = "rescheduling"
    argument_names = frozenset({"interval", "metricsPeriod", "strategies"})

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        interval = option.arguments.duration("interval")
        self._interval = interval if interval is not None and interval > timedelta(0) else timedelta(minutes=5)
        self._strategies = _strategies(option.arguments.get("strategies"))

    def open(self, session: Session) -> None:
        """The first interval begins with the first cycle."""
        super().open(session)
        session.record.needs_another_cycle = True
        session.snapshot.memory.setdefault(self.name, {}).setdefault(LAST_RUN, session.now.isoformat())

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        memory, now = self.session.snapshot.memory[self.name], self.session.now
        if datetime.fromisoformat(memory[LAST_RUN]) + self._interval >= now:
            return []
        memory[LAST_RUN] = now.isoformat()
        offered = {task.uid for task in tasks}
        named: dict[str, Task] = {}
        for thresholds in self._strategies:
            named |= {task.uid: task for task in self._to_move(thresholds) if task.uid in offered}
        return list(named.values())

    def _to_move(self, thresholds: Thresholds) -> list[Task]:
        """From the busiest nodes, the least important first, as long as idle nodes have room for them."""
        measured = [node for node in self.session.table.nodes if node.usage.measured is not None]
        idle = [node for node in measured if not node.unschedulable and _is_idle(node, thresholds)]
        busy = [node for node in measured if not _is_idle(node, thresholds) and _is_busy(_usage(node), thresholds)]
        room = {name: sum(_spare(node, name, thresholds) for node in idle) for name in MEASURED}
        victims: list[Task] = []
        for node in sorted(busy, key=lambda node: (-sum(_usage(node).values()), node.name)) if idle else ():
            usage = _usage(node)
            present = (task for task in node.tasks.values() if task.status not in PLACED_THIS_CYCLE)
            for task in sorted(present, key=_importance):
                if not any(usage[name] >= thresholds.target[name] for name in MEASURED) or min(room.values()) <= 0:
                    break
                for name in MEASURED:
                    room[name] -= int(task.request[name])
                    usage[name] -= task.request[name] * 100 / max(node.capacity[name], 1.0)
                victims.append(task)
        return victims


def _usage(node: Node) -> dict[str, float]:
    return {CPU: node.usage.cpu, MEMORY: node.usage.memory}


def _is_idle(node: Node, thresholds: Thresholds) -> bool:
    usage = _usage(node)
    return all(usage[name] < thresholds.idle[name] for name in MEASURED)


def _is_busy(usage: Mapping[str, float], thresholds: Thresholds) -> bool:
    return any(usage[name] > thresholds.target[name] for name in MEASURED)


def _spare(node: Node, name: str, thresholds: Thresholds) -> int:
    whole = node.allocatable[name] or node.capacity[name]
    return int(whole * (thresholds.target[name] - _usage(node)[name]) / 100)


def _importance(task: Task) -> tuple[float, int, str]:
    priority = task.pod.spec.priority
    return -float("inf") if priority is None else priority, CLASSES.index(quality_of_service(task.pod.spec)), task.uid


# -- arguments ---------------------------------------------------------------------------------------------------------
def _strategies(stated: Any) -> list[Thresholds]:
    """Those listed that are known; without a list, the only one there is."""
    listed = stated if isinstance(stated, list) else [{"name": LOW_NODE_UTILIZATION}]
    return [
        _thresholds(entry.get("params"))
        for entry in listed
        if isinstance(entry, Mapping) and entry.get("name") == LOW_NODE_UTILIZATION
    ]


def _thresholds(stated: Any) -> Thresholds:
    params = stated if isinstance(stated, Mapping) else {}

    def percentages(key: str) -> dict[str, int]:
        found = params.get(key)
        read = Arguments(found if isinstance(found, Mapping) else {})
        return {name: read.integer(name, 100) for name in MEASURED}

    return Thresholds(percentages("thresholds"), percentages("targetThresholds"))
