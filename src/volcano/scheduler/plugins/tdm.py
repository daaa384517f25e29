"""tdm: nodes that are available only at certain hours. Revocable tasks use them then, and are evicted at the end."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause, Code, Vote
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Status, Task

PREFIX: Final = "tdm.revocable-zone."
FULL: Final = 100.0
DAY: Final = timedelta(days=1)
LAST_EVICTION: Final = "last eviction"


@dataclass(slots=True, frozen=True)
class Hours:
    """A daily window; one that ends no later than it begins ends on the next day."""

    begins: timedelta
    lasts: timedelta

    def holds(self, now: datetime) -> bool:
        midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
        moment = now.replace(microsecond=0)
        starts = (midnight + self.begins, midnight + self.begins - DAY)
        return any(start <= moment <= start + self.lasts for start in starts)


def parse_hours(text: str) -> Hours | None:
    """`HH:MM-HH:MM`; None when it is nothing of the kind."""
    found = re.fullmatch(r"\s*(\d{1,2}):(\d{2})-(\d{1,2}):(\d{2})\s*", text)
    if found is None:
        return None
    first, last = int(found[1]) * 60 + int(found[2]), int(found[3]) * 60 + int(found[4])
    if int(found[1]) > 23 or int(found[3]) > 23 or int(found[2]) > 59 or int(found[4]) > 59:
        return None
    return Hours(timedelta(minutes=first), timedelta(minutes=(last - first) % (24 * 60) or 24 * 60))


class TimeDivision(Plugin):
    name = "tdm"
    argument_names = frozenset({"tdm.evict.period"})
    argument_prefixes = (PREFIX,)

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        stated = {key: value for key, value in option.arguments.items() if PREFIX in key and isinstance(value, str)}
        self._texts = {key.partition(PREFIX)[2]: value for key, value in stated.items()}
        self._hours = {zone: parse_hours(text) for zone, text in self._texts.items()}
        self._period = option.arguments.duration("tdm.evict.period") or timedelta(minutes=1)

    def open(self, session: Session) -> None:
        super().open(session)
        zones = np.array([node.revocable_zone for node in session.table.nodes], dtype=object)
        self._rows: dict[str, Mask] = {zone: zones == zone for zone in sorted(set(zones.tolist())) if zone}
        self._active = {zone for zone, hours in self._hours.items() if hours is not None and hours.holds(session.now)}
        session.record.needs_another_cycle |= bool(self._rows)

    # -- nodes -----------------------------------------------------------------------------------------------------
    def sharing_key(self, task: Task) -> str | None:
        return f"zone {task.revocable_zone}" if self._rows else None

    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        for zone, rows in self._rows.items():
            refused = nodes.take(rows)
            if refused.any() and (reason := self._objection(zone, task)):
                yield Cause(refused, Code.UNRESOLVABLE, reason)

    def _objection(self, zone: str, task: Task) -> str:
        if zone not in self._hours:
            return f"revocable zone {zone} not support"
        if self._hours[zone] is None:
            return f"revocable zone {zone} is malformed: {self._texts[zone]}"
        if zone not in self._active:
            return f"current time beyond revocable zone {zone}:{self._texts[zone]}"
        return "" if task.revocable_zone else "not allow to dispatch to revocable node"

    def node_score(self, task: Task, nodes: NodeView) -> Column:
        """Revocable tasks prefer revocable nodes, and leave the others to tasks that must not be interrupted."""
        score = nodes.zeros()
        for zone, rows in self._rows.items():
            if task.revocable_zone and zone in self._active:
                score += FULL * nodes.take(rows)
        return score

    # -- victims ---------------------------------------------------------------------------------------------------
    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        if preemptor.preemptable or preemptor.revocable_zone:
            return []
        return self._within_budgets(t for t in candidates if self._is_exposed(t) and not self._zone_of(t))

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        """Once per period, the tasks that are still on nodes whose hours are over."""
        memory, now = self.session.snapshot.memory.setdefault(self.name, {}), self.session.now
        last = memory.get(LAST_EVICTION)
        if last is not None and datetime.fromisoformat(last) + self._period > now:
            return []
        memory[LAST_EVICTION] = now.isoformat()
        over = {zone for zone, hours in self._hours.items() if hours is not None and zone not in self._active}
        return self._within_budgets(t for t in tasks if self._is_exposed(t) and self._zone_of(t) in over)

    def _is_exposed(self, task: Task) -> bool:
        return task.status == Status.RUNNING and task.preemptable and task.node in self.session.table.index

    def _zone_of(self, task: Task) -> str:
        table = self.session.table
        return table.nodes[table.index[task.node]].revocable_zone

    def _within_budgets(self, tasks: Iterable[Task]) -> list[Task]:
        """In order, as many of each job as its budget allows."""
        left: Counter[str] = Counter()
        victims = []
        for task in tasks:
            job = self.session.jobs.get(task.job_id)
            if job is None:
                continue
            if job.id not in left:
                left[job.id] = most_evictions(job)
            if left[job.id] > 0:
                left[job.id] -= 1
                victims.append(task)
        return victims

    # -- jobs ------------------------------------------------------------------------------------------------------
    def job_order(self, one: Job, other: Job) -> int:
        return one.preemptable - other.preemptable

    def job_pipelined(self, job: Job) -> Vote:
        return Vote.PERMIT if job.is_pipelined else Vote.REJECT

    def job_starving(self, job: Job) -> bool:
        return not job.preemptable and bool(job.by_status[Status.PENDING])


def most_evictions(job: Job) -> int:
    """How many running tasks a job's disruption budget lets go at once; one when it states none."""
    running, tasks = len(job.by_status[Status.RUNNING]), len(job.tasks)
    if job.budget_min_available:
        least = _amount(job.budget_min_available, tasks)
        return running - least if running >= least else 1
    if job.budget_max_unavailable:
        done = len(job.by_status[Status.SUCCEEDED]) + len(job.by_status[Status.FAILED])
        return max(_amount(job.budget_max_unavailable, tasks) - (tasks - done - running), 0)
    return 1


def _amount(text: str, of: int) -> int:
    """A number, or a percentage rounded up; nothing when it is neither."""
    found = re.fullmatch(r"(\d{1,9})(%?)", text.strip())
    if found is None:
        return 0
    return math.ceil(int(found[1]) * of / 100) if found[2] else int(found[1])
