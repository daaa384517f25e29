"""Arithmetic on amounts of resources by name, exact to the nano-unit. The scheduler has arrays of its own for speed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from volcano.api.meta import Quantities
from volcano.api.quantity import Quantity, QuantityError, parse_quantity

Amounts: TypeAlias = dict[str, Quantity]


def parsed(quantities: Quantities | None) -> Amounts:
    """Wire quantities as amounts; raises QuantityError for text that is not a quantity."""
    return {name: parse_quantity(text) for name, text in (quantities or {}).items()}


def amounts_of(quantities: Quantities | None) -> Amounts:
    """Wire quantities as amounts; text that is not a quantity counts as absent, since the server refused it already."""
    amounts: Amounts = {}
    for name, text in (quantities or {}).items():
        try:
            amounts[name] = parse_quantity(text)
        except (QuantityError, TypeError):
            continue
    return amounts


def added(*many: Mapping[str, Quantity]) -> Amounts:
    """The sum by name."""
    total: Amounts = {}
    for amounts in many:
        for name, amount in amounts.items():
            total[name] = total[name] + amount if name in total else amount
    return total


def larger(one: Mapping[str, Quantity], other: Mapping[str, Quantity]) -> Amounts:
    """The larger of both by name; a name that only one has keeps its amount."""
    result = dict(one)
    for name, amount in other.items():
        if name not in result or amount > result[name]:
            result[name] = amount
    return result


def times(amounts: Mapping[str, Quantity], count: int) -> Amounts:
    """Each amount multiplied by a count."""
    return {name: amount * count for name, amount in amounts.items()}


def to_wire(amounts: Mapping[str, Quantity]) -> dict[str, str]:
    """The canonical text of each amount, names in order."""
    return {name: str(amounts[name]) for name in sorted(amounts)}
