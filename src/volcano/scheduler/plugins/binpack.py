"""binpack: fill nodes one after another, each resource with a weight.

If nodes have accelerators, these decide between nodes that are equal otherwise: the node where fewer would stay free is
taken, also by pods that ask for none, so that they do not take the cpus that free accelerators need. With
`binpack.accelerators` the best fit counts instead of all that: what would stay free, measured by the largest node, with
that weight for accelerators.
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
TIE: Final = 5e-7
"""What accelerators count by default: less than any difference of cpu or memory, so that scores are Volcano's."""


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

        self._counts_by_default = option.arguments.get("binpack.accelerators") is None
        self._accelerator_weight = 0 if self._counts_by_default else max(read("binpack.accelerators", 0), 0)

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

    @cached_property
    def _accelerators(self) -> list[str]:
        return [name for name in self._largest if is_accelerator(name)]

    def node_score(self, task: Task, nodes: NodeView) -> Column:
        if self._accelerator_weight and self._weight and self._largest:
            return self._best_fit(task, nodes)
        score = self._fullest(task, nodes)
        if self._counts_by_default and self._weight and self._largest:
            score = score + TIE * self._few_accelerators_left(task, nodes)
        return score

    def _few_accelerators_left(self, task: Task, nodes: NodeView) -> Column:
        """From 0 to 1: the fewer accelerators stay free, measured by the largest node, the more."""
        names, left = self._accelerators, None
        for name in names:
            part = (nodes.idle[name] - task.request[name]) / self._largest[name]
            left = part if left is None else left + part
        assert left is not None  # `_largest` is empty without accelerators
        if len(names) > 1:
            left /= len(names)
        column: Column = np.subtract(1.0, left, out=left)
        np.maximum(column, 0.0, out=column)
        return np.minimum(column, 1.0, out=column)

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
        if list(weights) == [CPU, MEMORY] and all(w and nodes.all_have(name) for name, w in weights.items()):
            return self._fullest_of_both(nodes, weights[CPU], weights[MEMORY])
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

    def _fullest_of_both(self, nodes: NodeView, cpu: int, memory: int) -> Column:
        """The same for cpu and memory where every node has both, which is quicker; with their weights."""
        capacity, filled = nodes.cpu_and_memory("allocatable"), nodes.cpu_and_memory("used", more=1)
        fits = filled <= capacity
        if cpu != 1 or memory != 1:
            filled = filled * np.array([[float(cpu)], [float(memory)]])
        shares = filled / capacity
        score = shares[0] + shares[1]
        score /= cpu + memory
        score *= FULL * self._weight
        return np.where(fits[0] & fits[1], score, 0.0)
