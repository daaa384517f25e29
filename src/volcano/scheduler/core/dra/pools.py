"""The pools of devices that a node can reach, put together from ResourceSlices.

A pool counts in its newest generation alone, and only when all of its slices are there. A pool whose devices all
belong to one node is at home there; the others are shared.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import count
from typing import Any

import msgspec

from volcano.api.core import ResourceSlice
from volcano.scheduler.core.dra.published import DeviceId, PublishedDevice, PublishedSlice, Reaches, read_slice

PoolKey = tuple[str, str]
"""Driver and name."""


class DevicePool(msgspec.Struct, frozen=True, eq=False):
    """The part of a pool that a node can reach."""

    driver: str
    name: str
    devices: tuple[PublishedDevice, ...] = ()
    elsewhere: tuple[PublishedDevice, ...] = ()
    """Devices of other nodes, which use the same counters."""
    counters: Mapping[str, Mapping[str, int]] = {}
    is_incomplete: bool = False
    invalid_because: str = ""
    looks: dict[Hashable, Hashable] = msgspec.field(default_factory=dict)
    """What core.dra.likeness has found out about it."""

    @property
    def is_usable(self) -> bool:
        return not (self.is_incomplete or self.invalid_because)

    @property
    def key(self) -> PoolKey:
        return self.driver, self.name


@dataclass(slots=True, eq=False)
class KeptDevices:
    """What was read from slices, kept from cycle to cycle; an Inventory brings it up to date."""

    slices: dict[str, tuple[ResourceSlice, PublishedSlice]] = field(default_factory=dict)
    pools: dict[PoolKey, tuple[Sequence[PublishedSlice], DevicePool | None]] = field(default_factory=dict)
    """Of pools that are at home on a node: the slices, and the pool that they make."""
    numbers: dict[Hashable, int] = field(default_factory=dict)
    """What core.dra.likeness has given numbers."""
    next_number: Iterator[int] = field(default_factory=count)


def kept_devices(store: dict[str, Any]) -> KeptDevices:
    """From where a snapshot keeps such things."""
    found = store.setdefault("devices", KeptDevices())
    assert isinstance(found, KeptDevices)
    return found


class Inventory:
    """All slices, by pool; a slice that cannot be read makes its pool invalid."""

    def __init__(self, slices: Iterable[ResourceSlice], kept: KeptDevices | None = None) -> None:
        self.kept = kept if kept is not None else KeptDevices()
        self._by_pool: dict[PoolKey, list[PublishedSlice]] = {}
        self.unreadable: dict[PoolKey, str] = {}
        seen = {published.name: published for published in slices}
        for name in self.kept.slices.keys() - seen.keys():
            del self.kept.slices[name]
        for published in seen.values():
            self._add(published)
        for key in self.kept.pools.keys() - self._by_pool.keys():
            del self.kept.pools[key]
        self._at_home: dict[str, list[PoolKey]] = {}
        self.homes: dict[PoolKey, str] = {}
        """The node that alone reaches a pool's devices; shared pools have none."""
        self._shared: list[PublishedSlice] = []
        for key, published_slices in self._by_pool.items():
            home = _home(published_slices)
            if home:
                self._at_home.setdefault(home, []).append(key)
                self.homes[key] = home
            else:
                self._shared += published_slices
        self._put_together: dict[tuple[int, ...], DevicePool | None] = {}

    def _add(self, published: ResourceSlice) -> None:
        before = self.kept.slices.get(published.name)
        if before is not None and before[0] is published:
            self._by_pool.setdefault(before[1].pool, []).append(before[1])
            return
        spec = published.spec or {}
        stated = spec.get("pool") or {}
        pool = (str(spec.get("driver") or ""), str(stated.get("name") or ""))
        try:
            read = read_slice(published.name, spec, pool)
        except (TypeError, AttributeError, ValueError, msgspec.ValidationError) as error:
            self.unreadable[pool] = f"slice {published.name}: {error}"
            return
        self.kept.slices[published.name] = (published, read)
        self._by_pool.setdefault(pool, []).append(read)

    def all_devices(self) -> Iterable[PublishedDevice]:
        return (device for slices in self._by_pool.values() for each in slices for device in each.devices)

    def home_of(self, device: DeviceId) -> str:
        """The node that alone reaches the device's pool; empty for a shared one."""
        return self.homes.get((device.driver, device.pool), "")

    @cached_property
    def shared_devices(self) -> tuple[PublishedDevice, ...]:
        """Those that can be used from several nodes."""
        return tuple(device for each in self._shared for device in each.devices)

    # -- what a node reaches, in the order in which devices are tried ------------------------------------------------
    def pools(self, node: str, reaches: Reaches) -> tuple[DevicePool, ...]:
        return in_order((*self.pools_at_home(node), *self.shared_pools(node, reaches), *self.foreign_pools(node)))

    def pools_at_home(self, node: str) -> tuple[DevicePool, ...]:
        """The pools that no other node reaches."""
        found = [pool for key in self._at_home.get(node, ()) if (pool := self._pool_at_home(key)) is not None]
        return in_order(found)

    def shared_pools(self, node: str, reaches: Reaches) -> tuple[DevicePool, ...]:
        relevant: dict[PoolKey, list[PublishedSlice]] = {}
        for read in self._shared:
            if _is_relevant(read, node, reaches):
                relevant.setdefault(read.pool, []).append(read)
        found = []
        for key, slices in relevant.items():
            identity = tuple(map(id, slices))
            if identity not in self._put_together:
                self._put_together[identity] = self._pool(key, slices)
            pool = self._put_together[identity]
            if pool is not None:
                found.append(pool)
        return tuple(found)

    def foreign_pools(self, node: str) -> tuple[DevicePool, ...]:
        """Counters of pools of other nodes are in reach, too; that matters when such a pool cannot be used."""
        return tuple(pool for key, pool in self._broken_counters.items() if self.homes[key] != node)

    @cached_property
    def _broken_counters(self) -> dict[PoolKey, DevicePool]:
        broken = {}
        for key in self.homes:
            counters = [each for each in self._by_pool[key] if each.counters]
            pool = self._pool(key, counters) if counters else None
            if pool is not None and not pool.is_usable:
                broken[key] = pool
        return broken

    def _pool_at_home(self, key: PoolKey) -> DevicePool | None:
        slices, before = self._by_pool[key], self.kept.pools.get(key)
        if key in self.unreadable:
            return self._pool(key, slices)
        if before is not None and len(before[0]) == len(slices) and all(map(_is_same, before[0], slices)):
            return before[1]
        made = self._pool(key, slices)
        self.kept.pools[key] = (tuple(slices), made)
        return made

    def _pool(self, key: PoolKey, relevant: Sequence[PublishedSlice]) -> DevicePool | None:
        """The pool as seen by a node to which these slices are relevant; None when the node has no use for it."""
        if key in self.unreadable:
            return DevicePool(*key, invalid_because=self.unreadable[key])
        newest = max(each.generation for each in relevant)
        slices = [each for each in relevant if each.generation == newest]
        everything: Sequence[PublishedSlice] = slices
        if len(slices) != slices[0].slices:
            if max(each.generation for each in self._by_pool[key]) > newest:
                return None  # the driver is replacing this generation by one that the node does not reach
            everything = [each for each in self._by_pool[key] if each.generation == newest]
            if len(everything) != slices[0].slices:
                return DevicePool(*key, is_incomplete=True)
        return _checked(key, sorted(slices, key=lambda each: each.name), everything)


