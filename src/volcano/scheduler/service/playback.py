"""Playback: the live objects are played forward in virtual time with the real cycle, until every waiting job starts.

Nothing is written. Jobs end when their estimates say so; no new jobs arrive; nothing is evicted. When the time that
playing may take is used up, service.coarse_plan estimates the rest.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final, TypeAlias

from volcano.api import core
from volcano.api.meta import ObjectMeta, Quantities
from volcano.api.pods.amounts import amounts_of
from volcano.api.quantity import Quantity
from volcano.api.reservation import windows
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, PodGroup
from volcano.scheduler.core.releases import expected_end
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.model import Job, SeededChance
from volcano.scheduler.played_cluster import PlayedCluster, started_pod, updated_group
from volcano.scheduler.service.coarse_plan import coarse_starts
from volcano.scheduler.service.simulate import Known

PLAYED_ACTIONS: Final = ("enqueue", "allocate", "backfill")
MAX_CYCLES_AT_ONE_INSTANT: Final = 64
MAX_EVENTS: Final = 20_000
MAX_CAUSES: Final = 4
MAX_IDLE_BOUNDARIES: Final = 64
"""Beginnings and ends of windows that are passed while no job runs."""
MAX_SIZE_PLAYED_THRICE: Final = 100_000
"""Nodes times waiting jobs up to which also short and long run times are played with the real cycle."""
_QUOTA_PREFIXES: Final = ("count/", "requests.", "limits.")

RunTimeOf: TypeAlias = Callable[[Job, datetime, datetime], datetime]
"""When a job ends that started at a time, as seen now."""


@dataclass(slots=True)
class Played:
    """When jobs start (by namespace/PodGroup), and after the end of which others."""

    starts: dict[str, datetime] = field(default_factory=dict)
    after: dict[str, tuple[str, ...]] = field(default_factory=dict)


class Playback:
    def __init__(self, known: Known, end_of: RunTimeOf, may_go_on: Callable[[], bool]) -> None:
        self._known, self._end_of, self._may_go_on = known, end_of, may_go_on
        self._cluster = PlayedCluster(
            _only_placing(known.config),
            known.settings,
            plugins=known.registry.plugins,
            actions=known.registry.actions,
        )
        self._now = known.now
        for items in known.objects.values():
            self._cluster.put_all(items)
        self._ends: dict[str, datetime] = {}
        self._begun: dict[str, datetime] = {}  # when jobs that run at first have started
        self.is_large = False  # playing it three times would take too long
        self._waiting: set[str] = set()
        self._idle_boundaries = 0
        self._just_ended: dict[str, frozenset[str]] = {}  # job → its nodes
        self.played = Played()
        self.waiting: dict[str, Job] = {}  # the jobs that wait at first, as they are then
        self.every: dict[str, Job] = {}  # the jobs that run or wait at first

    def start(self) -> Playback:
        """Take the live objects in; must be called once, before anything else."""
        known = self._known
        snapshot = self._cluster.refresh(self._now, known.assumed, known.evicting, known.annotations)
        self._look_around(snapshot)
        self.is_large = len(snapshot.table) * len(self._waiting) > MAX_SIZE_PLAYED_THRICE
        return self

    def coarse(self, end_of: RunTimeOf) -> Played:
        """A coarse plan from the live objects with other run times, without playing; before `run`."""
        snapshot, plugins = self._cluster.snapshot, self._known.registry.plugins
        ends = {id: end_of(self.every[id], begun, self._now) for id, begun in self._begun.items()}
        return Played(coarse_starts(snapshot, self._cluster.config, plugins, self._waiting, ends, end_of))

    def run(self) -> Played:
        for _ in range(MAX_EVENTS):
            if not self._settle() or not self._waiting:
                break
            if not self._advance():
                return self.played
        if self._waiting:
            self._estimate_rest()
        return self.played

    def _look_around(self, snapshot: Snapshot) -> None:
        for job in snapshot.schedulable_jobs().values():
            if job.group is None:
                continue
            self.every[job.id] = job
            if job.tasks and job.is_ready and not job.is_pending:
                begun = [task.pod.status.start_time or self._now for task in job.tasks.values() if task.node]
                if begun:
                    self._begun[job.id] = min(begun)
                    self._ends[job.id] = self._end_of(job, min(begun), self._now)
            else:
                self._waiting.add(job.id)
                self.waiting[job.id] = job

    # -- one instant --------------------------------------------------------------------------------------------------
    def _settle(self) -> bool:
        """Cycles until nothing changes; False when the time for playing is used up."""
        for _ in range(MAX_CYCLES_AT_ONE_INSTANT):
            if not self._may_go_on():
                return False
            self._note_starts(self._cluster.refresh(self._now))
            self._cluster.cycles += 1
            self._carry_out(self._cluster.decide(self._now, SeededChance(self._cluster.cycles)))
            if not self._cluster.has_changes:
                return True
        return True

    def _note_starts(self, snapshot: Snapshot) -> None:
        for id in list(self._waiting):
            job = snapshot.jobs.get(id)
            if job is None:
                self._waiting.discard(id)
            elif job.tasks and job.is_ready and not job.is_pending:
                self._waiting.discard(id)
                self.played.starts[id] = self._now
                nodes = {task.node for task in job.tasks.values() if task.node}
                ended = [other for other, left in self._just_ended.items() if nodes & left]
                self.played.after[id] = tuple(sorted(ended)[:MAX_CAUSES])
                self._ends[id] = self._end_of(job, self._now, self._now)

    def _advance(self) -> bool:
        """To the next end of a job, or to the next beginning or end of a Reservation's window; False: there is none."""
        moments = [*self._ends.values(), *self._next_boundary()]
        if not moments:
            return False
        self._now = max(min(moments), self._now)
        ended = [id for id, end in self._ends.items() if end <= self._now]
        self._just_ended = {}
        for id in ended:
            del self._ends[id]
            job = self._cluster.snapshot.jobs.get(id)
            if job is None or job.group is None:
                continue
            self._just_ended[id] = frozenset(task.node for task in job.tasks.values() if task.node)
            self._cluster.drop(job.group)
            for task in job.tasks.values():
                self._cluster.drop(task.pod)
        return True

    def _next_boundary(self) -> list[datetime]:
        """While nothing runs, recurring windows would be passed without end, so only some of them are."""
        self._idle_boundaries = 0 if self._ends else self._idle_boundaries + 1
        if self._idle_boundaries > MAX_IDLE_BOUNDARIES:
            return []
        reservations = self._cluster.snapshot.cluster.reservations.values()
        ahead = [window for each in reservations for window in windows(each.spec, self._now)]
        moments = [moment for window in ahead for moment in (window.start, window.end) if moment > self._now]
        return [min(moments)] if moments else []

    # -- what was decided ---------------------------------------------------------------------------------------------
    def _carry_out(self, decisions: Decisions) -> None:
        snapshot = self._cluster.snapshot
        for bind in decisions.binds:
            task = snapshot.tasks.get(bind.uid)
            if task is not None and bind.task not in decisions.dropped:
                self._cluster.put(started_pod(task.pod, bind.node, self._now, bind.annotations))
        for id, status in decisions.groups.items():
            job = snapshot.jobs.get(id)
            if job is not None and job.group is not None:
                self._update_group(job, job.group, status.phase, decisions)

    def _update_group(self, job: Job, group: PodGroup, phase: str, decisions: Decisions) -> None:
        changed = updated_group(group, phase, decisions.reservations.get(job.id))
        if changed is None:
            return
        self._cluster.put(changed)
        if phase == "Inqueue" and not job.tasks:
            scheduler = next(iter(sorted(self._known.settings.scheduler_names)), "volcano")
            self._cluster.put_all(stand_ins(group, scheduler))

    def _estimate_rest(self) -> None:
        snapshot = self._cluster.refresh(self._now)
        self._note_starts(snapshot)
        rest = coarse_starts(
            snapshot, self._cluster.config, self._known.registry.plugins, self._waiting, self._ends, self._end_of
        )
        self.played.starts.update(rest)


