"""The devices that drivers publish: one ResourceSlice, read once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

import msgspec

from volcano.api.core import Taint
from volcano.api.meta import JSON
from volcano.api.quantity import parse_quantity

Reaches = Callable[[JSON], bool]
"""Whether a node selector chooses the node in question."""
AttributeValue = tuple[str, Any]
"""Kind and value; several values of a kind are a tuple."""
ATTRIBUTE_KINDS: Final = ("int", "bool", "string", "version")


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
    stated: Any = None
    policy: JSON | None = None


class PublishedDevice(msgspec.Struct, frozen=True, eq=False):
    """A device as its driver describes it."""

    id: DeviceId
    reach: NodeReach
    attributes: Mapping[str, AttributeValue]
    capacity: Mapping[str, CapacityOffer]
    counters: tuple[tuple[str, Mapping[str, int]], ...] = ()
    taints: tuple[Taint, ...] = ()
    is_shareable: bool = False
    is_bound_to_node: bool = False
    has_own_reach: bool = False
    """Whether nodes are chosen for this device, and not for its whole slice."""
    needs_conditions: bool = False
    """Whether the driver must confirm the device before its pod is bound."""
    frame: bytes = b""
    """All of it but its name and attributes: equal for devices that are built alike."""


class PublishedSlice(msgspec.Struct, frozen=True, eq=False):
    name: str
    pool: tuple[str, str]
    generation: int
    slices: int
    reach: NodeReach
    devices: tuple[PublishedDevice, ...]
    counters: tuple[tuple[str, Mapping[str, int]], ...]
    is_per_device: bool


def read_slice(name: str, spec: JSON, pool: tuple[str, str]) -> PublishedSlice:
    """TypeError, AttributeError or ValueError when it cannot be understood."""
    stated, reach = spec.get("pool") or {}, _reach(spec)
    is_per_device = bool(spec.get("perDeviceNodeSelection"))
    return PublishedSlice(
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
    offers = {
        name: CapacityOffer(parse_quantity(offer["value"]).nanos, offer["value"], offer.get("requestPolicy"))
        for name, offer in (stated.get("capacity") or {}).items()
    }
    consumed = stated.get("consumesCounters") or ()
    frame = {name: value for name, value in stated.items() if name not in ("name", "attributes")}
    return PublishedDevice(
        DeviceId(*pool, str(stated["name"])),
        _reach(stated) if is_per_device else reach,
        {name: _attribute(value) for name, value in (stated.get("attributes") or {}).items()},
        offers,
        tuple((str(each["counterSet"]), _amounts(each.get("counters"))) for each in consumed),
        tuple(msgspec.convert(each, Taint) for each in stated.get("taints") or ()),
        bool(stated.get("allowMultipleAllocations")),
        is_bound_to_node=bool(stated.get("bindsToNode")),
        has_own_reach=is_per_device,
        needs_conditions=bool(stated.get("bindingConditions")),
        frame=msgspec.json.encode((pool[0], frame), order="deterministic"),
    )


def _attribute(stated: JSON) -> AttributeValue:
    for kind in ATTRIBUTE_KINDS:
        value = stated.get(kind)
        if value is not None:
            return kind, value
    for kind in ATTRIBUTE_KINDS:
        values = stated.get(f"{kind}s")
        if values:
            return kind, tuple(values)
    raise ValueError("an attribute has no value")


def values_of(attribute: AttributeValue) -> tuple[AttributeValue, ...]:
    """Each with its kind."""
    kind, value = attribute
    return tuple((kind, each) for each in value) if isinstance(value, tuple) else (attribute,)


def _amounts(stated: Any) -> dict[str, int]:
    return {name: parse_quantity(counter["value"]).nanos for name, counter in (stated or {}).items()}
