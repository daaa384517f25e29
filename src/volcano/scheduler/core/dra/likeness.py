"""Which pools look alike to claims: they differ in nothing that the claims can see, so they have the same answer.

Drivers describe devices with attributes that differ everywhere (UUIDs, serial numbers). Only what selectors name is
compared; of attributes that constraints name, only which devices have the same value.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from functools import reduce
from operator import or_
from typing import Final

from volcano.api.core import DeviceClass
from volcano.scheduler.core.dra.asked import ClaimAsk
from volcano.scheduler.core.dra.device_search import attribute_of, class_selectors
from volcano.scheduler.core.dra.pools import DevicePool, KeptDevices
from volcano.scheduler.core.dra.published import PublishedDevice, values_of
from volcano.scheduler.core.dra.selectors import LookedAt, looked_at

MAX_NUMBERS: Final = 200_000
"""Looks that are remembered; beyond that they are numbered anew."""
MAX_LOOKS_PER_POOL: Final = 64


class Likeness:
    """What a set of claims sees of pools, as numbers."""

    def __init__(self, claims: Sequence[ClaimAsk], classes: Mapping[str, DeviceClass], kept: KeptDevices) -> None:
        self._kept = kept
        asks = [ask for claim in claims for asks in claim.requests for ask in asks]
        expressions = {expression for ask in asks for expression in ask.selectors}
        for name in {ask.class_name for ask in asks} & classes.keys():
            expressions.update(class_selectors(classes[name]))
        self._at: LookedAt = reduce(or_, map(looked_at, sorted(expressions)), LookedAt())
        self._compared = tuple(sorted({stated.attribute for claim in claims for stated in claim.constraints}))
        self._at_number = self._numbered(("looked at", self._at))
        self._same_key = ("same", self._compared)
        self._names: dict[str, list[str]] = {}

    def number(self, pools: Sequence[DevicePool]) -> int:
        """The same for pools that look alike."""
        looks: Hashable = tuple([self._look(pool) for pool in pools])
        if self._compared:
            looks = (looks, self._same_values(pools))
        return self._numbered(looks)

    def _numbered(self, looks: Hashable) -> int:
        numbers = self._kept.numbers
        found = numbers.get(looks)
        if found is None:
            if len(numbers) >= MAX_NUMBERS:
                numbers.clear()
            found = numbers[looks] = next(self._kept.next_number)
        return found

    def _look(self, pool: DevicePool) -> Hashable:
        found = pool.looks.get(self._at_number)
        if found is None:
            if len(pool.looks) >= MAX_LOOKS_PER_POOL:
                pool.looks.clear()
            parts = (
                pool.is_incomplete,
                pool.invalid_because,
                tuple((name, tuple(amounts.items())) for name, amounts in pool.counters.items()),
                tuple(self._device(device) for device in pool.devices),
                tuple(device.frame for device in pool.elsewhere),
            )
            found = pool.looks[self._at_number] = self._numbered(parts)
        return found

    def _device(self, device: PublishedDevice) -> Hashable:
        at, driver = self._at, device.id.driver
        if at.is_everything or at.domains:
            return device.frame, tuple(item for item in device.attributes.items() if at.includes(item[0], driver))
        names = self._names.get(driver)
        if names is None:
            own = f"{driver}/"
            names = [short for name in at.names for short in (name, name.removeprefix(own))]
            names = self._names[driver] = sorted(set(names))
        return device.frame, tuple([device.attributes.get(name) for name in names])

    def _same_values(self, pools: Sequence[DevicePool]) -> Hashable:
        """For each compared attribute and device its values as numbers, in the order in which they are met."""
        if len(pools) != 1:
            return self._numbered(tuple(_numbers_of(pools, name) for name in self._compared))
        looks = pools[0].looks
        found = looks.get(self._same_key)
        if found is None:
            found = looks[self._same_key] = self._numbered(tuple(_numbers_of(pools, name) for name in self._compared))
        return found


def _numbers_of(pools: Sequence[DevicePool], attribute: str) -> tuple[Hashable, ...]:
    numbers: dict[Hashable, int] = {}
    found: list[Hashable] = []
    for pool in pools:
        for device in pool.devices:
            stated = attribute_of(device, attribute)
            values = () if stated is None else values_of(stated)
            found.append(tuple([numbers.setdefault(value, len(numbers)) for value in values]))
    return tuple(found)
