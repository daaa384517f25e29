"""What a queue holds of each resource against what it deserves, is guaranteed and may have; and who is below whom."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from volcano.api.meta import Quantities
from volcano.api.pods.amounts import amounts_of
from volcano.api.quantity import Quantity
from volcano.api.scheduling import ROOT_QUEUE, deserved_amounts

SHOWN_FIRST: Final = ("cpu", "memory")
_ZERO: Final = Quantity(0)


class HeldShare(msgspec.Struct, frozen=True):
    """One resource of one queue; None where the queue states nothing. `whole` is what a full bar stands for."""

    resource: str
    allocated: Quantity
    deserved: Quantity | None
    guarantee: Quantity | None
    capability: Quantity | None
    borrowed: Quantity
    whole: Quantity


def queue_shares(
    deserved: Quantities | None,
    guarantee: Quantities | None,
    capability: Quantities | None,
    allocated: Quantities | None,
    total: Mapping[str, Quantity],
) -> list[HeldShare]:
    """CPU and memory first; `total` is what the cluster has. Pods are a count, and no share is stated of them."""
    deserves, guaranteed = amounts_of(deserved_amounts(deserved, guarantee)), amounts_of(guarantee)
    limits, held = amounts_of(capability), amounts_of(allocated)
    named = {*deserves, *guaranteed, *limits, *held} - {"pods"}
    names = [*(name for name in SHOWN_FIRST if name in named), *sorted(named - {*SHOWN_FIRST})]
    shares = []
    for name in names:
        holds, due = held.get(name, _ZERO), deserves.get(name)
        borrowed = holds - due if due is not None and holds > due else _ZERO
        whole = limits.get(name) or total.get(name) or due or holds
        shares.append(HeldShare(name, holds, due, guaranteed.get(name), limits.get(name), borrowed, whole))
    return shares


def children_of(parents: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """From (queue, parent): names below each parent, in order. A queue whose parent is not there is below ""."""
    given = sorted(parents)
    names = {name for name, _ in given}
    children: dict[str, list[str]] = {}
    for name, stated in given:
        parent = stated or (ROOT_QUEUE if name != ROOT_QUEUE else "")
        children.setdefault(parent if parent in names and parent != name else "", []).append(name)
    return children
