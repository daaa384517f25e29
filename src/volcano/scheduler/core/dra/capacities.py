"""How much of a device's capacity a request consumes: what it asks for, rounded as the device's policy says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from volcano.api.quantity import NANO, Quantity, parse_quantity
from volcano.scheduler.core.dra.published import CapacityOffer


def consumed(asked: Mapping[str, int], offers: Mapping[str, CapacityOffer]) -> dict[str, int] | None:
    """Capacity → billionths; None when the request names a capacity that is not offered, or a policy forbids it."""
    if any(name not in offers for name in asked):
        return None
    amounts = {}
    for name, offer in offers.items():
        amount = _consumed_of(asked.get(name), offer)
        if _is_forbidden(amount, offer.policy):
            return None
        amounts[name] = amount
    return amounts


def _consumed_of(asked: int | None, offer: CapacityOffer) -> int:
    policy = offer.policy or {}
    if asked is None:
        return _nanos(policy["default"]) if policy.get("default") is not None else offer.value
    limits = policy.get("validRange")
    if limits and limits.get("min") is not None:
        least = _nanos(limits["min"])
        if asked < least:
            return least
        if limits.get("step") is None:
            return asked
        step, units = _units(limits["step"]), Quantity(asked).value - _units(limits["min"])
        return (_units(limits["min"]) + step * -(-units // step)) * NANO
    return next((value for value in map(_nanos, policy.get("validValues") or ()) if asked <= value), asked)


def _is_forbidden(amount: int, policy: Mapping[str, Any] | None) -> bool:
    if not policy or (policy.get("default") is not None and amount == _nanos(policy["default"])):
        return False
    limits = policy.get("validRange")
    if limits:
        if limits.get("max") is not None and amount > _nanos(limits["max"]):
            return True
        if limits.get("step") is not None:
            return bool((Quantity(amount).value - _units(limits["min"])) % _units(limits["step"]))
        return False
    values = policy.get("validValues")
    return bool(values) and amount not in map(_nanos, values or ())


def _nanos(stated: Any) -> int:
    return parse_quantity(stated).nanos


def _units(stated: Any) -> int:
    return parse_quantity(stated).value
