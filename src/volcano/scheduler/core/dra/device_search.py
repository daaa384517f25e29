"""allocate: the devices that claims get on one node, found by a search with backtracking; the first solution counts.

Requests are satisfied in their order, each by devices in the order of their pools, slices and positions. All claims
are allocated, or none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import msgspec

from volcano.api.core import DeviceClass
from volcano.api.pods.tolerations import is_tolerated
from volcano.scheduler.core.dra.asked import MAX_DEVICES_PER_CLAIM, ClaimAsk, ConstraintAsk, DeviceAsk
from volcano.scheduler.core.dra.capacities import consumed
from volcano.scheduler.core.dra.device_usage import DeviceUsage
from volcano.scheduler.core.dra.pools import DevicePool
from volcano.scheduler.core.dra.published import AttributeValue, DeviceId, PublishedDevice, Reaches, values_of
from volcano.scheduler.core.dra.selectors import SelectorFailed, is_selected

MAX_STEPS: Final = 50_000
"""Of one search: the problem is exponential, and a cycle must end."""
_PREVENTING: Final = ("NoSchedule", "NoExecute")


class CannotAllocate(Exception):
    """Why the claims cannot be allocated on the node at all."""


class ChosenDevice(msgspec.Struct, frozen=True):
    """A device for a request, and what it takes of it if the device is shared."""

    ask: DeviceAsk
    device: PublishedDevice
    consumed: Mapping[str, int] | None = None


class DeviceMarket(msgspec.Struct, frozen=True):
    """What a search looks at: the node's pools, what is allocated already, and classes."""

    node: str
    pools: Sequence[DevicePool]
    usage: DeviceUsage
    classes: Mapping[str, DeviceClass]
    reaches: Reaches


def allocate(claims: Sequence[ClaimAsk], market: DeviceMarket) -> list[list[ChosenDevice]] | None:
    """The devices of each claim; None when they do not fit. CannotAllocate when a request or a pool is at fault."""
    return _Search(claims, market).run()


def class_selectors(device_class: DeviceClass) -> Iterator[str]:
    for selector in (device_class.spec or {}).get("selectors") or ():
        yield str((selector.get("cel") or {}).get("expression") or "")


def can_use(claims: Sequence[ClaimAsk], device: PublishedDevice, classes: Mapping[str, DeviceClass]) -> bool:
    """Whether some request may get the device, or fails because of it."""
    if device.needs_conditions:
        return False
    asks = (ask for claim in claims for asks in claim.requests for ask in asks if ask.class_name in classes)
    try:
        return any(_is_chosen(ask, device, classes) for ask in asks)
    except SelectorFailed:
        return True


def _is_chosen(ask: DeviceAsk, device: PublishedDevice, classes: Mapping[str, DeviceClass]) -> bool:
    expressions = (*class_selectors(classes[ask.class_name]), *ask.selectors)
    return all(is_selected(expression, device) for expression in expressions)