def in_order(pools: Iterable[DevicePool]) -> tuple[DevicePool, ...]:
    return tuple(sorted(pools, key=lambda pool: pool.key))


def _home(slices: Sequence[PublishedSlice]) -> str:
    """The only node that can use devices of these slices; empty when there are several, or it is not said by name."""
    nodes = {"" if each.is_per_device else each.reach.node_name for each in slices if not each.counters}
    return nodes.pop() if len(nodes) == 1 else ""


def _is_same(one: PublishedSlice, other: PublishedSlice) -> bool:
    return one is other


def _is_relevant(read: PublishedSlice, node: str, reaches: Reaches) -> bool:
    if read.counters:
        return True
    if read.reach.is_stated:
        return read.reach.includes(node, reaches)
    return read.is_per_device and any(device.reach.includes(node, reaches) for device in read.devices)


def _checked(key: PoolKey, slices: Sequence[PublishedSlice], everything: Sequence[PublishedSlice]) -> DevicePool:
    devices = [device for each in slices if not each.counters for device in each.devices]
    names = [device.id.device for device in devices]
    if len(set(names)) != len(names):
        return DevicePool(*key, invalid_because="duplicate device name")
    counters: dict[str, Mapping[str, int]] = {}
    for each in slices:
        for name, amounts in each.counters:
            if name in counters:
                return DevicePool(*key, invalid_because=f"duplicate counter set name {name}")
            counters[name] = amounts
    known = {each.name for each in slices}
    elsewhere = [device for each in everything if each.name not in known for device in each.devices]
    for device in (*devices, *elsewhere):
        for name, amounts in device.counters:
            if name not in counters:
                return DevicePool(*key, invalid_because=f"counter set {name} not found")
            missing = next((counter for counter in amounts if counter not in counters[name]), None)
            if missing is not None:
                return DevicePool(*key, invalid_because=f"counter {missing} not found in counter set {name}")
    return DevicePool(*key, tuple(devices), tuple(elsewhere), counters)
