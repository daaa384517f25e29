"""ChangeCandidate: a change that may let a job run, before it is tried; and what changes cost, the least first."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from volcano.scheduler.explain.owners import Operation

NAME: Final = 0  # a name written wrongly
REMEDY: Final = 1  # exactly what is missing: open, resume, create
GANG: Final = 2  # a smaller gang
REQUEST: Final = 3  # a smaller request
CONDITION: Final = 4  # a condition given up
OTHER_QUEUE: Final = 5
REPLICAS: Final = 6
LIMIT: Final = 7  # a limit that an administrator raises


@dataclass(slots=True, frozen=True)
class ChangeCandidate:
    """A JSON patch of the owner's body, to be tried."""

    cost: int
    sentence: str
    operations: list[Operation] = field(default_factory=list)