def stand_ins(group: PodGroup, scheduler: str) -> list[core.Pod]:
    """Pods for a gang whose own do not exist yet: equal shares of what it needs at least."""
    count = max(group.spec.min_member, 1)
    needed = {name: each for name, each in amounts_of(group.spec.min_resources).items() if _is_of_pods(name)}
    share: Quantities = {name: str(Quantity(-(-each.nanos // count))) for name, each in needed.items()}
    container = core.Container(name="main", resources=core.ResourceRequirements(requests=share))
    spec = core.PodSpec(containers=[container], scheduler_name=scheduler)
    return [
        core.Pod(
            metadata=ObjectMeta(
                name=f"{group.name}.{index}",
                namespace=group.namespace,
                uid=f"played-{group.uid}-{index}",
                creation_timestamp=group.metadata.creation_timestamp,
                annotations={GROUP_NAME_ANNOTATION: group.name},
            ),
            spec=spec,
            status=core.PodStatus(phase="Pending"),
        )
        for index in range(count)
    ]


def _is_of_pods(name: str) -> bool:
    """A minimum also counts what quotas count, such as `pods` and `limits.cpu`."""
    return name in ("cpu", "memory", "ephemeral-storage") or ("/" in name and not name.startswith(_QUOTA_PREFIXES))


def _only_placing(config: SchedulerConfig) -> SchedulerConfig:
    return replace(config, actions=tuple(each for each in config.actions if each in PLAYED_ACTIONS))


def ends_with(run_time: Callable[[Job], timedelta]) -> RunTimeOf:
    """Ends by a run time for each job; one that has run out is doubled until the end lies in the future."""

    def end_of(job: Job, started: datetime, now: datetime) -> datetime:
        return expected_end(started, run_time(job), now)

    return end_of
