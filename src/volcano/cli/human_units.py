"""Amounts of resources as people read them: `3.5` CPUs, `12.3Gi` of memory."""

from __future__ import annotations

from typing import Final

from volcano.api.quantity import BINARY, NANO, Quantity

BYTES: Final = ("memory", "ephemeral-storage")
HUGE_PAGES: Final = "hugepages-"
ROUNDED_FROM: Final = 100
"""Larger numbers are shown without decimals, since their first three digits say enough."""


def human(resource: str, amount: Quantity) -> str:
    """At most one decimal; bytes with the largest unit that leaves a number of at least one."""
    if resource in BYTES or resource.startswith(HUGE_PAGES):
        return _bytes(amount.value)
    return _number(amount.nanos / NANO)


def _bytes(count: int) -> str:
    for unit, size in sorted(BINARY.items(), key=lambda each: -each[1]):
        if count >= size:
            return f"{_number(count / size)}{unit}"
    return str(count)


def _number(value: float) -> str:
    if 0 < value < 0.1:
        return f"{value * 1000:.0f}m"
    return f"{value:.{0 if value >= ROUNDED_FROM else 1}f}".removesuffix(".0")
