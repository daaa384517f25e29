"""Quantities of queues as exact amounts, and the few comparisons that the rules are made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, TypeAlias

from volcano.api.meta import Quantities
from volcano.api.quantity import Quantity, QuantityError, parse_quantity
from volcano.api.scheduling import Queue, deserved_amounts

Amounts: TypeAlias = Mapping[str, Quantity]

PLAIN: Final = ("cpu", "memory", "pods", "ephemeral-storage")
NONE: Final = Quantity(0)


def amounts(quantities: Quantities | None) -> dict[str, Quantity]:
    """The quantities that can be parsed; the check of the object itself refuses the others."""
    found = {}
    for name, text in (quantities or {}).items():
        try:
            found[name] = parse_quantity(text)
        except QuantityError:
            continue
    return found


def counted(quantities: Quantities | None) -> dict[str, Quantity]:
    """Only the resources that the hierarchy compares: no object counts, no unknown plain names."""
    return {
        name: amount
        for name, amount in amounts(quantities).items()
        if name in PLAIN or name.startswith("hugepages-") or ("/" in name and not name.startswith("count/"))
    }


def capability(queue: Queue) -> dict[str, Quantity]:
    return counted(queue.spec.capability)


def deserved(queue: Queue) -> dict[str, Quantity]:
    """At least the guarantee: a stated amount below it is refused."""
    return counted(deserved_amounts(queue.spec.deserved, guaranteed_quantities(queue)))


def guarantee(queue: Queue) -> dict[str, Quantity]:
    return counted(guaranteed_quantities(queue))


def guaranteed_quantities(queue: Queue) -> Quantities | None:
    return queue.spec.guarantee.resource if queue.spec.guarantee is not None else None


def total(several: Iterable[Amounts]) -> dict[str, Quantity]:
    added: dict[str, Quantity] = {}
    for each in several:
        for name, amount in each.items():
            added[name] = added[name] + amount if name in added else amount
    return added


def first_excess(requested: Amounts, available: Amounts) -> str | None:
    """The first resource, by name, of which more is requested than available; a missing one is zero."""
    return next((name for name in sorted(requested) if requested[name] > available.get(name, NONE)), None)


def allocated_pods(queue: Queue) -> int:
    return amounts(queue.status.allocated).get("pods", NONE).value
