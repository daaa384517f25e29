"""resource-strategy-fit: each resource is spread or packed by its own strategy; scarce ones are reserved."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause, Code
from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, MEMORY, Status, Task

FULL: Final = 100.0
MOST: Final = "MostAllocated"
LEAST: Final = "LeastAllocated"
TYPE_KEY: Final = "volcano.sh/resource-strategy-scoring-type"
WEIGHT_KEY: Final = "volcano.sh/resource-strategy-weight"
BYTES_PER_MILLI: Final = 1e6


@dataclass(slots=True, frozen=True)
class ResourceStrategy:
    type: str = LEAST
    weight: int = 1


@dataclass(slots=True, frozen=True)
class Scarce:
    """Nodes that have these resources are left to tasks that ask for them."""

    weights: Mapping[str, int] = field(default_factory=dict)
    weight: int = 0


@dataclass(slots=True, frozen=True)
class Reserved:
    """For every free unit of a resource, cpu and memory that others must leave free beside it."""

    rates: Mapping[str, tuple[float, float]] = field(default_factory=dict)  # of cpu and of memory


class ResourceStrategyFit(Plugin):
    name = "resource-strategy-fit"
    argument_names = frozenset({"resourceStrategyFitWeight", "resources", "sra", "proportional"})

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        arguments = _folded(option.arguments)
        weight = arguments.integer("resourcestrategyfitweight", -1)
        self._weight = weight if weight >= 0 else 10
        self._strategies = _strategies(arguments.get("resources"))
        self._scarce = _scarce(_folded(arguments.get("sra")))
        self._reserved = _reserved(_folded(arguments.get("proportional")))

    def open(self, session: Session) -> None:
        super().open(session)
        waiting = (task for job in session.waiting for task in job.by_status[Status.PENDING].values())
        self._some_differ = any(TYPE_KEY in task.pod.annotations for task in waiting)

    def sharing_key(self, task: Task) -> tuple[str, str] | None:
        if not self._some_differ:
            return None
        annotations = task.pod.annotations
        return annotations.get(TYPE_KEY, ""), annotations.get(WEIGHT_KEY, "")

    # -- scores ----------------------------------------------------------------------------------------------------
    def node_score(self, task: Task, nodes: NodeView) -> Column:
        score = nodes.zeros()
        if self._weight > 0:
            score += self._fit(task, nodes)
        if self._scarce.weight > 0 and self._scarce.weights:
            score += self._avoidance(task, nodes)
        return score

    def _fit(self, task: Task, nodes: NodeView) -> Column:
        strategies = self._strategies_of(task)
        total = sum(asked.weight for asked in strategies.values())
        if total <= 0:
            return nodes.zeros()
        score, fits = nodes.zeros(), nodes.all()
        for name, asked in strategies.items():
            capacity = nodes.allocatable[name]
            exists = capacity > 0.0
            if not asked.weight:
                continue
            filled = nodes.used[name] + task.request[name]
            fits &= (filled <= capacity) | ~exists
            if asked.type in (MOST, LEAST):
                part = filled if asked.type == MOST else capacity - filled
                score += np.divide(part * asked.weight, capacity, out=nodes.zeros(), where=exists)
        return np.where(fits, score / total * (FULL * self._weight), 0.0)

    def _strategies_of(self, task: Task) -> dict[str, ResourceStrategy]:
        """For each requested resource: the strategy of the pod's annotations, or the configured one."""
        stated = task.pod.annotations.get(TYPE_KEY)
        if stated is not None:
            weights = _weights_from(task.pod.annotations.get(WEIGHT_KEY, ""))
            return {name: ResourceStrategy(stated, weights[name]) for name in task.request.names if name in weights}
        found = {name: self._strategy_for(name) for name in task.request.names}
        return {name: asked for name, asked in found.items() if asked is not None}

    def _strategy_for(self, name: str) -> ResourceStrategy | None:
        exact = self._strategies.get(name)
        if exact is not None:
            return exact
        patterns = [key for key in self._strategies if key.endswith("*") and name.startswith(key[:-1])]
        return self._strategies[max(patterns, key=len)] if patterns else None

    def _avoidance(self, task: Task, nodes: NodeView) -> Column:
        possible, present = nodes.all(), nodes.zeros()
        for name in task.request.names:
            possible &= nodes.allocatable[name] > 0.0
        for name, weight in self._scarce.weights.items():
            present += weight * (nodes.allocatable[name] > 0.0)
        total = max(sum(self._scarce.weights.values()), 1)
        return np.where(possible, (1.0 - present / total) * (FULL * self._scarce.weight), 0.0)

    # -- reservation -----------------------------------------------------------------------------------------------
    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        rates = self._reserved.rates
        if not rates or any(task.request[name] > 0.0 for name in rates):
            return
        cpu, memory = nodes.idle[CPU] - task.request[CPU], nodes.idle[MEMORY] - task.request[MEMORY]
        told = nodes.none()
        for name, (cpu_rate, memory_rate) in rates.items():
            free = nodes.idle[name]
            short = (cpu < free * cpu_rate) | (memory < free * memory_rate * BYTES_PER_MILLI)
            refused = short & (nodes.allocatable[name] > 0.0) & ~told
            if refused.any():
                told |= refused
                yield Cause(refused, Code.UNRESOLVABLE, f"proportional of resource {name} check failed")


# -- arguments ---------------------------------------------------------------------------------------------------------
def _folded(stated: Any) -> Arguments:
    """A map whose keys may be spelt in any case; nothing when it is none."""
    return Arguments({str(key).lower(): value for key, value in stated.items()} if isinstance(stated, Mapping) else {})


def _strategies(stated: Any) -> dict[str, ResourceStrategy]:
    found: dict[str, ResourceStrategy] = {}
    for name, value in stated.items() if isinstance(stated, Mapping) else ():
        read = _folded(value)
        if str(name).strip("*") and str(name).count("*") <= (1 if str(name).endswith("*") else 0):
            weight, kind = read.integer("weight", 1), read.text("type", LEAST)
            found[str(name)] = ResourceStrategy(kind if kind in (MOST, LEAST) else LEAST, weight if weight > 0 else 1)
    return found if isinstance(stated, Mapping) and stated else {CPU: ResourceStrategy(), MEMORY: ResourceStrategy()}


def _listed(arguments: Arguments) -> list[str]:
    return [name.strip() for name in arguments.text("resources", "").split(",") if name.strip()]


def _scarce(arguments: Arguments) -> Scarce:
    if not arguments.flag("enable", False):
        return Scarce()
    stated = arguments.get("resourceweight")
    weights = Arguments({str(k): v for k, v in stated.items()} if isinstance(stated, Mapping) else {})
    chosen = {name: weights.integer(name, 1) for name in _listed(arguments)}
    return Scarce(
        {name: 1 if weight < 0 else weight for name, weight in chosen.items()}, arguments.integer("weight", 0)
    )


def _reserved(arguments: Arguments) -> Reserved:
    if not arguments.flag("enable", False):
        return Reserved()
    stated = arguments.get("resourceproportion")
    rates = Arguments({str(k): v for k, v in stated.items()} if isinstance(stated, Mapping) else {})

    def rate(key: str) -> float:
        value = rates.number(key, 1.0)
        return value if value >= 0.0 else 1.0

    return Reserved({name: (rate(f"{name}.cpu"), rate(f"{name}.memory")) for name in _listed(arguments)})


def _weights_from(text: str) -> dict[str, int]:
    try:
        stated = json.loads(text)
    except ValueError:
        return {}
    if not isinstance(stated, dict) or not all(isinstance(weight, int) for weight in stated.values()):
        return {}
    return stated
