"""Amounts of resources and Volcano's comparisons of them, to the letter.

cpu is in milli-cores, memory in bytes, `pods` a count, every other dimension in thousandths. cpu and memory are
always present; which *other* dimensions are present matters to some comparisons, so a missing key is not a zero.
Columns over nodes live in core.node_table; this is the amount of one task, job or queue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from volcano.api.device_families import is_counted_on_cards_only
from volcano.api.meta import Quantities
from volcano.api.quantity import Quantity, parse_quantity

EPSILON: Final = 0.1
CPU: Final = "cpu"
MEMORY: Final = "memory"
PODS: Final = "pods"
ACCELERATORS: Final = ("gpu", "npu", "ascend", "mlu", "dcu", "xpu")
"""Parts of the names of resources that count accelerators."""
OWN_DOMAIN: Final = "volcano.sh"
"""Its resources (vgpu-memory …) are parts of cards, and the plugin deviceshare accounts for them."""
GREATEST: Final = 1.7976931348623157e308
GREATEST_SCALAR: Final = float(2**63 - 1)


def fits(amount: float, limit: float) -> bool:
    """An amount fits when it exceeds the limit by less than the tolerance."""
    return amount < limit or abs(amount - limit) < EPSILON


def is_counted(name: str) -> bool:
    """Whether a resource name is a dimension at all: extended, huge pages, volumes, storage, pods."""
    if name in (CPU, MEMORY, PODS, "ephemeral-storage"):
        return True
    if name.startswith(("count/", "requests.")) or is_counted_on_cards_only(name):
        return False
    return "/" in name or name.startswith(("hugepages-", "attachable-volumes-"))


def is_accelerator(name: str) -> bool:
    """Whether an extended resource counts whole accelerators (nvidia.com/gpu, huawei.com/Ascend910 …)."""
    owner, _, kind = name.partition("/")
    return owner not in ("", OWN_DOMAIN) and any(part in kind.lower() for part in ACCELERATORS)


def ratio(amount: float, whole: float) -> float:
    """A share; of nothing, all is taken as soon as anything is."""
    if whole == 0.0:
        return 0.0 if amount == 0.0 else 1.0
    return amount / whole


class Resources:
    """A mutable amount. What several owners share (a task's request) is by convention never changed."""

    __slots__ = ("amounts", "vector")

    def __init__(self, amounts: Mapping[str, float] | None = None, /, **named: float) -> None:
        self.amounts: dict[str, float] = {CPU: 0.0, MEMORY: 0.0}
        if amounts:
            self.amounts.update(amounts)
        if named:
            self.amounts.update(named)
        self.vector: object = None  # core.node_table keeps the request as an array here

    # -- reading --------------------------------------------------------------------------------------------------
    def __getitem__(self, name: str) -> float:
        return self.amounts.get(name, 0.0)

    def __contains__(self, name: str) -> bool:
        return name in self.amounts

    def __iter__(self) -> Iterator[str]:
        return iter(self.amounts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Resources) and self.amounts == other.amounts

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Resources({self})"

    def __str__(self) -> str:
        """Volcano's text form: `cpu 1000.00, memory 2048.00, nvidia.com/gpu 1000.00`."""
        scalars = (f", {name} {_text(self.amounts[name])}" for name in sorted(self.scalars))
        return f"cpu {_text(self[CPU])}, memory {_text(self[MEMORY])}" + "".join(scalars)

    @property
    def scalars(self) -> list[str]:
        return [name for name in self.amounts if name not in (CPU, MEMORY)]

    @property
    def names(self) -> list[str]:
        """The dimensions of which there is something."""
        return [name for name, amount in self.amounts.items() if amount >= EPSILON]

    @property
    def is_empty(self) -> bool:
        return all(amount < EPSILON for name, amount in self.amounts.items() if name != PODS)

    def copy(self) -> Resources:
        copied = Resources.__new__(Resources)
        copied.amounts = self.amounts.copy()
        copied.vector = None
        return copied

    # -- arithmetic -----------------------------------------------------------------------------------------------
    def add(self, other: Resources) -> Resources:
        mine = self.amounts
        for name, amount in other.amounts.items():
            mine[name] = mine.get(name, 0.0) + amount
        return self

    def subtract(self, other: Resources) -> Resources:
        """Without a check: the result may be negative. An amount without other dimensions gets none."""
        mine = self.amounts
        flat = len(mine) == 2
        for name, amount in other.amounts.items():
            if flat and name not in mine:
                continue
            mine[name] = mine.get(name, 0.0) - amount
        return self

    def withdraw(self, other: Resources) -> Resources:
        """Take out what was added before; a dimension of which nothing remains is as if it had never been added."""
        mine = self.amounts
        for name, amount in other.amounts.items():
            left = mine.get(name, 0.0) - amount
            if left == 0.0 and name != CPU and name != MEMORY:
                mine.pop(name, None)
            else:
                mine[name] = left
        return self

    def __add__(self, other: Resources) -> Resources:
        return self.copy().add(other)

    def __sub__(self, other: Resources) -> Resources:
        return self.copy().subtract(other)

    def __mul__(self, factor: float) -> Resources:
        return Resources({name: amount * factor for name, amount in self.amounts.items()})

    def exceeding(self, other: Resources) -> Resources:
        """What of this goes beyond the other; other dimensions only where they do."""
        excess = Resources()
        for name, amount in self.amounts.items():
            over = amount - other[name]
            if over > 0.0:
                excess.amounts[name] = over
        return excess

    def limited(self, other: Resources, *, missing_is_infinite: bool) -> Resources:
        """The smaller per dimension of this; what only the other has is not added."""
        result = self.copy()
        for name, amount in self.amounts.items():
            limit = other.amounts.get(name)
            if limit is None:
                if not missing_is_infinite:
                    result.amounts[name] = 0.0
            elif limit < amount:
                result.amounts[name] = limit
        return result

    def at_least(self, other: Resources) -> Resources:
        """The larger per dimension of both; negative scalars are dropped."""
        result = Resources({CPU: max(self[CPU], other[CPU]), MEMORY: max(self[MEMORY], other[MEMORY])})
        for name in (*self.scalars, *other.scalars):
            amount = max(self.amounts.get(name, 0.0), other.amounts.get(name, 0.0))
            if amount >= 0.0:
                result.amounts[name] = amount
        return result

    # -- comparisons ----------------------------------------------------------------------------------------------
    def fits(self, limit: Resources) -> bool:
        """LessEqual with missing = zero: every dimension present here is within the limit."""
        bounds = limit.amounts
        for name, amount in self.amounts.items():
            bound = bounds.get(name, 0.0)
            if amount > bound and amount - bound >= EPSILON:
                return False
        return True

    def exceeds_requested(self, limit: Resources, request: Resources) -> list[str]:
        """Requested dimensions strictly above the limit; `pods` never counts (LEdim fails for these)."""
        flat = len(self.amounts) == 2
        over = []
        for name, asked in request.amounts.items():
            if asked <= 0.0 or name == PODS or (flat and name not in (CPU, MEMORY)):
                continue
            if self[name] > limit[name]:
                over.append(name)
        return sorted(over, key=_cpu_memory_first) if len(over) > 1 else over

    def within_requested(self, limit: Resources, request: Resources) -> bool:
        """LEdim: no requested dimension is above the limit."""
        mine, bounds = self.amounts, limit.amounts
        flat = len(mine) == 2
        for name, asked in request.amounts.items():
            if asked > 0.0 and mine.get(name, 0.0) > bounds.get(name, 0.0) and name != PODS:
                if flat and name not in (CPU, MEMORY):
                    continue
                return False
        return True

    def partly_within(self, limit: Resources, request: Resources) -> bool:
        """LEpart: some requested dimension of which there is anything is within the limit."""
        return any(
            fits(self[name], limit[name])
            for name, asked in request.amounts.items()
            if asked > 0.0 and name != PODS and not (self[name] < EPSILON and limit[name] < EPSILON)
        )

    def beyond_stated(self, limit: Resources, request: Resources) -> bool:
        """GTrel: some requested dimension that the limit names is strictly above it."""
        for name, asked in request.amounts.items():
            if asked <= 0.0 or name == PODS:
                continue
            stated = limit[name] >= EPSILON if name in (CPU, MEMORY) else name in limit
            if stated and self[name] > limit[name]:
                return True
        return False


def resources_from(quantities: Quantities | None) -> Resources:
    """A ResourceList of the wire; names that are no dimensions are dropped, malformed amounts raise."""
    return resources_of({name: parse_quantity(text) for name, text in (quantities or {}).items() if is_counted(name)})


def resources_of(amounts: Mapping[str, Quantity]) -> Resources:
    """The same from exact amounts."""
    result = Resources()
    for name, quantity in amounts.items():
        if is_counted(name):
            result.amounts[name] = float(quantity.value if name in (MEMORY, PODS) else quantity.milli)
    return result


def total(amounts: Iterable[Resources]) -> Resources:
    summed = Resources()
    for amount in amounts:
        summed.add(amount)
    return summed


def dominant_share(amount: Resources, whole: Resources) -> float:
    """The largest share of any dimension the whole has; never below zero."""
    mine = amount.amounts
    share = 0.0
    for name, limit in whole.amounts.items():
        if limit >= EPSILON:
            part = mine.get(name, 0.0) / limit
            if part > share:
                share = part
    return share


def _cpu_memory_first(name: str) -> tuple[int, str]:
    return ({CPU: 0, MEMORY: 1}.get(name, 2), name)


def _text(amount: float) -> str:
    if amount >= GREATEST:
        return "maxFloat"
    return "maxInt" if amount >= GREATEST_SCALAR else f"{amount:.2f}"
