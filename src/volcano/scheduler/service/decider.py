"""Decider: what a turn computes, in a worker thread.

The thread rule: while `decide` runs, only its thread touches the Decider and what it owns (the cache with its
snapshot, the committer's memory of what was written). The event loop hands everything over in a TurnInput and takes
everything back in a TurnResult; the tables that it changes meanwhile (pending changes, writes in flight) are its own.
Between turns the event loop may use the Decider.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from volcano.api.jobs.reservations import StartReservation
from volcano.api.meta import JSON, Key
from volcano.machinery.clock import Stopwatch
from volcano.scheduler.cache import Batch, Cache, CacheSettings, Confirmed
from volcano.scheduler.commit import Commitment, Committer, ToldReasons, Unwritten
from volcano.scheduler.commit.told_reasons import with_missing_pods
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.model.job import is_adopted
from volcano.scheduler.service.recordings import RecordingWriter
from volcano.scheduler.service.registry import Registry


@dataclass(slots=True, frozen=True)
class TurnInput:
    number: int  # also the seed of chance
    now: datetime
    batch: Batch
    config: SchedulerConfig
    config_text: str
    registry: Registry
    groups_in_flight: frozenset[str]  # jobs whose PodGroup is being written
    unwritten: tuple[Unwritten, ...]  # writes that failed since the last turn
    told: ToldReasons = field(default_factory=ToldReasons)  # why jobs wait, as far as it was found
    record_to: tuple[Path, ...] = ()  # directories that the inputs of this cycle are written to


@dataclass(slots=True, frozen=True)
class TurnResult:
    decisions: Decisions
    commitment: Commitment
    confirmed: Confirmed
    bound: Mapping[str, str]  # pod uid → node, to be assumed
    evicted: frozenset[str]  # pod uids, to be assumed
    overview: Overview
    devices: Mapping[str, Mapping[Key, JSON]] = field(default_factory=dict)  # pod uid → claim → allocation, likewise
    annotations: Mapping[str, Mapping[str, str]] = field(default_factory=dict)  # pod uid → what it is told, likewise


@dataclass(slots=True, frozen=True)
class Overview:
    """How much the snapshot holds, for people."""

    nodes: int = 0
    jobs: int = 0
    tasks: int = 0
    set_aside: Mapping[str, str] = field(default_factory=dict)


class Decider:
    def __init__(self, settings: CacheSettings, scheduler_name: str, *, redact: bool = False) -> None:
        self._cache = Cache(settings)
        self._committer = Committer(scheduler_name)
        self._recordings = RecordingWriter(redact=redact)
        self._promises: Mapping[str, StartReservation] | None = None  # None: those on the PodGroups count

    @property
    def snapshot(self) -> Snapshot:
        return self._cache.snapshot

    def reset(self) -> None:
        """Throw the snapshot away; the next batch must hold every object."""
        self._cache.reset()

    def decide(self, turn: TurnInput) -> TurnResult:
        """Take the changes in, run a cycle, and plan what to write."""
        cache, committer, registry = self._cache, self._committer, turn.registry
        for unwritten in turn.unwritten:
            committer.mark_unwritten(unwritten)
        snapshot = cache.refresh(turn.batch, turn.now, f"{turn.now:%Y%m%dT%H%M%S}-{turn.number}")
        self._recall_promises(snapshot)
        if turn.record_to:
            self._recordings.write(turn.record_to, snapshot, turn.config_text, turn.number, cache.hypernodes)
        decisions = cycle(
            snapshot,
            turn.config,
            SeededChance(turn.number),
            _CycleTimer(),
            plugins=registry.plugins,
            actions=registry.actions,
        )
        decisions = with_missing_pods(decisions, snapshot)
        adopted = frozenset(job for job in decisions.groups if is_adopted(job))
        commitment = committer.commitment(
            decisions, snapshot, turn.now, in_flight=turn.groups_in_flight, is_virtual=adopted, told=turn.told
        )
        bound = {plan.uid: plan.node for plan in commitment.binds}
        evicted = frozenset(plan.uid for plan in commitment.evictions)
        cache.assume(bound, evicted)
        self._promises = decisions.reservations
        overview = Overview(len(snapshot.table), len(snapshot.jobs), len(snapshot.tasks), dict(snapshot.set_aside))
        devices = {plan.uid: plan.allocations for plan in commitment.binds if plan.allocations}
        told = {plan.uid: plan.annotations for plan in commitment.binds if plan.annotations}
        return TurnResult(decisions, commitment, cache.take_confirmed(), bound, evicted, overview, devices, told)

    def _recall_promises(self, snapshot: Snapshot) -> None:
        """What the last cycle promised counts; what stands on PodGroups may be older. After a start, that is all."""
        if self._promises is None:
            return
        for job in snapshot.jobs.values():
            if job.reservation is not None and job.id not in self._promises:
                job.reservation = None
        for id, reservation in self._promises.items():
            if id in snapshot.jobs:
                snapshot.jobs[id].reservation = reservation


class _CycleTimer:
    """Times the parts of a cycle in real time, whatever clock the scheduler runs on."""

    def __init__(self) -> None:
        self._stopwatch = Stopwatch()

    def read(self) -> float:
        return self._stopwatch.seconds()
