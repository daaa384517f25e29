"""Shortcuts: cycles that need not run and jobs that a cycle need not see, where this provably changes no decision.

They hold only for configurations made of actions and plugins listed here; for any other, every job is shown to every
cycle. tests/unit/simulator/test_shortcuts.py compares both ways.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Mapping
from functools import cmp_to_key
from typing import Any, Final

from volcano.api.scheduling import PodGroup
from volcano.scheduler.actions.enqueue import BEHIND
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import PluginOption, SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.opening import open_session
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import Job, SeededChance, StoppedTimer
from volcano.scheduler.model.read import job_from

STATELESS_PLUGINS: Final = frozenset(
    {
        "priority", "gang", "conformance", "overcommit", "drf", "predicates", "proportion", "capacity", "nodeorder",
        "binpack", "easy", "pdb", "sla", "task-topology", "network-topology-aware", "resource-strategy-fit",
    }
)  # fmt: skip
"""Plugins that hand nothing to the next cycle and do nothing as long as no job waits."""
PLACING_ACTIONS: Final = frozenset(
    {"enqueue", "allocate", "backfill", "preempt", "reclaim", "gangpreempt", "gangreclaim"}
)
"""Actions that act only for jobs that wait."""
STRICT_PLUGINS: Final = frozenset({"easy", "gang", "priority", "conformance", "predicates", "nodeorder", "binpack"})
"""Plugins to which a job without pods is nothing until the action enqueue reaches it, and whose order of waiting jobs
never changes."""
STRICT_ACTIONS: Final = frozenset({"enqueue", "allocate", "backfill"})
STRICT_ARGUMENTS: Final = frozenset(
    {"easy.order", "easy.strict", "easy.reservations", "easy.scope", "easy.default-estimate"}
)
SHOWN_AT_LEAST: Final = 4


def needs_no_idle_cycles(config: SchedulerConfig) -> bool:
    """Whether a cycle decides nothing as long as no job waits."""
    return frozenset(config.actions) <= PLACING_ACTIONS and frozenset(config.plugin_names) <= STATELESS_PLUGINS


def has_strict_order(config: SchedulerConfig) -> bool:
    """Whether the action enqueue ends at the first job that must wait, in an order that does not change."""
    easy = [option for tier in config.tiers for option in tier if option.name == "easy"]
    return (
        config.actions[:1] == ("enqueue",)
        and frozenset(config.actions) <= STRICT_ACTIONS
        and frozenset(config.plugin_names) <= STRICT_PLUGINS
        and len(easy) == 1
        and _is_strict(easy[0])
    )


def _is_strict(easy: PluginOption) -> bool:
    return easy.arguments.flag("easy.strict", False) and frozenset(easy.arguments) <= STRICT_ARGUMENTS


class WaitingLine:
    """Jobs of a queue that are not in it yet, in their order: the first ones are shown to the scheduler."""

    def __init__(self, key: Callable[[Job], Any]) -> None:
        self._key = key
        self.jobs: list[Job] = []
        self.shown = 0
        self.ends_within = False  # the last cycle reached none of those behind the shown ones

    def add(self, job: Job) -> bool:
        """Whether the job must be shown now."""
        insort(self.jobs, job, key=self._key)
        place = self._place(job)
        if place < self.shown or not self.ends_within:
            self.shown = max(self.shown + 1, place + 1)
            return True
        return False

    def remove(self, job: Job) -> None:
        place = self._place(job)
        self.jobs.pop(place)
        self.shown -= place < self.shown

    def show(self, count: int) -> list[Job]:
        """So many of them are to be shown; those that were not so far."""
        until = min(max(count, self.shown), len(self.jobs))
        more, self.shown = self.jobs[self.shown : until], until
        return more

    @property
    def has_hidden(self) -> bool:
        return self.shown < len(self.jobs)

    def _place(self, job: Job) -> int:
        return bisect_left(self.jobs, self._key(job), key=self._key)


class StrictOrder:
    """Keeps jobs from the scheduler that its action enqueue would not reach.

    A queue's turn in that action ends at the first job that must wait; jobs behind it are not looked at. So a cycle
    that ends within the jobs shown decides the same as one that is shown all. If it does not end there, it is run
    again with more of them.
    """

    def __init__(self, config: SchedulerConfig, plugins: Mapping[str, type[Plugin]]) -> None:
        session, _ = open_session(Snapshot(), config, known=plugins, chance=SeededChance(), timer=StoppedTimer())
        before = session.ask.job_before

        def compare(one: Job, other: Job) -> int:
            return 0 if one is other else -1 if before(one, other) else 1

        self._key = cmp_to_key(compare)
        self._lines: dict[str, WaitingLine] = {}
        self._waiting: dict[str, Job] = {}

    def add(self, group: PodGroup, priority: int) -> bool:
        """Whether the scheduler must see the group now."""
        job = self._waiting[group.metadata.name] = job_from(group, priority=priority)
        line = self._lines.get(job.queue)
        if line is None:
            line = self._lines[job.queue] = WaitingLine(self._key)
        return line.add(job)

    def remove(self, name: str) -> None:
        """The job has entered its queue, or has ended."""
        job = self._waiting.pop(name, None)
        if job is not None:
            self._lines[job.queue].remove(job)

    def to_show(self) -> list[PodGroup]:
        """Groups that the next cycle must see and the last one did not."""
        more = [job for line in self._lines.values() for job in line.show(SHOWN_AT_LEAST)]
        return [job.group for job in more if job.group is not None]

    def missing(self, decisions: Decisions) -> list[PodGroup]:
        """Groups without which it is not certain that these are the decisions; none when it is."""
        more: list[Job] = []
        for line in self._lines.values():
            line.ends_within = _ends_within(line.jobs[: line.shown], decisions)
            if line.has_hidden and not line.ends_within:
                more += line.show(2 * line.shown + SHOWN_AT_LEAST)
        return [job.group for job in more if job.group is not None]


def _ends_within(shown: Iterable[Job], decisions: Decisions) -> bool:
    return any(decisions.why.get(job.id) is BEHIND for job in shown)
