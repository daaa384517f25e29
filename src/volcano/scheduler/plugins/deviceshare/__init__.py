"""deviceshare: accelerator cards that several pods share, each with its part of memory and cores."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any, Final

import msgspec

from volcano.api.device_families import GPU_COUNT, GPU_SHARE, NPU_CHIPS, RINGS, VENDORS, DeviceFamily
from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Task
from volcano.scheduler.plugins.deviceshare.device_config import DeviceConfig, InvalidDeviceConfig, device_config
from volcano.scheduler.plugins.deviceshare.family import CardFamily

RING_WORD: Final = "ascend-rings"
"""Of deviceshare.Families: whole Ascend cards within an HCCS ring."""


class DeviceShare(Plugin):
    name = "deviceshare"
    argument_names = frozenset(
        {
            "deviceshare.GPUSharingEnable",
            "deviceshare.GPUNumberEnable",
            "deviceshare.VGPUEnable",
            "deviceshare.AscendMindClusterVNPUEnable",
            "deviceshare.AscendHAMiVNPUEnable",
            "deviceshare.Families",
            "deviceshare.DeviceConfig",
            "deviceshare.NodeLockEnable",
            "deviceshare.SchedulePolicy",
            "deviceshare.ScheduleWeight",
            "deviceshare.GPUExclusiveRules",
        }
    )

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        read = option.arguments
        self._policy = read.text("deviceshare.SchedulePolicy", "")
        self._weight = read.integer("deviceshare.ScheduleWeight", 0)
        self._takes_locks = read.flag("deviceshare.NodeLockEnable", False)
        self._rules = _rules(read.get("deviceshare.GPUExclusiveRules"))
        self._families: list[CardFamily] = []

    def open(self, session: Session) -> None:
        super().open(session)
        config = self._config()
        for family in self._described(config):
            rules = self._rules if family == config.vgpu else ()
            entry = CardFamily(family, self._policy, rules, takes_locks=self._takes_locks)
            entry.open(session)
            self._families.append(entry)
        uncounted = {name for entry in self._families for name in entry.family.uncounted_names}
        session.table.uncounted |= uncounted - session.total.amounts.keys()

    def _config(self) -> DeviceConfig:
        """What the arguments say; what cannot be read is as if absent."""
        stated = self.arguments.get("deviceshare.DeviceConfig")
        try:
            text = stated if isinstance(stated, str) else msgspec.json.encode(stated or {}).decode()  # YAML too
            return device_config(text)
        except (InvalidDeviceConfig, TypeError):
            return DeviceConfig()

    def _described(self, config: DeviceConfig) -> Iterator[DeviceFamily]:
        read = self.arguments
        if read.flag("deviceshare.VGPUEnable", False):
            yield config.vgpu
        elif read.flag("deviceshare.GPUSharingEnable", False):
            yield GPU_SHARE
        elif read.flag("deviceshare.GPUNumberEnable", False):
            yield GPU_COUNT
        if read.flag("deviceshare.AscendHAMiVNPUEnable", False):
            yield from config.ascend
        if read.flag("deviceshare.AscendMindClusterVNPUEnable", False):
            yield NPU_CHIPS
        named = {part.strip() for part in read.text("deviceshare.Families", "").split(",")}
        yield from (family for name, family in zip(VENDORS, config.vendors, strict=True) if name in named)
        if RING_WORD in named:
            yield from RINGS

    def close(self, session: Session) -> None:
        for uid in session.record.binds if self._takes_locks else ():
            task = session.snapshot.tasks.get(uid)
            locks = [lock for family in self._asked(task) if (lock := family.lock_for(task))] if task else []
            if locks:
                session.record.node_locks[uid] = locks[0]
        if any(family.waits_for_locks for family in self._families):
            session.record.needs_another_cycle = True

    def _asked(self, task: Task) -> Iterator[CardFamily]:
        return (family for family in self._families if family.wants(task))

    def sharing_key(self, task: Task) -> Hashable:
        keys = [family.key(task) for family in self._families if family.concerns(task)]
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
