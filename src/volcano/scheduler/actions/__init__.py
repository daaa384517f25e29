"""What a cycle does, in configured order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, TypeAlias

from volcano.scheduler.actions.allocate import allocate
from volcano.scheduler.actions.backfill import backfill
from volcano.scheduler.actions.enqueue import enqueue
from volcano.scheduler.actions.gangpreempt import gangpreempt
from volcano.scheduler.actions.gangreclaim import gangreclaim
from volcano.scheduler.actions.preempt import preempt
from volcano.scheduler.actions.reclaim import reclaim
from volcano.scheduler.actions.shuffle import shuffle
from volcano.scheduler.framework.session import Session

Action: TypeAlias = Callable[[Session], None]

ACTIONS: Final[Mapping[str, Action]] = {
    "enqueue": enqueue,
    "allocate": allocate,
    "backfill": backfill,
    "preempt": preempt,
    "reclaim": reclaim,
    "gangpreempt": gangpreempt,
    "gangreclaim": gangreclaim,
    "shuffle": shuffle,
}
