"""binpack: fill nodes one after another, each resource with a weight."""

from __future__ import annotations

from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import CPU, MEMORY, Task

FULL: Final = 100.0


class Binpack(Plugin):
    name = "binpack"
    argument_names = frozenset({"binpack.weight", "binpack.cpu", "binpack.memory", "binpack.resources"})
    argument_prefixes = ("binpack.resources.",)

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        read = option.arguments.integer
        self._weight = read("binpack.weight", 1)
        listed = option.arguments.text("binpack.resources", "").split(",")
        names = [name.strip() for name in listed if name.strip()]
        weights = {name: read(f"binpack.resources.{name}", 1) for name in names}
        weights |= {CPU: read("binpack.cpu", 1), MEMORY: read("binpack.memory", 1)}
        self._weights = {name: 1 if weight < 0 else weight for name, weight in weights.items()}

    def node_score(self, task: Task, nodes: NodeView) -> Column:
        weights = {name: self._weights[name] for name in task.request.names if name in self._weights}
        total = sum(weights.values())
        if not self._weight or not total:
            return nodes.zeros()
        score, fits = nodes.zeros(), nodes.all()
        for name, weight in weights.items():
            if not weight:
                continue
            capacity = nodes.allocatable[name]
            filled = nodes.used[name] + task.request[name]
            exists = capacity != 0.0
            fits &= (filled <= capacity) | ~exists
            score += np.divide(filled * weight, capacity, out=nodes.zeros(), where=exists)
        return np.where(fits, score / total * (FULL * self._weight), 0.0)
