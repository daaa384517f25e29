"""What a session is given of the outside: chance to break ties, a stopwatch to measure with."""

from __future__ import annotations

from typing import Final, Protocol

_MASK: Final = 2**64 - 1


class Chance(Protocol):
    """A seeded source: the same seed and the same questions give the same answers."""

    def below(self, count: int) -> int:
        """A number from 0 up to, not including, count."""
        ...


class Stopwatch(Protocol):
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


class StoppedWatch:
    """For those who do not measure."""

    def read(self) -> float:
        return 0.0
