"""The bounds of a rollout: how many pods more or fewer than wanted may exist meanwhile."""

from __future__ import annotations

from volcano.api.core import Deployment
from volcano.embedded.cluster.shares import share


def limits(deployment: Deployment, wanted: int) -> tuple[int, int]:
    """maxSurge and maxUnavailable as numbers; at least one of the two is not zero."""
    rolling = (deployment.spec.strategy or {}).get("rollingUpdate") or {}
    surge = share(rolling.get("maxSurge", "25%"), wanted, up=True)
    unavailable = share(rolling.get("maxUnavailable", "25%"), wanted, up=False)
    return (surge, unavailable) if surge or unavailable else (0, 1)
