"""DeviceUsage: which devices are allocated, and how much of those that several claims share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from volcano.api.meta import JSON
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.core.dra.published import DeviceId


class DeviceUsage:
    """Allocations are added and removed whole."""

    def __init__(self) -> None:
        self.taken: Counter[DeviceId] = Counter()
        """Devices that one claim has to itself."""
        self.shares: Counter[DeviceId] = Counter()
        """How many allocations of a device that several may have."""
        self.consumed: dict[DeviceId, Counter[str]] = {}
        """Of shared devices: capacity → billionths."""

    def add(self, allocation: JSON) -> None:
        for device, amounts in _results(allocation):
            self.put(device, amounts)

    def remove(self, allocation: JSON) -> None:
        for device, amounts in _results(allocation):
            self.drop(device, amounts)

    def put(self, device: DeviceId, amounts: Mapping[str, int] | None) -> None:
        """One allocation more of a device; with amounts when it is shared."""
        if amounts is None:
            self.taken[device] += 1
        else:
            self.shares[device] += 1
            self.consumed.setdefault(device, Counter()).update(amounts)

    def drop(self, device: DeviceId, amounts: Mapping[str, int] | None) -> None:
        if amounts is None:
            self.taken[device] -= 1
            if self.taken[device] <= 0:
                del self.taken[device]
        else:
            self.shares[device] -= 1
            self.consumed.setdefault(device, Counter()).subtract(amounts)
            if self.shares[device] <= 0:
                del self.shares[device], self.consumed[device]

    def has(self, device: DeviceId) -> bool:
        """Whether the device has any allocation, so that its counters are used."""
        return device in self.taken or device in self.shares


def devices_of(allocation: JSON) -> Iterator[DeviceId]:
    """Those that the allocation uses."""
    return (device for device, _ in _results(allocation))


def _results(allocation: JSON) -> Iterator[tuple[DeviceId, Mapping[str, int] | None]]:
    """Each device with what is consumed of it; None for one that is not shared. Admin access uses nothing."""
    for result in (allocation.get("devices") or {}).get("results") or ():
        if result.get("adminAccess"):
            continue
        device = DeviceId(str(result.get("driver")), str(result.get("pool")), str(result.get("device")))
        if not result.get("shareID"):
            yield device, None
            continue
        try:
            yield device, {n: parse_quantity(v).nanos for n, v in (result.get("consumedCapacity") or {}).items()}
        except QuantityError:
            yield device, {}
