"""How far a rollout may stray from the number of pods that is wanted."""

from __future__ import annotations

from volcano.api.core import Deployment


def limits(deployment: Deployment, wanted: int) -> tuple[int, int]:
    """How many too many there may be, and how many too few; one of the two at least."""
    rolling = (deployment.spec.strategy or {}).get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def share(amount: int | str, of: int, *, up: bool) -> int:
    """A number, or a percentage rounded up or down."""
    if isinstance(amount, str):
        percent = int(amount.removesuffix("%")) if amount.removesuffix("%").isdecimal() else 0
        return -(-of * percent // 100) if up else of * percent // 100
    return amount
