"""The earliest time at which a gang fits, on which nodes, and what is left there for others.

Running tasks only leave as time passes, so what fits at one time fits at every later one: a binary search over the
expected ends finds the first. Nodes that are busy now are taken first, which leaves the idle ones to others.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask, NodeTable
from volcano.scheduler.plugins.easy.forecast import Releases

TOLERANCE = 1e-6


@dataclass(slots=True, frozen=True, eq=False)
class Demand:
    """So many tasks of one shape: what each requests and which nodes may take it."""

    count: int
    request: Column  # over the table's resources
    nodes: Mask


@dataclass(slots=True, frozen=True, eq=False)
class GangFit:
    """A gang fits `seconds` from now: what it takes on each node, and what is left for others at that time."""

    seconds: float
    taken: Column  # resources × nodes
    spare: Column  # resources × nodes


def earliest_fit(table: NodeTable, free: Column, releases: Releases, demands: Sequence[Demand]) -> GangFit | None:
    """The first expected end after which the demands fit; None when they never do.

    `free` (resources × nodes) is what is free now and not reserved for others.
    """
    busy = np.zeros(len(table), dtype=bool)
    busy[releases.rows] = True
    times = np.unique(releases.seconds)
    low, high = 0, len(times)
    best: GangFit | None = None
    while low <= high:
        middle = (low + high) // 2
        seconds = float(times[middle - 1]) if middle else 0.0
        fit = _fit_at(free, releases, demands, busy, seconds)
        if fit is not None:
            best, high = fit, middle - 1
        else:
            low = middle + 1
    return best


def fits_now(free: Column, demands: Sequence[Demand]) -> bool:
    """Whether the nodes have room for the demands at once, as far as amounts go."""
    taken = np.zeros_like(free)
    for demand in demands:
        counts = _copies_per_node(free - taken, demand)
        if int(counts.sum()) < demand.count:
            return False
        if len(demands) > 1:
            taken += demand.request[:, None] * _choose(counts, demand.count, np.zeros(free.shape[1], dtype=bool))
    return True


def _fit_at(free: Column, releases: Releases, demands: Sequence[Demand], busy: Mask, seconds: float) -> GangFit | None:
    until = int(np.searchsorted(releases.seconds, seconds, side="right"))
    room = free.copy()
    np.add.at(room.T, releases.rows[:until], releases.amounts[:until])
    taken = np.zeros_like(room)
    for demand in demands:
        counts = _copies_per_node(room - taken, demand)
        if int(counts.sum()) < demand.count:
            return None
        taken += demand.request[:, None] * _choose(counts, demand.count, busy)[None, :]
    return GangFit(seconds, taken, room - taken)


def _copies_per_node(room: Column, demand: Demand) -> Column:
    """How many such tasks each node would take."""
    asked = demand.request > 0.0
    if not asked.any():
        return np.where(demand.nodes, float(demand.count), 0.0)
    copies = np.floor((room[asked] + TOLERANCE) / demand.request[asked][:, None]).min(axis=0)
    return np.where(demand.nodes, np.clip(copies, 0.0, float(demand.count)), 0.0)


def _choose(counts: Column, wanted: int, busy: Mask) -> Column:
    """So many of these, from nodes that are busy now before idle ones."""
    order = np.argsort(~busy, kind="stable")
    ordered = counts[order]
    before = np.concatenate(([0.0], np.cumsum(ordered)[:-1]))
    chosen = np.zeros_like(counts)
    chosen[order] = np.clip(wanted - before, 0.0, ordered)
    return chosen
