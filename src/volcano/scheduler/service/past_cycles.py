"""PastCycles: the last cycles with what each decided, for GET /cycles. One that equals the one before is left out."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import Final

from volcano.api.jobs.cycles import CycleBind, CycleEviction, PastCycle
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.service.decider import Overview

MAX_CYCLES: Final = 200
MAX_ENTRIES: Final = 100
"""Of each list of a cycle; a record stays small however many pods are placed."""
PARTS_OF_CYCLE: Final = ("open", "cycle", "close")


class PastCycles:
    def __init__(self) -> None:
        self._cycles: deque[PastCycle] = deque(maxlen=MAX_CYCLES)

    def add(self, number: int, at: datetime, decisions: Decisions, overview: Overview) -> None:
        """Cycles that placed and evicted nothing are kept only where the reasons for waiting are new."""
        record = cycle_record(number, at, decisions, overview)
        last = self._cycles[-1] if self._cycles else None
        is_news = record.bound or record.evicted or last is None or record.waiting.keys() != last.waiting.keys()
        if not is_news and last is not None and not (last.bound or last.evicted):
            self._cycles.pop()  # the newest of equal ones stays
        self._cycles.append(record)

    def newest(self, limit: int, before: int = 0) -> list[PastCycle]:
        found = [record for record in reversed(self._cycles) if not before or record.number < before]
        return found[: max(1, min(limit, MAX_CYCLES))]


def cycle_record(number: int, at: datetime, decisions: Decisions, overview: Overview) -> PastCycle:
    seconds = {name: round(spent, 6) for name, spent in decisions.seconds.items() if " " not in name}
    waiting = list(decisions.why.items())
    left_out = sum(max(0, len(each) - MAX_ENTRIES) for each in (decisions.binds, decisions.evictions, waiting))
    return PastCycle(
        number,
        at,
        seconds,
        overview.nodes,
        overview.jobs,
        overview.tasks,
        len(decisions.binds),
        len(decisions.evictions),
        len(decisions.why),
        [CycleBind(each.task, each.node) for each in decisions.binds[:MAX_ENTRIES]],
        [
            CycleEviction(each.task, each.node, each.reason, each.preemptor)
            for each in decisions.evictions[:MAX_ENTRIES]
        ],
        {job: str(why) for job, why in waiting[:MAX_ENTRIES]},
        left_out,
    )
