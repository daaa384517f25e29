"""A number or a percentage of a total, as budgets and rollouts state their bounds."""

from __future__ import annotations


def share(amount: int | str, of: int, *, up: bool) -> int:
    """A number as it is, a percentage rounded up or down; other text, which validation refuses, counts as zero."""
    if isinstance(amount, str):
        percent = int(amount.removesuffix("%")) if amount.endswith("%") and amount[:-1].isdecimal() else 0
        return -(-of * percent // 100) if up else of * percent // 100
    return amount
