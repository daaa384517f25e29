"""The devices that drivers publish: ResourceSlices read into pools, and which pools a node can reach.

A pool counts in its newest generation alone, and only when all of its slices are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from volcano.api.core import ResourceSlice, Taint
from volcano.api.meta import JSON
from volcano.api.quantity import parse_quantity

Reaches = Callable[[JSON], bool]
"""Whether a node selector chooses the node in question."""


class DeviceId(NamedTuple):
    driver: str
    pool: str
    device: str


class NodeReach(msgspec.Struct, frozen=True):
    """The nodes that can use a slice or a device."""

    node_name: str = ""
    is_everywhere: bool = False
    selector: JSON | None = None

    @property
    def is_stated(self) -> bool:
        return bool(self.node_name) or self.is_everywhere or self.selector is not None

    def includes(self, node: str, reaches: Reaches) -> bool:
        if self.node_name:
            return self.node_name == node
        return self.is_everywhere or (self.selector is not None and reaches(self.selector))


class CapacityOffer(msgspec.Struct, frozen=True):
    """One capacity of a device, in billionths, and how much of it a request may take."""

    value: int
    policy: JSON | None = None


class PublishedDevice(msgspec.Struct, frozen=True):
    """A device as its driver describes it."""

    id: DeviceId
    reach: NodeReach
    attributes: Mapping[str, JSON]
    capacity: Mapping[str, CapacityOffer]
    counters: tuple[tuple[str, Mapping[str, int]], ...] = ()
    taints: tuple[Taint, ...] = ()
    is_shareable: bool = False
    is_bound_to_node: bool = False
    has_own_reach: bool = False
    """Whether nodes are chosen for this device, and not for its whole slice."""
    needs_conditions: bool = False
    """Whether the driver must confirm the device before its pod is bound."""
    described: bytes = b""
    """What selectors see of it: equal for devices that differ in their names alone."""


class DevicePool(msgspec.Struct, frozen=True):
    """The part of a pool that a node can reach."""

    driver: str
    name: str
    devices: tuple[PublishedDevice, ...] = ()
    elsewhere: tuple[PublishedDevice, ...] = ()
    """Devices of other nodes, which use the same counters."""
    counters: Mapping[str, Mapping[str, int]] = {}
    is_incomplete: bool = False
    invalid_because: str = ""

    @property
    def is_usable(self) -> bool:
        return not (self.is_incomplete or self.invalid_because)


class _Slice(msgspec.Struct, frozen=True):
    name: str
    pool: tuple[str, str]
    generation: int
    slices: int
    reach: NodeReach
    devices: tuple[PublishedDevice, ...]
    counters: tuple[tuple[str, Mapping[str, int]], ...]
    is_per_device: bool


KeptSlices = dict[str, tuple[ResourceSlice, _Slice]]
"""By name: a slice, and what was read from it."""


class Inventory:
    """All slices, by pool; a slice that cannot be read makes its pool invalid."""

    def __init__(self, slices: Iterable[ResourceSlice], kept: KeptSlices | None = None) -> None:
        """`kept` is what was read before, by slice; it is brought up to date."""
        self._kept = kept if kept is not None else {}
        self._by_pool: dict[tuple[str, str], list[_Slice]] = {}
        self._on_node: dict[str, list[_Slice]] = {}
        self._shared: list[_Slice] = []
        self.unreadable: dict[tuple[str, str], str] = {}
        seen = {published.name: published for published in slices}
        for name in self._kept.keys() - seen.keys():
            del self._kept[name]
        for published in seen.values():
            self._add(published)

    def _add(self, published: ResourceSlice) -> None:
        spec = published.spec or {}
        stated = spec.get("pool") or {}
        pool = (str(spec.get("driver") or ""), str(stated.get("name") or ""))
        try:
            read = self._read(published, spec, pool)
        except (TypeError, AttributeError, ValueError, msgspec.ValidationError) as error:
            self.unreadable[pool] = f"slice {published.name}: {error}"
            return
        self._by_pool.setdefault(pool, []).append(read)
        if read.reach.node_name and not read.counters:
            self._on_node.setdefault(read.reach.node_name, []).append(read)
        else:
            self._shared.append(read)

    def _read(self, published: ResourceSlice, spec: JSON, pool: tuple[str, str]) -> _Slice:
        before = self._kept.get(published.name)
        if before is not None and before[0] is published:
            return before[1]
        read = _read(published.name, spec, pool)
        self._kept[published.name] = (published, read)
        return read

    @property
    def has_shared(self) -> bool:
        """Whether some devices can be used from several nodes."""
        return bool(self._shared)

    def all_devices(self) -> Iterable[PublishedDevice]:
        return (device for slices in self._by_pool.values() for each in slices for device in each.devices)

    def pools(self, node: str, reaches: Reaches) -> tuple[DevicePool, ...]:
        """What a node can reach, in the order in which devices are tried."""
        relevant: dict[tuple[str, str], list[_Slice]] = {}
        for read in (*self._on_node.get(node, ()), *self._shared):
            if _is_relevant(read, node, reaches):
                listed = relevant.setdefault(read.pool, [])
                if listed and read.generation > listed[0].generation:
                    listed.clear()
                if not listed or read.generation == listed[0].generation:
                    listed.append(read)
        found = [pool for key in sorted(relevant) if (pool := self._pool(key, relevant[key])) is not None]
        return tuple(found)

    def _pool(self, key: tuple[str, str], slices: list[_Slice]) -> DevicePool | None:
        if key in self.unreadable:
            return DevicePool(*key, invalid_because=self.unreadable[key])
        everything = slices
        if len(slices) != slices[0].slices:
            generations = [each.generation for each in self._by_pool[key]]
            if max(generations) > slices[0].generation:
                return None  # the driver is replacing this generation by one that the node does not reach
            everything = [each for each in self._by_pool[key] if each.generation == slices[0].generation]
            if len(everything) != slices[0].slices:
                return DevicePool(*key, is_incomplete=True)
        return _checked(key, sorted(slices, key=lambda each: each.name), everything)


def _is_relevant(read: _Slice, node: str, reaches: Reaches) -> bool:
    if read.counters:
        return True
    if read.reach.is_stated:
        return read.reach.includes(node, reaches)
    return read.is_per_device and any(device.reach.includes(node, reaches) for device in read.devices)


def _checked(key: tuple[str, str], slices: Sequence[_Slice], everything: Sequence[_Slice]) -> DevicePool:
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


def _read(name: str, spec: JSON, pool: tuple[str, str]) -> _Slice:
    stated, reach = spec.get("pool") or {}, _reach(spec)
    is_per_device = bool(spec.get("perDeviceNodeSelection"))
    return _Slice(
        name,
        pool,
        int(stated.get("generation") or 0),
        int(stated.get("resourceSliceCount") or 0),
        reach,
        tuple(_device(each, pool, reach, is_per_device=is_per_device) for each in spec.get("devices") or ()),
        tuple((str(each["name"]), _amounts(each.get("counters"))) for each in spec.get("sharedCounters") or ()),
        is_per_device,
    )


def _reach(stated: JSON) -> NodeReach:
    return NodeReach(str(stated.get("nodeName") or ""), bool(stated.get("allNodes")), stated.get("nodeSelector"))


def _device(stated: JSON, pool: tuple[str, str], reach: NodeReach, *, is_per_device: bool) -> PublishedDevice:
    attributes, capacity = stated.get("attributes") or {}, stated.get("capacity") or {}
    is_shareable = bool(stated.get("allowMultipleAllocations"))
    offers = {
        name: CapacityOffer(parse_quantity(offer["value"]).nanos, offer.get("requestPolicy"))
        for name, offer in capacity.items()
    }
    consumed = stated.get("consumesCounters") or ()
    return PublishedDevice(
        DeviceId(*pool, str(stated["name"])),
        _reach(stated) if is_per_device else reach,
        attributes,
        offers,
        tuple((str(each["counterSet"]), _amounts(each.get("counters"))) for each in consumed),
        tuple(msgspec.convert(each, Taint) for each in stated.get("taints") or ()),
        is_shareable,
        is_bound_to_node=bool(stated.get("bindsToNode")),
        has_own_reach=is_per_device,
        needs_conditions=bool(stated.get("bindingConditions")),
        described=msgspec.json.encode([pool[0], is_shareable, attributes, capacity], order="deterministic"),
    )


def _amounts(stated: Any) -> dict[str, int]:
    return {name: parse_quantity(counter["value"]).nanos for name, counter in (stated or {}).items()}
