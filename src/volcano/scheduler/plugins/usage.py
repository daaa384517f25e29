"""usage: keep away from hot nodes, by measured load plus an estimate for pods the measurement has not seen yet."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

import numpy as np

from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause, Code
from volcano.scheduler.framework.arguments import Arguments
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import CPU, MEMORY, Shape, Status, Task
from volcano.scheduler.model.durations import parse_duration
from volcano.scheduler.model.requests import limits_of

FRESH: Final = timedelta(minutes=5)
FULL: Final = 100.0
DEFAULT_INTERVAL: Final = timedelta(seconds=30)
HOT_CPU: Final = "the CPU load of the node exceeds the upper limit."
HOT_MEMORY: Final = "the memory load of the node exceeds the upper limit."


@dataclass(slots=True, frozen=True)
class Estimator:
    """How much of what a pod asks for it is believed to use."""

    request_ratio: float = 0.7
    burst_ratio: float = 0.0
    risk_threshold: float = 0.6
    risk_factor: float = 1.2
    best_effort_cpu: float = 250.0
    best_effort_memory: float = 200.0 * 2**20

    def amount(self, request: float, limit: float) -> tuple[float, float]:
        """What is expected without risk, and the most it can be."""
        most = limit if limit >= request and limit > 0.0 else request
        return request * self.request_ratio + (most - request) * self.burst_ratio, most

    def risk(self, load: Column) -> Column:
        return np.where(load >= self.risk_threshold, max(self.risk_factor, 1.0), 1.0)


class Usage(Plugin):
    name = "usage"
    argument_names = frozenset({"usage.weight", "cpu.weight", "memory.weight", "thresholds", "estimator"})

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        read = option.arguments
        self._weight = _not_negative(read, "usage.weight", 5)
        self._cpu_weight = _not_negative(read, "cpu.weight", 1)
        self._memory_weight = _not_negative(read, "memory.weight", 1)
        self._cpu_most = _threshold(_part(read, "thresholds"), "cpu")
        self._memory_most = _threshold(_part(read, "thresholds"), "mem")
        self._estimator = _estimator(_part(read, "estimator"))

    def open(self, session: Session) -> None:
        super().open(session)
        nodes = session.table.nodes
        measured = [node.usage.measured for node in nodes]
        self._fresh = np.array([at is not None and session.now - at <= FRESH for at in measured], dtype=bool)
        self._real = np.array([[node.usage.cpu for node in nodes], [node.usage.memory for node in nodes]]) / FULL
        self._capacity = np.array(
            [session.table.capacity[session.table.resources[name]] for name in (CPU, MEMORY)]
        ).reshape(2, len(nodes))
        self._shadow = np.zeros((2, len(nodes)))
        self._entries: dict[str, tuple[int, Column]] = {}
        self._amounts: dict[Shape, tuple[Column, Column]] = {}
        if self._fresh.any():
            self._warm_up(session)

    def _warm_up(self, session: Session) -> None:
        interval = parse_duration(session.config.metrics.get("interval", "")) or DEFAULT_INTERVAL
        for node in session.table.nodes:
            for task in node.tasks.values():
                started = task.pod.status.start_time
                young = started is None or session.now - started < interval
                on_its_way = task.status in (Status.ALLOCATED, Status.BINDING, Status.BOUND)
                if on_its_way or (task.status == Status.RUNNING and young):
                    self._enter(task)

    # -- answers -------------------------------------------------------------------------------------------------
    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        fresh = nodes.take(self._fresh)
        if not fresh.any():
            return
        hot = fresh & (nodes.take(self._real[0]) * FULL > self._cpu_most)
        heavy = fresh & ~hot & (nodes.take(self._real[1]) * FULL > self._memory_most)
        for refused, reason in ((hot, HOT_CPU), (heavy, HOT_MEMORY)):
            if refused.any():
                yield Cause(refused, Code.UNRESOLVABLE, reason)

    def node_score(self, task: Task, nodes: NodeView) -> Column:
        weights = self._cpu_weight + self._memory_weight
        fresh = nodes.take(self._fresh)
        if not weights or not fresh.any():
            return nodes.zeros()
        shadow = self._shadow[:, nodes.rows].copy()
        for copy in range(int(nodes.copies.max(initial=0))):
            shadow += np.where(nodes.copies > copy, self._estimate(task, nodes.rows, shadow), 0.0)
        cpu, memory = self._composite(nodes.rows, shadow)
        score = ((1.0 - cpu) * self._cpu_weight + (1.0 - memory) * self._memory_weight) / weights
        return np.where(fresh, score * FULL * self._weight, 0.0)

    def _composite(self, rows: np.ndarray, shadow: Column) -> Column:
        """Measured and expected load together, as a share of the capacity."""
        capacity = self._capacity[:, rows]
        exists = capacity > 0.0
        load = np.divide(self._real[:, rows] * capacity + shadow, capacity, out=np.zeros_like(capacity), where=exists)
        clipped: Column = np.clip(load, 0.0, 1.0)
        return clipped

    def _estimate(self, task: Task, rows: np.ndarray, shadow: Column) -> Column:
        weights = self._cpu_weight + self._memory_weight
        cpu, memory = self._composite(rows, shadow)
        load = (cpu * self._cpu_weight + memory * self._memory_weight) / weights if weights else cpu * 0.0
        expected, most = self._expected(task)
        return np.clip(expected[:, None] * self._estimator.risk(load)[None, :], 0.0, most[:, None])

    def _expected(self, task: Task) -> tuple[Column, Column]:
        """cpu and memory expected of a pod, and the most each can be."""
        found = self._amounts.get(task.shape)
        if found is None:
            estimator = self._estimator
            if task.best_effort:
                amounts = [(estimator.best_effort_cpu, np.inf), (estimator.best_effort_memory, np.inf)]
            else:
                limits = limits_of(task.pod)
                amounts = [estimator.amount(task.request[name], limits[name]) for name in (CPU, MEMORY)]
            found = np.array([a[0] for a in amounts]), np.array([a[1] for a in amounts])
            self._amounts[task.shape] = found
        return found

    # -- what happened -------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> None:
        self._leave(task)
        self._enter(task)

    def on_deallocate(self, task: Task) -> None:
        self._leave(task)

    def _enter(self, task: Task) -> None:
        row = self.session.table.index.get(task.node)
        if row is None:
            return
        rows = np.array([row], dtype=np.intp)
        amount = self._estimate(task, rows, self._shadow[:, rows])[:, 0]
        self._entries[task.uid] = (row, amount)
        self._shadow[:, row] += amount

    def _leave(self, task: Task) -> None:
        row, amount = self._entries.pop(task.uid, (-1, None))
        if amount is not None:
            self._shadow[:, row] = np.maximum(self._shadow[:, row] - amount, 0.0)


# -- arguments --------------------------------------------------------------------------------------------------
def _not_negative(arguments: Arguments, key: str, default: int) -> int:
    value = arguments.integer(key, default)
    return value if value >= 0 else default


def _part(arguments: Arguments, key: str) -> Arguments:
    value: Any = arguments.get(key)
    return Arguments({str(k): v for k, v in value.items()} if isinstance(value, dict) else {})


def _threshold(arguments: Arguments, key: str) -> float:
    value = arguments.integer(key, 80)
    return float(value if 0 <= value <= 100 else 80)


def _estimator(arguments: Arguments) -> Estimator:
    def ratio(key: str, default: float) -> float:
        value = arguments.number(key, default)
        return value if 0.0 <= value <= 1.0 else default

    factor = arguments.number("risk_factor", 1.2)
    return Estimator(
        ratio("request_ratio", 0.7),
        ratio("burst_ratio", 0.0),
        ratio("risk_threshold", 0.6),
        factor if factor >= 1.0 else 1.2,
        _best_effort(arguments, "be_cpu", default=250.0, unit=1.0, milli=True),
        _best_effort(arguments, "be_mem", default=200.0 * 2**20, unit=2.0**20, milli=False),
    )


def _best_effort(arguments: Arguments, key: str, *, default: float, unit: float, milli: bool) -> float:
    """A number counts milli-cores or mebibytes, a text is a quantity."""
    stated = arguments.get(key)
    if isinstance(stated, str):
        try:
            quantity = parse_quantity(stated)
        except QuantityError:
            return default
        value = float(quantity.milli if milli else quantity.value)
    else:
        value = arguments.integer(key, -1) * unit
    return value if value >= 0.0 else default
