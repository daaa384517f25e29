"""Scores of how full a node is: least, most and balanced allocation, with Kubernetes' integer arithmetic."""

from __future__ import annotations

from typing import Final

import numpy as np
import numpy.typing as npt

from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.model import CPU, MEMORY, Task

FULL: Final = 100
GPU: Final = "nvidia.com/gpu"
Whole = npt.NDArray[np.int64]


def least_allocated(task: Task, nodes: NodeView) -> Column:
    if nodes.all_have(CPU) and nodes.all_have(MEMORY):
        whole = nodes.cpu_and_memory("allocatable").astype(np.int64)
        share = nodes.cpu_and_memory("assumed", more=1).astype(np.int64)
        np.subtract(whole, share, out=share)
        np.maximum(share, 0, out=share)
        share *= FULL
        share //= whole
        mean: Column = ((share[0] + share[1]) // 2).astype(np.float64)
        return mean
    return _mean(_shares(task, nodes, filled=False), weight=50)


def most_allocated(task: Task, nodes: NodeView) -> Column:
    return _mean(_shares(task, nodes, filled=True), weight=1)


def _shares(task: Task, nodes: NodeView, *, filled: bool) -> list[tuple[Whole, Mask]]:
    """For cpu and memory: the percentage free (or filled) after the task came, and where the resource exists."""
    shape = task.shape
    found = []
    for capacity, used in (
        (nodes.allocatable[CPU], nodes.assumed_cpu + shape.assumed_cpu),
        (nodes.allocatable[MEMORY], nodes.assumed_memory + shape.assumed_memory),
    ):
        whole, asked = capacity.astype(np.int64), used.astype(np.int64)
        exists: Mask = whole != 0
        divisor = np.where(exists, whole, 1)
        if filled:
            share = np.minimum(asked, whole) * FULL // divisor
        else:
            share = np.maximum(whole - asked, 0) * FULL // divisor
        found.append((share, exists))
    return found


def _mean(shares: list[tuple[Whole, Mask]], *, weight: int) -> Column:
    total = sum(np.where(exists, share * weight, 0) for share, exists in shares)
    weights = sum(np.where(exists, weight, 0) for _, exists in shares)
    return np.asarray(total // np.maximum(weights, 1), dtype=np.float64)


def asks_anything(task: Task) -> bool:
    """Whether balance is a question at all."""
    return any(task.request[name] > 0.0 for name in (CPU, MEMORY, GPU))


def balanced_allocation(task: Task, nodes: NodeView) -> Column:
    """75 when the task changes nothing; more the more evenly it leaves cpu, memory and gpu filled."""
    names = [CPU, MEMORY, *([GPU] if task.request[GPU] > 0.0 else [])]
    if len(names) == 2 and nodes.all_have(CPU) and nodes.all_have(MEMORY):
        whole = nodes.cpu_and_memory("allocatable")
        filled = np.empty((2, *whole.shape))
        filled[0], filled[1] = nodes.cpu_and_memory("requested"), nodes.cpu_and_memory("requested", more=1)
        before, after = _pair_evenness(filled, whole)
        balance: Column = after - before
        balance += 50.0
        balance /= 2.0
        np.trunc(balance, out=balance)
        balance += 50.0
        return balance
    exists = [nodes.allocatable[name] != 0.0 for name in names]
    before = [_fraction(nodes, name, 0.0) for name in names]
    after = [_fraction(nodes, name, task.request[name]) for name in names]
    difference = _evenness(after, exists) - _evenness(before, exists)
    return 50.0 + np.trunc((50.0 + difference) / 2.0)


def _pair_evenness(filled: Column, whole: Column) -> Column:
    """The evenness of cpu and memory where every node has both; `filled` is overwritten."""
    filled /= whole
    np.minimum(filled, 1.0, out=filled)
    evenness: Column = filled[:, 0] - filled[:, 1]
    np.abs(evenness, out=evenness)
    evenness /= 2.0
    np.subtract(1.0, evenness, out=evenness)
    evenness *= FULL
    return np.trunc(evenness, out=evenness)


def _fraction(nodes: NodeView, name: str, more: float) -> Column:
    capacity = nodes.allocatable[name]
    filled: Column = np.divide(nodes.requested[name] + more, capacity, out=nodes.zeros(), where=capacity != 0.0)
    return np.minimum(filled, 1.0)


def _evenness(fractions: list[Column], exists: list[Mask]) -> Column:
    number = np.sum(exists, axis=0)
    if len(fractions) == 2:
        deviation = np.where(number == 2, np.abs(fractions[0] - fractions[1]) / 2.0, 0.0)
    else:
        deviation = _deviation(fractions, exists, number)
    return np.trunc((1.0 - deviation) * FULL)


def _deviation(fractions: list[Column], exists: list[Mask], number: Whole) -> Column:
    """The standard deviation of those that exist; of two, half their distance."""
    present = np.array(exists)
    values = np.where(present, np.array(fractions), 0.0)
    divisor = np.maximum(number, 1)
    mean = values.sum(axis=0) / divisor
    squares: Column = np.where(present, (values - mean) ** 2, 0.0).sum(axis=0) / divisor
    pair = np.abs(values.max(axis=0, where=present, initial=0.0) - values.min(axis=0, where=present, initial=1.0)) / 2.0
    return np.where(number > 2, np.sqrt(squares), np.where(number == 2, pair, 0.0))