class _Search:
    def __init__(self, claims: Sequence[ClaimAsk], market: DeviceMarket) -> None:
        self._claims, self._market = claims, market
        self._devices = [(pool, device) for pool in market.pools if pool.is_usable for device in pool.devices]
        self._all: dict[int, list[tuple[DevicePool, PublishedDevice]]] = {}  # by identity of the ask
        self._held: dict[DeviceId, set[int]] = {}  # exclusively chosen devices → claims
        self._shared: dict[DeviceId, list[Mapping[str, int]]] = {}
        self._counted: dict[tuple[str, str], dict[tuple[str, str], int]] = {}
        self._chosen: list[list[ChosenDevice]] = [[] for _ in claims]
        self._steps = 0

    def run(self) -> list[list[ChosenDevice]] | None:
        for claim in self._claims:
            least = sum(min(self._number(ask) for ask in asks) for asks in claim.requests)
            if least > MAX_DEVICES_PER_CLAIM:
                raise CannotAllocate(f"{least} devices are requested, a claim may have {MAX_DEVICES_PER_CLAIM}")
        if self._claim(0):
            return self._chosen
        broken = next((pool for pool in self._market.pools if pool.invalid_because), None)
        if broken is not None:
            raise CannotAllocate(f"pool {broken.driver}/{broken.name} is invalid: {broken.invalid_because}")
        return None

    # -- what is asked -------------------------------------------------------------------------------------------
    def _number(self, ask: DeviceAsk) -> int:
        if ask.class_name not in self._market.classes:
            raise CannotAllocate(f"request {ask.full_name}: device class {ask.class_name} not found")
        if not ask.takes_all:
            return ask.count
        found = self._all[id(ask)] = []
        for pool in self._market.pools:
            if not pool.is_usable:
                state = "being updated" if pool.is_incomplete else "invalid"
                name = f"{pool.driver}/{pool.name}"
                raise CannotAllocate(f"request {ask.full_name}: asks for all devices, but pool {name} is {state}")
            found += [(pool, device) for device in pool.devices if self._suits(ask, device) and self._room(ask, device)]
        return len(found)

    def _suits(self, ask: DeviceAsk, device: PublishedDevice) -> bool:
        if device.needs_conditions:
            return False
        try:
            if not _is_chosen(ask, device, self._market.classes):
                return False
        except SelectorFailed as error:
            raise CannotAllocate(f"request {ask.full_name}: {error}") from error
        return not device.has_own_reach or device.reach.includes(self._market.node, self._market.reaches)

    def _room(self, ask: DeviceAsk, device: PublishedDevice) -> bool:
        """Whether the capacity that the request consumes is left."""
        amounts = consumed(ask.capacity, device.capacity)
        if amounts is None:
            return False
        used: Mapping[str, int] = self._market.usage.consumed.get(device.id, {})
        chosen = self._shared.get(device.id, ())
        return all(
            amount + used.get(name, 0) + sum(each.get(name, 0) for each in chosen) <= device.capacity[name].value
            for name, amount in amounts.items()
        )

    # -- the search ----------------------------------------------------------------------------------------------
    def _claim(self, claim: int) -> bool:
        return claim >= len(self._claims) or self._request(claim, 0)

    def _request(self, claim: int, request: int) -> bool:
        asked = self._claims[claim].requests
        if request >= len(asked):
            return self._claim(claim + 1)
        return any(self._ask(claim, request, ask) for ask in asked[request])

    def _ask(self, claim: int, request: int, ask: DeviceAsk) -> bool:
        number = len(self._all[id(ask)]) if ask.takes_all else ask.count
        if not number or len(self._chosen[claim]) + number > MAX_DEVICES_PER_CLAIM:
            return False
        if ask.takes_all:
            return self._take_all(claim, request, ask, 0)
        return self._take(claim, request, ask, number, 0)

    def _take_all(self, claim: int, request: int, ask: DeviceAsk, position: int) -> bool:
        devices = self._all[id(ask)]
        if position >= len(devices):
            return self._request(claim, request + 1)
        pool, device = devices[position]
        undo = self._choose(claim, ask, pool, device, must=True)
        if undo is None:
            return False
        if self._take_all(claim, request, ask, position + 1):
            return True
        undo()
        return False

    def _take(self, claim: int, request: int, ask: DeviceAsk, left: int, start: int) -> bool:
        if not left:
            return self._request(claim, request + 1)
        for place in range(start, len(self._devices)):
            pool, device = self._devices[place]
            if self._is_taken(claim, ask, device) or not self._suits(ask, device) or not self._room(ask, device):
                continue
            self._steps += 1
            if self._steps > MAX_STEPS:
                raise CannotAllocate("timed out trying to allocate devices")
            undo = self._choose(claim, ask, pool, device)
            if undo is None:
                continue
            if self._take(claim, request, ask, left - 1, place + 1):
                return True
            undo()
        return False

    # -- one device ----------------------------------------------------------------------------------------------
    def _is_taken(self, claim: int, ask: DeviceAsk, device: PublishedDevice) -> bool:
        if ask.is_admin:
            return claim in self._held.get(device.id, ())
        return device.id in self._market.usage.taken or bool(self._held.get(device.id))

    def _choose(
        self, claim: int, ask: DeviceAsk, pool: DevicePool, device: PublishedDevice, *, must: bool = False
    ) -> Callable[[], None] | None:
        """Take the device; a function that gives it back, or None when it cannot be had."""
        if self._is_taken(claim, ask, device) or _is_tainted(ask, device):
            return None
        is_first_share = device.id not in self._market.usage.shares and device.id not in self._shared
        counts = bool(device.counters) and (not device.is_shareable or is_first_share)
        if counts and not self._count(pool, device):
            return None
        if not self._satisfies(claim, ask, device):
            if counts:
                self._uncount(pool, device)
            if must:
                raise CannotAllocate(f"request {ask.full_name}: a constraint excludes device {device.id.device}")
            return None
        if not self._room(ask, device):
            if counts:
                self._uncount(pool, device)
            return None
        amounts = consumed(ask.capacity, device.capacity) if device.is_shareable else None
        if amounts is None:
            self._held.setdefault(device.id, set()).add(claim)
        else:
            self._shared.setdefault(device.id, []).append(amounts)
        self._chosen[claim].append(ChosenDevice(ask, device, amounts))

        def undo() -> None:
            self._chosen[claim].pop()
            if amounts is None:
                self._held[device.id].discard(claim)
            else:
                self._shared[device.id].pop()
                if not self._shared[device.id]:
                    del self._shared[device.id]
            if counts:
                self._uncount(pool, device)

        return undo

    def _satisfies(self, claim: int, ask: DeviceAsk, device: PublishedDevice) -> bool:
        for constraint in self._claims[claim].constraints:
            if not constraint.concerns(ask):
                continue
            attribute = attribute_of(device, constraint.attribute)
            if attribute is None:
                return False
            values = set(values_of(attribute))
            others = _values(self._chosen[claim], constraint)
            if constraint.must_differ and any(values & other for other in others):
                return False
            if not constraint.must_differ and not values.intersection(*others):
                return False
        return True

    # -- counters that partitions of a device share --------------------------------------------------------------
    def _count(self, pool: DevicePool, device: PublishedDevice) -> bool:
        left = self._left(pool)
        for name, amounts in device.counters:
            for counter, amount in amounts.items():
                left[name, counter] -= amount
        if any(amount < 0 for amount in left.values()):
            self._uncount(pool, device)
            return False
        return True

    def _uncount(self, pool: DevicePool, device: PublishedDevice) -> None:
        left = self._left(pool)
        for name, amounts in device.counters:
            for counter, amount in amounts.items():
                left[name, counter] += amount

    def _left(self, pool: DevicePool) -> dict[tuple[str, str], int]:
        key = (pool.driver, pool.name)
        left = self._counted.get(key)
        if left is None:
            left = self._counted[key] = {
                (name, counter): amount
                for name, amounts in pool.counters.items()
                for counter, amount in amounts.items()
            }
            for device in (*pool.devices, *pool.elsewhere):
                if device.counters and self._market.usage.has(device.id):
                    for name, amounts in device.counters:
                        for counter, amount in amounts.items():
                            left[name, counter] -= amount
        return left


def _is_tainted(ask: DeviceAsk, device: PublishedDevice) -> bool:
    return any(taint.effect in _PREVENTING and not is_tolerated(taint, ask.tolerated) for taint in device.taints)


def attribute_of(device: PublishedDevice, name: str) -> AttributeValue | None:
    """A name in the driver's own domain may be written short."""
    stated = device.attributes.get(name)
    domain, slash, short = name.rpartition("/")
    if stated is None and slash and domain == device.id.driver:
        stated = device.attributes.get(short)
    return stated


def _values(chosen: Sequence[ChosenDevice], constraint: ConstraintAsk) -> list[set[AttributeValue]]:
    found = (attribute_of(each.device, constraint.attribute) for each in chosen if constraint.concerns(each.ask))
    return [set(values_of(value)) for value in found if value is not None]
