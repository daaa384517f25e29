"""deviceshare: accelerator cards that several pods share, each with its part of memory and cores."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Task
from volcano.scheduler.plugins.deviceshare.family import Family
from volcano.scheduler.plugins.deviceshare.gpu_share import GpuShare
from volcano.scheduler.plugins.deviceshare.vgpu import VirtualGpus


class DeviceShare(Plugin):
    name = "deviceshare"
    argument_names = frozenset(
        {
            "deviceshare.GPUSharingEnable",
            "deviceshare.GPUNumberEnable",
            "deviceshare.VGPUEnable",
            "deviceshare.SchedulePolicy",
            "deviceshare.ScheduleWeight",
            "deviceshare.GPUExclusiveRules",
        }
    )

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        read = option.arguments
        policy = read.text("deviceshare.SchedulePolicy", "")
        self._weight = read.integer("deviceshare.ScheduleWeight", 0)
        self._families: list[Family] = []
        if read.flag("deviceshare.VGPUEnable", False):
            self._families.append(VirtualGpus(policy, _rules(read.get("deviceshare.GPUExclusiveRules"))))
        elif read.flag("deviceshare.GPUSharingEnable", False):
            self._families.append(GpuShare(by_number=False))
        elif read.flag("deviceshare.GPUNumberEnable", False):
            self._families.append(GpuShare(by_number=True))

    def open(self, session: Session) -> None:
        super().open(session)
        for family in self._families:
            family.open(session)

    def _asked(self, task: Task) -> Iterator[Family]:
        return (family for family in self._families if family.wants(task))

    def sharing_key(self, task: Task) -> Hashable:
        keys = [family.key(task) for family in self._asked(task)]
        return tuple(keys) if keys else None

    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        for family in self._asked(task):
            yield from family.causes(task, nodes)

    def node_score(self, task: Task, nodes: NodeView) -> Column:
        score = nodes.zeros()
        for family in self._asked(task) if self._weight > 0 else ():
            score += family.score(task, nodes) * self._weight
        return score

    def on_allocate(self, task: Task) -> str | None:
        objections = [family.allocate(task) for family in self._asked(task)]
        return next((objection for objection in objections if objection is not None), None)

    def on_deallocate(self, task: Task) -> None:
        for family in self._asked(task):
            family.release(task)


def _rules(stated: Any) -> tuple[Mapping[str, str], ...]:
    """Label maps; other list entries are ignored."""
    listed = stated if isinstance(stated, list) else []
    return tuple({str(k): str(v) for k, v in rule.items()} for rule in listed if isinstance(rule, Mapping) and rule)
