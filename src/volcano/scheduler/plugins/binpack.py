"""binpack: fill nodes one after another, each resource with a weight.

With `binpack.accelerators`, and if nodes have any, the best fit counts instead: what would stay free, measured by the
largest node, with that weight for accelerators. It also holds for pods that ask for none, so that they do not take the
cpus that free accelerators need.
"""

from __future__ import annotations

from functools import cached_property
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import CPU, MEMORY, Task
from volcano.scheduler.model.resources import is_accelerator

FULL: Final = 100.0


class Binpack(Plugin):
    name = "binpack"
    argument_names = frozenset(
        {"binpack.weight", "binpack.cpu", "binpack.memory", "binpack.resources", "binpack.accelerators"}
    )
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

        self._accelerator_weight = max(read("binpack.accelerators", 0), 0)

    @cached_property
    def _largest(self) -> dict[str, float]:
        """What the largest node has of each resource that counts for the best fit; nothing without accelerators."""
        table = self.session.table
        largest = {name: float(table.allocatable[place].max(initial=0.0)) for name, place in table.resources.items()}
        if not any(amount > 0.0 for name, amount in largest.items() if is_accelerator(name)):
            return {}
        return {
            name: amount
            for name, amount in largest.items()
            if amount > 0.0 and (name in self._weights or is_accelerator(name))
        }

    def node_score(self, task: Task, nodes: NodeView) -> Column:
        if self._accelerator_weight and self._weight and self._largest:
            return self._best_fit(task, nodes)
        return self._fullest(task, nodes)

    def _best_fit(self, task: Task, nodes: NodeView) -> Column:
        score, total = nodes.zeros(), 0.0
        for name, most in self._largest.items():
            weight = self._weights.get(name, self._accelerator_weight)
            score += weight * (1.0 - (nodes.idle[name] - task.request[name]) / most)
            total += weight
        return score / max(total, 1.0) * (FULL * self._weight)

    def _fullest(self, task: Task, nodes: NodeView) -> Column:
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
