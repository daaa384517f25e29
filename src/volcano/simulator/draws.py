"""Numbers drawn from distributions by a seeded generator: the same on every platform and version."""

from __future__ import annotations

import math
from typing import Final

from volcano.scheduler.model import SeededChance

STEPS: Final = 2**53


class Draws:
    def __init__(self, seed: int) -> None:
        self._chance = SeededChance(seed)

    def share(self) -> float:
        """At least 0 and below 1."""
        return self._chance.below(STEPS) / STEPS

    def between(self, low: float, high: float) -> float:
        return low + (high - low) * self.share()

    def exponential(self, mean: float) -> float:
        return -mean * math.log(1.0 - self.share())

    def log_normal(self, median: float, sigma: float) -> float:
        normal = math.sqrt(-2.0 * math.log(1.0 - self.share())) * math.cos(2.0 * math.pi * self.share())
        return median * math.exp(sigma * normal)
