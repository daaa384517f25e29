"""The scheduler's answer to GET /job-priorities: what the place of each waiting job is made of."""

from __future__ import annotations

import msgspec


class JobPriority(msgspec.Struct, frozen=True, rename="camel"):
    """The value of its priority class, and what its waiting adds to it."""

    queue: str
    priority: int
    aging: float

    @property
    def total(self) -> float:
        return self.priority + self.aging


class JobPriorities(msgspec.Struct, frozen=True, rename="camel"):
    """By namespace/name of the Job, or of the PodGroup where no Job made it."""

    points_per_hour: float
    jobs: dict[str, JobPriority]
