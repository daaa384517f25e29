"""The earliest time at which a gang fits, on which nodes, and what is left there for others.

Running tasks only leave as time passes, so what fits at one time fits at every later one: a binary search over the
expected ends finds the first. That also holds beside other reservations: the gang keeps what it takes, so the least
that is left at any later time counts. Windows of Reservations divide the time into parts, and each is searched in turn.
Nodes that are busy now are taken first, which leaves the idle ones to others. A gang that must stay within a HyperNode
is sought in each of them.
"""

from __future__ import annotations

from bisect import bisect_right
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

    name: str  # the role; with a number where a role has several shapes
    shape: int
    count: int
    request: Column  # over the table's resources
    opens: Column  # for each node, in seconds after now; infinite: never

    def among(self, rows: Rows) -> Demand:
        return Demand(self.name, self.shape, self.count, self.request, self.opens[rows])


@dataclass(slots=True, frozen=True, eq=False)
class PromisedRoom:
    """From `seconds` after now on, so much (resources × nodes) is promised to another job."""

    seconds: float
    taken: Column

    def among(self, rows: Rows) -> PromisedRoom:
        return PromisedRoom(self.seconds, self.taken[:, rows])


class RoomForecast:
    """What is free at a time and, beside promises, at every time after it."""

    def __init__(self, free: Column, releases: Releases, promised: Sequence[PromisedRoom] = ()) -> None:
        self._free, self._releases = free, releases
        self._moments: list[float] = []  # of promises, ascending
        self._promised: list[Column] = []  # what is promised by each of these moments
        for each in sorted(promised, key=lambda each: each.seconds):
            before = self._promised[-1] if self._promised else np.zeros_like(free)
            if self._moments and each.seconds <= self._moments[-1] + TOLERANCE:
                self._promised[-1] = before + each.taken
            else:
                self._moments.append(each.seconds)
                self._promised.append(before + each.taken)
        least: list[Column] = []
        for moment, until in zip(reversed(self._moments), reversed(self._promised), strict=True):
            left = self.free_at(moment) - until
            least.append(np.minimum(left, least[-1]) if least else left)
        self._least = least[::-1]  # that is left at each of these moments and after it

    def free_at(self, seconds: float) -> Column:
        """Without regard to promises."""
        until = int(np.searchsorted(self._releases.seconds, seconds + TOLERANCE, side="right"))
        room: Column = self._free.copy()
        np.add.at(room.T, self._releases.rows[:until], self._releases.amounts[:until])
        return room

    def left_at(self, seconds: float) -> Column:
        """What is free and not promised by then."""
        begun = bisect_right(self._moments, seconds + TOLERANCE)
        room = self.free_at(seconds)
        return room - self._promised[begun - 1] if begun else room

    def left_from(self, seconds: float) -> Column:
        """The least that is left at this or any later time."""
        begun = bisect_right(self._moments, seconds + TOLERANCE)
        left = self.left_at(seconds)
        return np.minimum(left, self._least[begun]) if begun < len(self._least) else left


@dataclass(slots=True, frozen=True, eq=False)
class GangFit:
    """A gang fits `seconds` from now: how many tasks of each demand on each node."""

    seconds: float
    counts: Column  # demands × nodes


def earliest_fit(
    free: Column,
    releases: Releases,
    demands: Sequence[Demand],
    *,
    not_before: float = 0.0,
    promised: Sequence[PromisedRoom] = (),
    domains: Sequence[Rows] | None = None,
    preferred: Rows | None = None,
    closures: Sequence[Closure] = (),
) -> GangFit | None:
    """The first time, not before the given one, at which the demands fit; None when they never do.

    `free` (resources × nodes) is what is free now. With `domains` (rows of nodes), the gang must fit into one of them.
    Nodes are taken in this order: `preferred` ones, those busy now, idle ones. While a closure lasts, what it keeps is
    not there for the gang.
    """
    order = np.full(free.shape[1], 2.0)
    order[releases.rows] = 1.0
    if preferred is not None:
        order[preferred] = 0.0
    if domains is None:
        return _search(RoomForecast(free, releases, promised), releases, demands, order, not_before, closures)
    best: GangFit | None = None
    for rows in domains:
        inside = releases.among(rows, free.shape[1])
        shut = [Closure(each.begin, each.end, each.kept[:, rows]) for each in closures]
        forecast = RoomForecast(free[:, rows], inside, [each.among(rows) for each in promised])
        part = _search(forecast, inside, [d.among(rows) for d in demands], order[rows], not_before, shut)
        if part is not None and (best is None or part.seconds < best.seconds):
            counts = np.zeros((len(demands), free.shape[1]))
            counts[:, rows] = part.counts
            best = GangFit(part.seconds, counts)
    return best


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
    forecast: RoomForecast,
    releases: Releases,
    demands: Sequence[Demand],
    order: Column,
    not_before: float,
    closures: Sequence[Closure],
) -> GangFit | None:
    if not np.isfinite(not_before):
        return None
    if not closures:
        return _search_part(forecast, releases, demands, order, not_before, float("inf"), ())
    # A gang may start just when a closure begins: it then ends just when the window begins.
    limits = {limit for each in closures for limit in (each.begin + 2 * TOLERANCE, each.end)}
    begin = not_before
    for limit in (*sorted(limit for limit in limits if limit > not_before), float("inf")):
        found = _search_part(forecast, releases, demands, order, begin, limit, closed_at(closures, begin))
        if found is not None:
            return found
        begin = limit
    return None


def closed_at(closures: Sequence[Closure], seconds: float) -> list[Column]:
    """What is kept from a gang that would start at this time."""
    return [each.kept for each in closures if each.begin + TOLERANCE < seconds < each.end - TOLERANCE]


def _search_part(
    forecast: RoomForecast,
    releases: Releases,
    demands: Sequence[Demand],
    order: Column,
    begin: float,
    end: float,
    closed: Sequence[Column],
) -> GangFit | None:
    """Within a part of time in which what is kept stays the same."""
    later = np.unique(releases.seconds[(releases.seconds > begin + TOLERANCE) & (releases.seconds < end)])
    times = np.concatenate(([max(begin, 0.0)], later))
    low, high = 0, len(times) - 1
    best: GangFit | None = None
    while low <= high:
        middle = (low + high) // 2
        room = forecast.left_from(float(times[middle]))
        for kept in closed:
            room = room - kept
        counts = _fit_at(room, demands, order, float(times[middle]))
        if counts is not None:
            best, high = GangFit(float(times[middle]), counts), middle - 1
        else:
            low = middle + 1
    return best


def _fit_at(room: Column, demands: Sequence[Demand], order: Column, seconds: float) -> Column | None:
    """How many tasks of each demand on each node; None when they do not fit."""
    chosen = np.zeros((len(demands), room.shape[1]))
    for number, demand in enumerate(demands):
        counts = _copies_per_node(room, demand, seconds)
        if int(counts.sum()) < demand.count:
            return None
        chosen[number] = _choose(counts, demand.count, order)
        room = room - demand.request[:, None] * chosen[number][None, :]
    return chosen


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
