"""DeviceSupply: the cluster's devices during a session: what each node reaches, what is allocated, where claims fit.

Nodes whose devices look alike to the claims, and are used alike, share one search (core.dra.likeness).
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Final

import msgspec
import numpy as np

from volcano.api.core import NodeSelector
from volcano.api.meta import JSON
from volcano.scheduler.core.dra.asked import ClaimAsk
from volcano.scheduler.core.dra.device_search import (
    CannotAllocate,
    ChosenDevice,
    DeviceMarket,
    allocate,
    can_use,
)
from volcano.scheduler.core.dra.device_usage import DeviceUsage, devices_of
from volcano.scheduler.core.dra.likeness import Likeness
from volcano.scheduler.core.dra.pools import DevicePool, Inventory, in_order, kept_devices
from volcano.scheduler.core.dra.published import Reaches
from volcano.scheduler.core.node_table import Mask, NodeTable, Rows
from volcano.scheduler.model import ClusterObjects

Places = list[list[tuple[ChosenDevice, int]]]
"""For each claim its devices, as found on some node, and their places among the devices in reach."""


MAX_TIMES: Final = 65
"""As many pods as are placed on one node in one go; beyond that they are not counted."""


class DeviceSupply:
    def __init__(self, table: NodeTable, around: ClusterObjects) -> None:
        self.table, self.around = table, around
        self.inventory = Inventory(around.resource_slices.values(), kept_devices(around.kept))
        self.usage = DeviceUsage()
        for claim in around.resource_claims.values():
            allocation = around.assumed_allocations.get(claim.key) or (claim.status or {}).get("allocation")
            if isinstance(allocation, dict):
                self.usage.add(allocation)
        self._at_home = [self.inventory.pools_at_home(node.name) for node in table.nodes]
        self._states: list[Hashable] = [self.state_now(row) for row in range(len(table))]
        self._others: dict[int, tuple[DevicePool, ...]] = {}
        self._selected: dict[bytes, Mask] = {}
        self._searches: dict[Hashable, ClaimSearch] = {}

    def search(self, key: Hashable, claims: Sequence[ClaimAsk]) -> ClaimSearch:
        """What is known about claims that ask for this; equal keys for equal claims."""
        found = self._searches.get(key)
        if found is None:
            found = self._searches[key] = ClaimSearch(self, claims)
        return found

    # -- what is allocated ---------------------------------------------------------------------------------------
    def take(self, allocation: JSON) -> None:
        self.usage.add(allocation)
        self._outdate(allocation)

    def release(self, allocation: JSON) -> None:
        self.usage.remove(allocation)
        self._outdate(allocation)

    def _outdate(self, allocation: JSON) -> None:
        rows: set[int] = set()
        is_shared = False
        for device in devices_of(allocation):
            home = self.inventory.home_of(device)
            is_shared = is_shared or not home
            if home in self.table.index:
                rows.add(self.table.index[home])
        for row in rows:
            self._states[row] = self.state_now(row)
        for search in self._searches.values():
            search.outdate(rows, is_shared=is_shared)

    def state(self, row: int) -> Hashable:
        """What is used of the devices that only this node reaches."""
        return self._states[row]

    def state_now(self, row: int) -> Hashable:
        taken, shares = self.usage.taken, self.usage.shares
        bits, place = 0, 0
        parts: list[Hashable] = []
        for pool in self._at_home[row]:
            for device in (*pool.devices, *pool.elsewhere) if pool.elsewhere else pool.devices:
                if device.id in taken:
                    bits |= 1 << place
                elif shares and device.id in shares:
                    parts.append((place, frozenset(self.usage.consumed[device.id].items())))
                place += 1
        return (bits, *parts) if parts else bits

    # -- what a node reaches -------------------------------------------------------------------------------------
    def pools(self, row: int, *, with_shared: bool) -> tuple[DevicePool, ...]:
        """Without shared pools only those of them are left that cannot be used."""
        others = self._others.get(row)
        if others is None:
            name = self.table.nodes[row].name
            shared = self.inventory.shared_pools(name, self._reaches(row))
            others = self._others[row] = (*shared, *self.inventory.foreign_pools(name))
        if others and not with_shared:
            others = tuple(pool for pool in others if not pool.is_usable)
        return in_order((*self._at_home[row], *others)) if others else self._at_home[row]

    def market(self, row: int, pools: Sequence[DevicePool]) -> DeviceMarket:
        return DeviceMarket(
            self.table.nodes[row].name, pools, self.usage, self.around.device_classes, self._reaches(row)
        )

    def reach(self, row: int, pools: Sequence[DevicePool]) -> tuple[bool, ...]:
        """Of devices that state their own nodes: whether this is one of them."""
        name, reaches = self.table.nodes[row].name, self._reaches(row)
        devices = (device for pool in pools for device in pool.devices if device.has_own_reach)
        return tuple(device.reach.includes(name, reaches) for device in devices)

    def _reaches(self, row: int) -> Reaches:
        return lambda selector: bool(self._selection(selector)[row])

    def _selection(self, selector: JSON) -> Mask:
        key = msgspec.json.encode(selector, order="deterministic")
        found = self._selected.get(key)
        if found is None:
            found = self._selected[key] = self.table.labels.in_any_term(node_selector(selector))
        return found


class ClaimSearch:
    """Where claims can be allocated together, and which devices they get there."""

    def __init__(self, supply: DeviceSupply, claims: Sequence[ClaimAsk]) -> None:
        self._supply, self._claims = supply, claims
        around = supply.around
        self.uses_shared = any(
            can_use(claims, device, around.device_classes) for device in supply.inventory.shared_devices
        )
        self._groups: dict[Hashable, int] = {}
        self._found: list[Places | None] = []  # by group
        self._following: dict[int, int] = {}  # the group that a node is in once the claims are allocated there
        self._fits = np.zeros(64, dtype=bool)  # by group
        self._times: Rows = np.full(len(self._fits), -1, dtype=np.intp)  # by group; -1: not counted yet
        self._stale: set[int] = set()
        self._is_shared_stale = False
        likeness = Likeness(claims, around.device_classes, supply.inventory.kept)
        self._looks = [self._look(row, likeness) for row in range(len(supply.table))]
        self._group_of = np.fromiter(map(self._group, range(len(self._looks))), np.intp, len(self._looks))
        self._mask: Mask = self._fits[self._group_of]

    def fitting(self) -> Mask:
        """The nodes where the claims fit now."""
        self._refresh()
        return self._mask

    def counts(self, rows: Rows, most: int) -> Rows:
        """How many times the claims fit on each node, one after the other; as far as `most`."""
        self._refresh()
        groups = self._group_of[rows]
        for place in np.flatnonzero(self._times[groups] < 0).tolist():
            if self._times[groups[place]] < 0:
                times = self._count(int(rows[place]), MAX_TIMES)
                self._times[groups[place]] = times
        return np.minimum(self._times[groups], most)

    def places(self, row: int) -> list[list[ChosenDevice]] | None:
        """The devices of each claim on a node."""
        self._refresh()
        return self._places(row, int(self._group_of[row]))

    def _places(self, row: int, group: int) -> list[list[ChosenDevice]] | None:
        found = self._found[group]
        if found is None:
            return None
        pools = self._supply.pools(row, with_shared=self.uses_shared)
        devices = [device for pool in pools if pool.is_usable for device in pool.devices]
        return [[ChosenDevice(each.ask, devices[place], each.consumed) for each, place in claim] for claim in found]

    # -- the same claims again -----------------------------------------------------------------------------------
    def _count(self, row: int, most: int) -> int:
        """The devices that were found each time are used for a moment, so that the next time can be looked at."""
        group, chain, used = int(self._group_of[row]), [], []  # type: int, list[int], list[ChosenDevice]
        is_used = 0
        while len(chain) < most and self._fits[group]:
            chain.append(group)
            following = self._following.get(group)
            if following is None and len(chain) < most:
                for earlier in chain[is_used:]:
                    used += self._use(row, earlier)
                is_used = len(chain)
                following = self._following[group] = self._group_with(row, self._supply.state_now(row))
            group = group if following is None else following
        for each in used:
            self._supply.usage.drop(each.device.id, each.consumed)
        return len(chain)

    def _use(self, row: int, group: int) -> list[ChosenDevice]:
        places = self._places(row, group) or []
        listed = [each for claim in places for each in claim if not each.ask.is_admin]
        for each in listed:
            self._supply.usage.put(each.device.id, each.consumed)
        return listed

    def outdate(self, rows: Iterable[int], *, is_shared: bool) -> None:
        self._stale.update(rows)
        self._is_shared_stale = self._is_shared_stale or (is_shared and self.uses_shared)

    # -- groups of nodes that have the same answer ---------------------------------------------------------------
    def _refresh(self) -> None:
        if self._is_shared_stale:
            self._is_shared_stale = False
            for row in self._stale:
                self._group_of[row] = self._group(row)
            for group, row in zip(*np.unique(self._group_of, return_index=True), strict=True):
                self._answer(int(group), int(row))
            kept = set(np.unique(self._group_of).tolist())
            self._groups = {look: group for look, group in self._groups.items() if group in kept}
            self._following.clear()
            self._times[:] = -1
            self._mask = self._fits[self._group_of]
        elif self._stale:
            for row in self._stale:
                group = self._group_of[row] = self._group(row)
                self._mask[row] = self._fits[group]
        self._stale.clear()

    def _look(self, row: int, likeness: Likeness) -> Hashable:
        pools = self._supply.pools(row, with_shared=self.uses_shared)
        if not self.uses_shared:
            return likeness.number(pools)
        homes = self._supply.inventory.homes
        shared = tuple((place, id(pool)) for place, pool in enumerate(pools) if not homes.get(pool.key))
        return likeness.number(pools), shared, self._supply.reach(row, pools)

    def _group(self, row: int) -> int:
        return self._group_with(row, self._supply.state(row))

    def _group_with(self, row: int, state: Hashable) -> int:
        """The group of a node, in the state that its devices are in now."""
        key = (self._looks[row], state)
        group = self._groups.get(key)
        if group is None:
            group = self._groups[key] = len(self._found)
            self._found.append(None)
            if group >= len(self._fits):
                self._times = np.concatenate([self._times, np.full(len(self._fits), -1, dtype=np.intp)])
                self._fits = np.concatenate([self._fits, np.zeros(len(self._fits), dtype=bool)])
            self._answer(group, row)
        return group

    def _answer(self, group: int, row: int) -> None:
        pools = self._supply.pools(row, with_shared=self.uses_shared)
        try:
            found = allocate(self._claims, self._supply.market(row, pools))
        except CannotAllocate:
            found = None
        self._fits[group] = found is not None
        if found is None:
            self._found[group] = None
            return
        devices = (device for pool in pools if pool.is_usable for device in pool.devices)
        place_of = {device.id: place for place, device in enumerate(devices)}
        self._found[group] = [[(each, place_of[each.device.id]) for each in claim] for claim in found]


def node_selector(stated: JSON) -> NodeSelector:
    """A selector that cannot be read chooses no node."""
    try:
        return msgspec.convert(stated, NodeSelector)
    except msgspec.ValidationError:
        return NodeSelector()
