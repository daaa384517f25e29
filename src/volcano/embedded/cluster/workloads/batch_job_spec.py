"""The fields of a batch/v1 Job's spec that are read, and the text form of sets of indexes."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from volcano.api.meta import JSON, Model

MAX_INDEXES_PER_RANGE: Final = 1_000_000


class BatchJobSpec(Model, frozen=True):
    parallelism: int | None = None
    completions: int | None = None
    backoff_limit: int = 6
    active_deadline_seconds: int | None = None
    suspend: bool = False
    completion_mode: str = ""
    ttl_seconds_after_finished: int | None = None
    template: JSON | None = None
    managed_by: str | None = None

    @property
    def at_once(self) -> int:
        return 1 if self.parallelism is None else self.parallelism

    @property
    def wanted(self) -> int | None:
        """How many must succeed; None for a Job that ends with the first success of a group of workers."""
        return 1 if self.completions is None and self.parallelism is None else self.completions

    @property
    def is_indexed(self) -> bool:
        return self.completion_mode == "Indexed"


def parse_indexes(text: str) -> set[int | None]:
    """`1,3-5,7` as a set; malformed parts are ignored."""
    found: set[int | None] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        if first.isdecimal() and (last or first).isdecimal():
            found.update(range(int(first), min(int(last or first), int(first) + MAX_INDEXES_PER_RANGE) + 1))
    return found


def format_indexes(indexes: Iterable[int]) -> str:
    """A set of numbers in the shortest form: runs of three and more as ranges."""
    runs: list[list[int]] = []
    for index in sorted(indexes):
        if runs and runs[-1][-1] == index - 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    parts = [f"{run[0]}-{run[-1]}" if len(run) > 2 else ",".join(map(str, run)) for run in runs]
    return ",".join(parts)
