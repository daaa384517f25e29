"""The output edge: a cycle's decisions become plans, and only what has changed is written.

Binds and evictions are plans of their own, so that they fail independently. A status that users or controllers wait
for is written at once; changes that follow from it are batched (BATCHING_INTERVAL), and changes of counts and messages
alone are rate-limited (MESSAGE_INTERVAL).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Any, Final

from volcano.api import core
from volcano.api.jobs.why import decode_why
from volcano.api.meta import JSON, Key
from volcano.api.pods.evictions import SCHEDULER_REASON, eviction_message
from volcano.api.scheduling import WHY_ANNOTATION, PodGroup
from volcano.api.times import is_recent, timestamp
from volcano.machinery.plan import Bind, Patch, Plan, Record, Step, ref
from volcano.scheduler.commit.device_steps import claim_release_steps, device_steps, device_undo_steps
from volcano.scheduler.commit.event_limits import EventLimiter
from volcano.scheduler.commit.groups import (
    BATCHING_INTERVAL,
    MESSAGE_INTERVAL,
    POD_CREATION_TIME,
    POD_CREATION_TIME_UNDER_LOAD,
    group_body,
    is_being_made,
    pause_before,
)
from volcano.scheduler.commit.queues import queue_patches
from volcano.scheduler.commit.reservation_status import reservation_patches
from volcano.scheduler.commit.steps import MAX_MESSAGE_CHARACTERS, condition, current, gate_steps, volume_steps
from volcano.scheduler.commit.told_reasons import ToldReasons, with_reasons
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions, GroupStatus, PodNotice
from volcano.scheduler.framework.record import VolumeChoice

BUSY_BINDS: Final = 50
"""Recent binds (35 a second over a longer time) from which on batched writes wait longer, so that binds go first."""


@dataclass(slots=True, frozen=True)
class BindPlan:
    """One bind: what must be written or bound before it, the bind itself, and what is undone when it fails."""

    pod: core.Pod
    uid: str
    node: str
    volumes: tuple[VolumeChoice, ...]
    prepare: Plan
    bind: Plan
    allocations: Mapping[Key, JSON] = field(default_factory=dict)
    """Of ResourceClaims, as `prepare` writes them."""
    undo: Plan = ()
    lock: str = ""
    """The annotation that must be taken on the node first."""
    annotations: Mapping[str, str] = field(default_factory=dict)
    """The annotations that the scheduler writes when it binds the pod."""


@dataclass(slots=True, frozen=True)
class EvictionPlan:
    """What is written about the eviction; the deletion follows if the pod has not finished by then."""

    pod: core.Pod
    uid: str
    announce: Plan


@dataclass(slots=True, frozen=True)
class Commitment:
    """Everything a cycle has to write; each step stands for itself."""

    binds: tuple[BindPlan, ...] = ()
    evictions: tuple[EvictionPlan, ...] = ()
    groups: Mapping[str, Patch] = field(default_factory=dict)  # by job
    others: tuple[Step, ...] = ()  # pods' conditions, queues, gates
    records: tuple[Record, ...] = ()
    postponed: bool = False  # another cycle must write what was rate-limited


@dataclass(slots=True, frozen=True)
class Unwritten:
    """A job or a pod (by uid) whose status could not be written."""

    job: str = ""
    pod_uid: str = ""


@dataclass(slots=True)
class LastWrite:
    """What was last written about something, and when."""

    content: Any
    at: datetime


class Committer:
    """Remembers what it has written, so that it does not write it again."""

    def __init__(self, scheduler_name: str = "volcano") -> None:
        self._scheduler_name = scheduler_name
        self._groups: dict[str, datetime] = {}
        self._agreed: dict[str, tuple[PodGroup, GroupStatus]] = {}  # what was compared last and found equal
        self._pods: dict[str, LastWrite] = {}
        self._events = EventLimiter()
        self._queues: dict[str, datetime] = {}
        self._sought: frozenset[str] = frozenset()  # jobs whose reason is about to be found
        self._reservations: dict[str, datetime] = {}
        self._postponed = False
        self._load = 0.0  # binds, counting half after every second
        self._counted: datetime | None = None

    def commitment(
        self,
        decisions: Decisions,
        snapshot: Snapshot,
        now: datetime,
        *,
        in_flight: frozenset[str] = frozenset(),
        is_virtual: frozenset[str] = frozenset(),
        told: ToldReasons | None = None,
    ) -> Commitment:
        """`in_flight`: jobs whose PodGroup is just being written; `is_virtual`: jobs without one."""
        told = told or ToldReasons()
        decisions = with_reasons(decisions, told, snapshot)
        self._sought = frozenset(decisions.why.keys() - told.asked) if told.asked is not None else frozenset()
        self._postponed = bool(self._sought)
        binds = tuple(self._binds(decisions, snapshot))
        self._count(len(binds), now)
        for binding in binds:  # its pods' statuses are about to change more
            self._groups[snapshot.tasks[binding.uid].job_id] = now
        evictions = tuple(self._evictions(decisions, snapshot, now))
        incomplete = self._incomplete(decisions, snapshot, now)
        groups = dict(self._group_patches(decisions, snapshot, now, incomplete, skipped=in_flight | is_virtual))
        pods = list(self._notices(decisions, snapshot, now, incomplete))
        notes = self._notes_to_record(decisions, snapshot, now, is_virtual | incomplete)
        records = [*notes, *(r for _, r in pods if r is not None)]
        self._forget(snapshot)
        return Commitment(
            binds,
            evictions,
            groups,
            (
                *(patch for patch, _ in pods),
                *self._queue_patches(decisions, snapshot, now),
                *self._reservation_patches(decisions, snapshot, now),
                *gate_steps(decisions, snapshot),
                *claim_release_steps(decisions.claim_releases, snapshot),
            ),
            tuple(records),
            self._postponed,
        )

    def mark_unwritten(self, unwritten: Unwritten) -> None:
        """A write failed: the next cycle writes the status again."""
        self._groups.pop(unwritten.job, None)
        self._pods.pop(unwritten.pod_uid, None)

    # -- binds and evictions -------------------------------------------------------------------------------------
    def _binds(self, decisions: Decisions, snapshot: Snapshot) -> Iterator[BindPlan]:
        for bind in decisions.binds:
            task = snapshot.tasks.get(bind.uid)
            if task is None or bind.task in decisions.dropped:
                continue
            volumes = decisions.volumes.get(bind.uid, ())
            event = Record(ref(task.pod), "Scheduled", f"Successfully assigned {bind.task} to {bind.node}")
            steps = (Bind(ref(task.pod), bind.node, bind.annotations), event)
            devices = decisions.devices.get(bind.uid, ())
            prepare = (*volume_steps(volumes, snapshot), *device_steps(devices, snapshot, task.pod))
            allocations = {choice.claim: choice.allocation for choice in devices if choice.is_new}
            undo = tuple(device_undo_steps(devices, snapshot, task.pod))
            lock = decisions.node_locks.get(bind.uid, "")
            told = bind.annotations
            yield BindPlan(task.pod, bind.uid, bind.node, volumes, prepare, steps, allocations, undo, lock, told)

    def _evictions(self, decisions: Decisions, snapshot: Snapshot, now: datetime) -> Iterator[EvictionPlan]:
        for eviction in decisions.evictions:
            task = snapshot.tasks.get(eviction.uid)
            if task is None or eviction.task in decisions.dropped:
                continue
            pod = ref(task.pod)
            because = eviction_message(eviction.reason, eviction.preemptor)
            conditions = [
                condition("Ready", "False", SCHEDULER_REASON, because, now),
                condition(
                    "DisruptionTarget",
                    "True",
                    "PreemptionByScheduler",
                    f"{self._scheduler_name}: preempting to accommodate a higher priority pod",
                    now,
                ),
            ]
            steps: list[Step] = [Record(pod, "Evict", because, "Warning")]
            job = snapshot.jobs.get(eviction.job)
            if job is not None and job.group is not None and job.group.uid:
                steps.append(Record(ref(job.group), "Evict", eviction.reason))
            steps.append(Patch(pod, {"status": {"conditions": conditions}}, kind="strategic", subresource="status"))
            yield EvictionPlan(task.pod, eviction.uid, tuple(steps))

    # -- PodGroups -----------------------------------------------------------------------------------------------
    def _group_patches(
        self,
        decisions: Decisions,
        snapshot: Snapshot,
        now: datetime,
        incomplete: frozenset[str],
        *,
        skipped: frozenset[str],
    ) -> Iterator[tuple[str, Patch]]:
        for job_id, status in decisions.groups.items():
            job = snapshot.jobs.get(job_id)
            if job is None or job.group is None or job_id in skipped:
                continue
            group, why = job.group, decisions.why.get(job_id)
            agreed = self._agreed.get(job_id)
            reservation = decisions.reservations.get(job_id)
            settled = why is None and reservation is None
            if settled and agreed is not None and agreed[0] is group and agreed[1] is status:
                continue
            before = decode_why(group.annotations[WHY_ANNOTATION]) if WHY_ANNOTATION in group.annotations else None
            if job_id in self._sought:
                why, status = before, replace(status, conditions=tuple(group.status.conditions))
            body = group_body(group, status, before, why, now, reservation)
            if body is None:
                if settled:
                    self._agreed[job_id] = (group, status)
            elif status.phase == group.status.phase and job_id in incomplete:
                self._postponed = True
            elif self._is_time(job_id, now, pause_before(group, status, before, why, reservation)):
                self._groups[job_id] = now
                yield job_id, Patch(ref(group), body)

    def _incomplete(self, decisions: Decisions, snapshot: Snapshot, now: datetime) -> frozenset[str]:
        """Jobs that only lack pods which are still being created: nothing is said about them yet."""
        patience = POD_CREATION_TIME if self._load < 1 else POD_CREATION_TIME_UNDER_LOAD
        return frozenset(
            job_id
            for job_id, why in decisions.why.items()
            if (job := snapshot.jobs.get(job_id)) is not None and is_being_made(job, why, now, patience)
        )

    def _is_time(self, job_id: str, now: datetime, pause: timedelta) -> bool:
        last = self._groups.get(job_id)
        due = last is None or not is_recent(last, now, pause if self._load < BUSY_BINDS else _when_busy(pause))
        self._postponed = self._postponed or (not due and pause < MESSAGE_INTERVAL)
        return due

    def _count(self, binds: int, now: datetime) -> None:
        if self._counted is not None:
            self._load *= 0.5 ** max((now - self._counted).total_seconds(), 0.0)
        self._load, self._counted = self._load + binds, now

    # -- queues --------------------------------------------------------------------------------------------------
    def _queue_patches(self, decisions: Decisions, snapshot: Snapshot, now: datetime) -> Iterator[Patch]:
        for name, patch in queue_patches(decisions, snapshot):
            last = self._queues.get(name)
            if last is not None and is_recent(last, now, BATCHING_INTERVAL):
                self._postponed = True
                continue
            self._queues[name] = now
            yield patch

    # -- reservations --------------------------------------------------------------------------------------------
    def _reservation_patches(self, decisions: Decisions, snapshot: Snapshot, now: datetime) -> Iterator[Patch]:
        for reservation, patch, is_new in reservation_patches(decisions, snapshot):
            last = self._reservations.get(reservation.uid)
            pause = BATCHING_INTERVAL if is_new else MESSAGE_INTERVAL
            if last is None or not is_recent(last, now, pause):
                self._reservations[reservation.uid] = now
                yield patch

    # -- pods ----------------------------------------------------------------------------------------------------
    def _notices(
        self, decisions: Decisions, snapshot: Snapshot, now: datetime, incomplete: frozenset[str]
    ) -> Iterator[tuple[Patch, Record | None]]:
        self._postponed = self._postponed or bool(incomplete)
        incomplete |= self._sought
        for notice in decisions.pods:
            task = snapshot.tasks.get(notice.uid)
            if task is None or task.node or task.job_id in incomplete:
                continue
            if not self._has_changed(notice, task.pod, now):
                continue
            wanted = condition("PodScheduled", "False", notice.reason, notice.message[:MAX_MESSAGE_CHARACTERS], now)
            written = current(task.pod, "PodScheduled")
            if written is not None and written.status == "False" and written.last_transition_time is not None:
                wanted["lastTransitionTime"] = timestamp(written.last_transition_time)
            status: JSON = {"conditions": [wanted]}
            if notice.nominated_node:
                status["nominatedNodeName"] = notice.nominated_node
            patch = Patch(ref(task.pod), {"status": status}, kind="strategic", subresource="status")
            yield patch, Record(ref(task.pod), "FailedScheduling", notice.message[:MAX_MESSAGE_CHARACTERS], "Warning")

    def _has_changed(self, notice: PodNotice, pod: core.Pod, now: datetime) -> bool:
        """Whether the notice differs from the last write; changes of the message alone are rate-limited."""
        written = current(pod, "PodScheduled")
        wanted = (notice.reason, notice.message[:MAX_MESSAGE_CHARACTERS], notice.nominated_node)
        nominated = notice.nominated_node and notice.nominated_node != pod.status.nominated_node_name
        if (
            written is not None
            and not nominated
            and (written.status, written.reason, written.message) == ("False", *wanted[:2])
        ):
            return False
        last = self._pods.get(notice.uid)
        if last is not None:
            same_cause = last.content[0] == notice.reason and last.content[2] == notice.nominated_node
            if last.content == wanted or (same_cause and is_recent(last.at, now, MESSAGE_INTERVAL)):
                return False
        self._pods[notice.uid] = LastWrite(wanted, now)
        return True

    # -- events --------------------------------------------------------------------------------------------------
    def _notes_to_record(
        self, decisions: Decisions, snapshot: Snapshot, now: datetime, is_virtual: frozenset[str]
    ) -> Iterator[Record]:
        for note in decisions.notes:
            job = snapshot.jobs.get(note.job)
            if job is None or job.group is None or note.job in is_virtual or note.job in self._sought:
                continue
            if note.type == "Warning" and note.job not in decisions.why:
                continue  # it only waits for what was just decided
            message = note.message[:MAX_MESSAGE_CHARACTERS]
            if self._events.allows(note.job, note.reason, message, now):
                yield Record(ref(job.group), note.reason, message, "Warning" if note.type == "Warning" else "Normal")

    def _forget(self, snapshot: Snapshot) -> None:
        """Drop what belongs to deleted objects."""
        if len(self._pods) > 2 * len(snapshot.tasks) + 64:
            self._pods = {uid: last for uid, last in self._pods.items() if uid in snapshot.tasks}
        if len(self._groups) + len(self._events) + len(self._agreed) > 5 * len(snapshot.jobs) + 64:
            self._groups = {job: at for job, at in self._groups.items() if job in snapshot.jobs}
            self._agreed = {job: pair for job, pair in self._agreed.items() if job in snapshot.jobs}
            self._events.keep(snapshot.jobs)
        if len(self._reservations) > 2 * len(snapshot.cluster.reservations) + 64:
            known = {reservation.uid for reservation in snapshot.cluster.reservations.values()}
            self._reservations = {uid: at for uid, at in self._reservations.items() if uid in known}
        if len(self._queues) > 2 * len(snapshot.queues) + 64:
            self._queues = {name: at for name, at in self._queues.items() if name in snapshot.queues}


def _when_busy(pause: timedelta) -> timedelta:
    return MESSAGE_INTERVAL if pause == BATCHING_INTERVAL else pause
