"""Repetitions: a policy that evicts and starts the same jobs again and again at one instant is found and named.

Without an end to it virtual time would stand still. On a cluster the same policy would go on evicting in every cycle.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Final

MAX_EVICTIONS_AFTER_A_START: Final = 3  # of one job at one instant; more is a repetition
MAX_CYCLES_TO_REST: Final = 10  # after a repetition was found, for one that evicts nothing
MAX_CYCLES_AT_ONE_INSTANT: Final = 100_000
MAX_FRUITLESS_INSTANTS: Final = 200  # with repetitions and no job that ends between them; then the simulation ends


@dataclass(slots=True)
class JobRepetition:
    """A job that a policy evicts as soon as it has started it."""

    first_seconds: float  # when it was found first
    evictions: int = 0  # after a start at the same instant

    @property
    def why(self) -> str:
        return (
            f"evicted {self.evictions} times as soon as it had started, first at {self.first_seconds:g} s: "
            f"what starts it and what evicts it order jobs differently"
        )


@dataclass(slots=True)
class Repetitions:
    """Follows the cycles of one instant."""

    instants: int = 0
    jobs: dict[str, JobRepetition] = field(default_factory=dict)
    _fruitless: int = 0
    _started: set[str] = field(default_factory=set)
    _evicted: set[str] = field(default_factory=set)  # by the cycle that runs
    _counts: Counter[str] = field(default_factory=Counter)
    _cycles: int = 0
    _found_after: int | None = None  # cycles of this instant

    def begin_instant(self) -> None:
        self._started.clear()
        self._evicted.clear()
        self._counts.clear()
        self._cycles, self._found_after = 0, None

    @property
    def is_endless(self) -> bool:
        """Whether nothing but evictions and starts happens any more, however much time passes."""
        return self._fruitless >= MAX_FRUITLESS_INSTANTS

    def end_job(self) -> None:
        self._fruitless = 0

    def start(self, job: str) -> None:
        self._started.add(job)

    def evict(self, job: str) -> None:
        self._evicted.add(job)

    def must_rest(self, now: float) -> bool:
        """A cycle is over: whether it must be the last one of this instant, because they would never end."""
        self._cycles += 1
        self._counts.update(self._evicted & self._started)
        rests = not self._evicted
        self._evicted.clear()
        if self._found_after is None and (
            self._cycles >= MAX_CYCLES_AT_ONE_INSTANT
            or any(count > MAX_EVICTIONS_AFTER_A_START for count in self._counts.values())
        ):
            self._found_after = self._cycles
        if self._found_after is None or not (rests or self._cycles >= self._found_after + MAX_CYCLES_TO_REST):
            return False
        self.instants += 1
        self._fruitless += 1
        for job, count in self._counts.items():
            self.jobs.setdefault(job, JobRepetition(now)).evictions += count
        return True
