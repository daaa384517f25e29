"""The engine: virtual time, an ordered queue of events, and the real cache and scheduling cycle between them.

All events of one instant happen before a cycle decides; cycles then follow each other at that instant until one of
them changes nothing. What has ended leaves the engine, so an event costs the same however many jobs are finished.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Mapping
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Final

import msgspec

from volcano.api import core, scheduling
from volcano.api.jobs.estimates import ESTIMATE_KEY
from volcano.api.meta import Key, ObjectMeta, Quantities, Resource
from volcano.api.quantity import Quantity, parse_quantity
from volcano.api.scheduling import GROUP_NAME_ANNOTATION, TASK_SPEC_KEY, PodGroup, PodGroupSpec, PodGroupStatus
from volcano.scheduler.actions import ACTIONS, Action
from volcano.scheduler.cache import Batch, Cache, CacheSettings
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import ClusterObjects, SeededChance
from volcano.scheduler.model.reservation import RESERVATION_ANNOTATION, encode_reservation
from volcano.scheduler.model.task import PREEMPTABLE_KEY
from volcano.scheduler.plugins import PLUGINS
from volcano.simulator.jobs import JobOutcome, WorkloadJob
from volcano.simulator.shortcuts import StrictOrder, has_strict_order, needs_no_idle_cycles

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)
NAMESPACE: Final = "default"
MAX_CYCLES_AT_ONE_INSTANT: Final = 100_000


class EventKind(IntEnum):
    """Events of one instant happen in this order."""

    POD_END = 0
    JOB_END = 1
    SUBMIT = 2
    WAKE = 3


@dataclass(slots=True)
class LiveJob:
    """A submitted job that has not ended."""

    job: WorkloadJob
    outcome: JobOutcome
    group: PodGroup
    pods: dict[str, core.Pod] = field(default_factory=dict)  # by uid
    running: dict[str, str] = field(default_factory=dict)  # uid → node
    ends: float | None = None  # when it will have run for its run time; None while its gang is not whole


class Stuck(Exception):
    """Cycles at one instant never come to rest."""


class Engine:
    """Runs one workload under one configuration."""

    def __init__(
        self,
        nodes: Iterable[core.Node],
        queues: Iterable[scheduling.Queue],
        config: SchedulerConfig,
        *,
        priority_classes: Iterable[core.PriorityClass] = (),
        seed: int = 0,
        plugins: Mapping[str, type[Plugin]] = PLUGINS,
        actions: Mapping[str, Action] = ACTIONS,
        on_progress: Callable[[float, int], None] | None = None,
        shortcuts: bool = True,
    ) -> None:
        """Without `shortcuts`, every cycle runs and sees every job, which takes longer and decides the same."""
        self._config, self._plugins, self._actions = config, plugins, actions
        self._chance = SeededChance(seed)
        self._cache = Cache(CacheSettings())
        self._changed: dict[tuple[type[Resource], Key], Resource | None] = {}
        self._events: list[tuple[float, int, int, str]] = []
        self._sequence = 0
        self._jobs: dict[str, LiveJob] = {}  # by PodGroup name
        self._to_submit: dict[str, WorkloadJob] = {}
        self.outcomes: dict[str, JobOutcome] = {}
        self.now = 0.0
        self.cycles = 0
        self._finished = 0
        self._replacements = 0
        self._on_progress = on_progress
        self._unsettled: set[str] = set()  # live jobs that are not running with all their pods
        self._may_skip = shortcuts and needs_no_idle_cycles(config)
        self._line = StrictOrder(config, plugins) if shortcuts and has_strict_order(config) else None
        classes = list(priority_classes)
        self._classes = ClusterObjects(priority_classes={each.name: each for each in classes})
        for resource in (*nodes, *queues, *classes):
            self._put(resource)

    # -- input --------------------------------------------------------------------------------------------------------
    def submit(self, jobs: Iterable[WorkloadJob]) -> None:
        for job in jobs:
            if job.name in self.outcomes:
                raise ValueError(f"two jobs are named {job.name}")
            self.outcomes[job.name] = JobOutcome(job)
            self._to_submit[job.name] = job
            self._at(job.submit, EventKind.SUBMIT, job.name)

    def run(self, until: float | None = None) -> None:
        """Until nothing is left to happen, or until the given time."""
        while self._events:
            moment = self._events[0][0]
            if until is not None and moment > until:
                self.now = until
                return
            self.now = moment
            while self._events and self._events[0][0] <= moment:
                _, kind, _, name = heapq.heappop(self._events)
                self._happen(EventKind(kind), name)
            self._settle()
            if self._on_progress is not None:
                self._on_progress(self.now, self._finished)

    def _at(self, moment: float, kind: EventKind, name: str) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (moment, kind, self._sequence, name))

    def _put(self, resource: Resource) -> None:
        self._changed[type(resource), resource.key] = resource

    def _put_all(self, groups: Iterable[PodGroup]) -> None:
        for group in groups:
            self._put(group)

    def _drop(self, resource: Resource) -> None:
        self._changed[type(resource), resource.key] = None

    # -- events -------------------------------------------------------------------------------------------------------
    def _happen(self, kind: EventKind, name: str) -> None:
        if kind is EventKind.SUBMIT:
            self._create_group(self._to_submit.pop(name))
        elif kind is EventKind.JOB_END:
            self._end(name)

    def _create_group(self, job: WorkloadJob) -> None:
        annotations = {}
        if job.estimate is not None:
            annotations[ESTIMATE_KEY] = f"{max(job.estimate, 0.001):.3f}s"
        group = PodGroup(
            metadata=ObjectMeta(
                name=job.name,
                namespace=NAMESPACE,
                uid=f"{self._sequence:012d}-{job.name}",
                creation_timestamp=self._moment(job.submit),
                annotations=annotations,
            ),
            spec=PodGroupSpec(
                min_member=job.min_available or job.pods,
                queue=job.queue,
                priority_class_name=job.priority_class,
                min_resources=_total(job),
            ),
            status=PodGroupStatus(phase="Pending"),
        )
        self._jobs[job.name] = LiveJob(job, self.outcomes[job.name], group)
        self._unsettled.add(job.name)
        if self._line is None or self._line.add(group, self._classes.priority_of(job.priority_class)):
            self._put(group)

    def _create_pods(self, live: LiveJob) -> None:
        """The job controller creates pods once the PodGroup has entered its queue."""
        job = live.job
        created = live.group.metadata.creation_timestamp
        for role in job.roles:
            spec = msgspec.convert(
                {
                    **role.spec,
                    "containers": [{"name": "main", "resources": {"requests": dict(role.requests)}}],
                    "schedulerName": "volcano",
                },
                core.PodSpec,
            )
            annotations = {
                PREEMPTABLE_KEY: str(job.preemptable).lower(),
                **role.annotations,
                GROUP_NAME_ANNOTATION: job.name,
                TASK_SPEC_KEY: role.name,
            }
            status = core.PodStatus(phase="Pending")
            for index in range(role.count):
                name = f"{job.name}-{role.name}-{index}"
                meta = ObjectMeta(
                    name=name, namespace=NAMESPACE, uid=name, creation_timestamp=created, annotations=annotations
                )
                pod = core.Pod(metadata=meta, spec=spec, status=status)
                live.pods[name] = pod
                self._put(pod)

    def _end(self, name: str) -> None:
        live = self._jobs.get(name)
        if live is None or live.ends != self.now:
            return  # an eviction has ended that attempt already
        del self._jobs[name]
        self._unsettled.discard(name)
        live.outcome.end = self.now
        self._finished += 1
        for pod in live.pods.values():
            self._drop(pod)
        self._drop(live.group)

    # -- cycles -------------------------------------------------------------------------------------------------------
    def _settle(self) -> None:
        for _ in range(MAX_CYCLES_AT_ONE_INSTANT):
            if not self._changed or (self._may_skip and not self._unsettled):
                return  # what changed meanwhile is taken in by the next cycle
            self._cycle()
        raise Stuck(f"at {self.now} s the scheduler changes its mind without end")

    def _cycle(self) -> None:
        self.cycles += 1
        if self._line is not None:
            self._put_all(self._line.to_show())
        before = copy(self._chance)
        decisions = self._decide()
        while self._line is not None and (missing := self._line.missing(decisions)):
            self._put_all(missing)
            self._chance = copy(before)
            decisions = self._decide()
        self._carry_out(decisions)

    def _decide(self) -> Decisions:
        batch = Batch(self._changed)
        self._changed = {}
        snapshot = self._cache.refresh(batch, self._moment(self.now), f"cycle-{self.cycles}")
        return cycle(snapshot, self._config, self._chance, plugins=self._plugins, actions=self._actions, messages=False)

    def _carry_out(self, decisions: Decisions) -> None:
        started: set[str] = set()
        for bind in decisions.binds:
            if bind.task not in decisions.dropped:
                self._start_pod(bind.job.partition("/")[2], bind.uid, bind.node)
                started.add(bind.job.partition("/")[2])
        for name in sorted(started):
            self._started(self._jobs[name])
        for eviction in decisions.evictions:
            if eviction.task not in decisions.dropped:
                self._evict(eviction.job.partition("/")[2], eviction.uid)
        for job_id, status in decisions.groups.items():
            live = self._jobs.get(job_id.partition("/")[2])
            if live is not None:
                self._update_group(live, status.phase, decisions)
                self._note_whether_settled(live)

    def _note_whether_settled(self, live: LiveJob) -> None:
        if live.group.status.phase == "Running" and len(live.running) == len(live.pods):
            self._unsettled.discard(live.job.name)
        else:
            self._unsettled.add(live.job.name)

    def _start_pod(self, job: str, uid: str, node: str) -> None:
        live = self._jobs[job]
        pod = live.pods[uid]
        live.running[uid] = node
        replaced = msgspec.structs.replace(
            pod,
            spec=msgspec.structs.replace(pod.spec, node_name=node),
            status=msgspec.structs.replace(pod.status, phase="Running", start_time=self._moment(self.now)),
        )
        live.pods[uid] = replaced
        self._put(replaced)

    def _started(self, live: LiveJob) -> None:
        if live.ends is None and len(live.running) >= live.group.spec.min_member:
            if live.outcome.start is None:
                live.outcome.start = self.now
            live.outcome.attempts += 1
            live.outcome.last_start = self.now
            live.outcome.nodes = tuple(sorted(set(live.running.values())))
            live.ends = self.now + live.job.run_time
            self._at(live.ends, EventKind.JOB_END, live.job.name)

    def _evict(self, job: str, uid: str) -> None:
        """The pod leaves at once and a new one waits for it; a gang that is no longer whole starts again as a whole."""
        live = self._jobs.get(job)
        if live is None or uid not in live.running:
            return
        live.outcome.evictions += 1
        stays_whole = live.ends is not None and len(live.running) > live.group.spec.min_member
        leaving = [uid] if stays_whole else list(live.running)
        if live.ends is not None and live.outcome.last_start is not None:
            live.outcome.lost_seconds += (self.now - live.outcome.last_start) * len(leaving)
        if not stays_whole:
            live.ends = None
        for each in leaving:
            self._replace_pod(live, each)

    def _replace_pod(self, live: LiveJob, uid: str) -> None:
        pod = live.pods.pop(uid)
        del live.running[uid]
        self._unsettled.add(live.job.name)
        self._replacements += 1
        fresh = f"{pod.metadata.name}.{self._replacements}r"
        live.pods[fresh] = msgspec.structs.replace(
            pod,
            metadata=msgspec.structs.replace(pod.metadata, uid=fresh, creation_timestamp=self._moment(self.now)),
            spec=msgspec.structs.replace(pod.spec, node_name=""),
            status=core.PodStatus(phase="Pending"),
        )
        self._put(live.pods[fresh])

    def _update_group(self, live: LiveJob, phase: str, decisions: Decisions) -> None:
        group = live.group
        if (
            phase == group.status.phase
            and not decisions.reservations
            and not group.metadata.annotations.get(RESERVATION_ANNOTATION)
        ):
            return
        reservation = decisions.reservations.get(f"{NAMESPACE}/{live.job.name}")
        text = "" if reservation is None else encode_reservation(reservation)
        held = group.metadata.annotations.get(RESERVATION_ANNOTATION, "")
        if phase == group.status.phase and text == held:
            return
        annotations = dict(group.metadata.annotations)
        annotations.pop(RESERVATION_ANNOTATION, None)
        if text:
            annotations[RESERVATION_ANNOTATION] = text
        live.group = msgspec.structs.replace(
            group,
            metadata=msgspec.structs.replace(group.metadata, annotations=annotations),
            status=msgspec.structs.replace(group.status, phase=phase),
        )
        self._put(live.group)
        if self._line is not None and phase != "Pending":
            self._line.remove(live.job.name)
        if phase in ("Inqueue", "Running") and not live.pods:
            self._create_pods(live)

    @staticmethod
    def _moment(seconds: float) -> datetime:
        return EPOCH + timedelta(seconds=seconds)


def _total(job: WorkloadJob) -> Quantities:
    """What the gang's minimum requests, as the job controller sums it: the first pods in the order of roles."""
    wanted = job.min_available or job.pods
    sums: dict[str, Quantity] = {}
    for role in job.roles:
        count = min(role.count, wanted)
        wanted -= count
        for name, text in role.requests.items():
            amount = parse_quantity(text) * count
            sums[name] = sums[name] + amount if name in sums else amount
    return {name: str(amount) for name, amount in sums.items()}
