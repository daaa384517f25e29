"""The earliest time at which a gang fits, on which nodes, and what is left there for others.

Running tasks only leave as time passes, so what fits at one time fits at every later one: a binary search over the
expected ends finds the first. Windows of Reservations divide the time into parts, and each is searched in turn. Nodes
that are busy now are taken first, which leaves the idle ones to others. A gang that must stay within a HyperNode is
sought in each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column, Rows
from volcano.scheduler.core.releases import Releases
from volcano.scheduler.framework.kept_room import Closure

TOLERANCE: Final = 1e-6


@dataclass(slots=True, frozen=True, eq=False)
class Demand:
    """So many tasks of one shape: what each requests, and from when each node may take one."""

    count: int
    request: Column  # over the table's resources
    opens: Column  # for each node, in seconds after now; infinite: never

    def among(self, rows: Rows) -> Demand:
        return Demand(self.count, self.request, self.opens[rows])


@dataclass(slots=True, frozen=True, eq=False)
class GangFit:
    """A gang fits `seconds` from now: what it takes on each node, and what is left for others at that time."""

    seconds: float
    taken: Column  # resources × nodes
    spare: Column  # resources × nodes


def earliest_fit(
    free: Column,
    releases: Releases,
    demands: Sequence[Demand],
    *,
    not_before: float = 0.0,
    domains: Sequence[Rows] | None = None,
    preferred: Rows | None = None,
    closures: Sequence[Closure] = (),
) -> GangFit | None:
    """The first time, not before the given one, at which the demands fit; None when they never do.

    `free` (resources × nodes) is what is free now and not reserved for others. With `domains` (rows of nodes), the
    gang must fit into one of them. Nodes are taken in this order: `preferred` ones, those busy now, idle ones. While
    a closure lasts, what it keeps is not there for the gang.
    """
    order = np.full(free.shape[1], 2.0)
    order[releases.rows] = 1.0
    if preferred is not None:
        order[preferred] = 0.0
    if domains is None:
        found = _search(free, releases, demands, order, not_before, closures)
        return None if found is None else _whole(free, releases, *found)
    best: tuple[float, Column] | None = None
    for rows in domains:
        inside = releases.among(rows, free.shape[1])
        shut = [Closure(each.begin, each.end, each.kept[:, rows]) for each in closures]
        part = _search(free[:, rows], inside, [d.among(rows) for d in demands], order[rows], not_before, shut)
        if part is not None and (best is None or part[0] < best[0]):
            taken = np.zeros_like(free)
            taken[:, rows] = part[1]
            best = (part[0], taken)
    return None if best is None else _whole(free, releases, *best)


def fits_now(free: Column, demands: Sequence[Demand]) -> bool:
    """Whether the nodes have room for the demands at once, as far as amounts go."""
    taken = np.zeros_like(free)
    for demand in demands:
        counts = _copies_per_node(free - taken, demand, 0.0)
        if int(counts.sum()) < demand.count:
            return False
        if len(demands) > 1:
            taken += demand.request[:, None] * _choose(counts, demand.count, np.zeros(free.shape[1]))
    return True


def _search(
    free: Column,
    releases: Releases,
    demands: Sequence[Demand],
    order: Column,
    not_before: float,
    closures: Sequence[Closure],
) -> tuple[float, Column] | None:
    """The time, and what is taken on each node."""
    if not np.isfinite(not_before):
        return None
    if not closures:
        return _search_part(free, releases, demands, order, not_before, float("inf"))
    # A gang may start just when a closure begins: it then ends just when the window begins.
    limits = {limit for each in closures for limit in (each.begin + 2 * TOLERANCE, each.end)}
    begin = not_before
    for limit in (*sorted(limit for limit in limits if limit > not_before), float("inf")):
        shut = [each.kept for each in closures if each.begin + TOLERANCE < begin < each.end - TOLERANCE]
        found = _search_part(free - sum(shut, np.zeros_like(free)), releases, demands, order, begin, limit)
        if found is not None:
            return found
        begin = limit
    return None


def _search_part(
    free: Column, releases: Releases, demands: Sequence[Demand], order: Column, begin: float, end: float
) -> tuple[float, Column] | None:
    """Within a part of time in which what is kept stays the same."""
    later = np.unique(releases.seconds[(releases.seconds > begin + TOLERANCE) & (releases.seconds < end)])
    times = np.concatenate(([max(begin, 0.0)], later))
    low, high = 0, len(times) - 1
    best: tuple[float, Column] | None = None
    while low <= high:
        middle = (low + high) // 2
        taken = _fit_at(free, releases, demands, order, float(times[middle]))
        if taken is not None:
            best, high = (float(times[middle]), taken), middle - 1
        else:
            low = middle + 1
    return best


def _whole(free: Column, releases: Releases, seconds: float, taken: Column) -> GangFit:
    return GangFit(seconds, taken, _room_at(free, releases, seconds) - taken)


def _room_at(free: Column, releases: Releases, seconds: float) -> Column:
    until = int(np.searchsorted(releases.seconds, seconds + TOLERANCE, side="right"))
    room = free.copy()
    np.add.at(room.T, releases.rows[:until], releases.amounts[:until])
    return room


def _fit_at(
    free: Column, releases: Releases, demands: Sequence[Demand], order: Column, seconds: float
) -> Column | None:
    room = _room_at(free, releases, seconds)
    taken = np.zeros_like(room)
    for demand in demands:
        counts = _copies_per_node(room - taken, demand, seconds)
        if int(counts.sum()) < demand.count:
            return None
        taken += demand.request[:, None] * _choose(counts, demand.count, order)[None, :]
    return taken


def _copies_per_node(room: Column, demand: Demand, seconds: float) -> Column:
    """How many such tasks each node would take."""
    open_nodes = demand.opens <= seconds + TOLERANCE
    asked = demand.request > 0.0
    if not asked.any():
        return np.where(open_nodes, float(demand.count), 0.0)
    copies = np.floor((room[asked] + TOLERANCE) / demand.request[asked][:, None]).min(axis=0)
    return np.where(open_nodes, np.clip(copies, 0.0, float(demand.count)), 0.0)


def _choose(counts: Column, wanted: int, order: Column) -> Column:
    """So many of these, from nodes of a lower order first."""
    places = np.argsort(order, kind="stable")
    ordered = counts[places]
    before = np.concatenate(([0.0], np.cumsum(ordered)[:-1]))
    chosen = np.zeros_like(counts)
    chosen[places] = np.clip(wanted - before, 0.0, ordered)
    return chosen
