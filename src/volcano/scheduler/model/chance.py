"""What a session gets from outside: chance to break ties, a timer for metrics."""

from __future__ import annotations

from typing import Final, Protocol

_MASK: Final = 2**64 - 1


class Chance(Protocol):
    """A seeded source: the same seed and the same questions give the same answers."""

    def below(self, count: int) -> int:
        """A number from 0 up to, not including, count."""
        ...


class Timer(Protocol):
    """Seconds that only grow; a reading never influences a decision."""

    def read(self) -> float: ...


class SeededChance:
    """SplitMix64: a few lines, the same on every platform and version."""

    def __init__(self, seed: int = 0) -> None:
        self._state = seed & _MASK

    def below(self, count: int) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        mixed = self._state
        mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
        return (mixed ^ (mixed >> 31)) % count


class StoppedTimer:
    """Measures nothing."""

    def read(self) -> float:
        return 0.0
