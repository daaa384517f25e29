"""How often something may be done: a burst at once, then a number per second. Nothing is waited for here."""

from __future__ import annotations


class Pace:
    """A bucket of permissions that fills as time passes."""

    def __init__(self, burst: float, per_second: float, now: float) -> None:
        self._burst, self._per_second = burst, per_second
        self._left, self._counted = burst, now

    def wait(self, now: float) -> float:
        """Seconds until the next is allowed; 0 when it is."""
        self._fill(now)
        return max(0.0, (1 - self._left) / self._per_second)

    def take(self, now: float) -> None:
        """One was done; also one too many only puts off the next."""
        self._fill(now)
        self._left = max(self._left - 1, -self._burst)

    def _fill(self, now: float) -> None:
        self._left = min(self._burst, self._left + max(now - self._counted, 0.0) * self._per_second)
        self._counted = now
