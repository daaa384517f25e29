"""The engine: virtual time, an ordered queue of events, and the real cache and scheduling cycle between them.

All events of one instant happen before a cycle decides; cycles then follow each other at that instant until one of
them changes nothing, or until they are found to repeat themselves. What has ended leaves the engine, so an event costs
the same however many jobs are finished.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import IntEnum
from typing import Final

import msgspec

from volcano.api import core, scheduling, topology
from volcano.api.batch import Action, BusEvent
from volcano.api.jobs.reservations import RESERVATION_ANNOTATION
from volcano.api.scheduling import TASK_SPEC_KEY, PodGroup
from volcano.controllers.job.occurrences import Occurrence
from volcano.controllers.job.policies import answer_to
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.actions import Action as SchedulerAction
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.model import ClusterObjects, SeededChance
from volcano.scheduler.played_cluster import PlayedCluster, started_pod, updated_group
from volcano.scheduler.plugins import PLUGINS
from volcano.simulator.jobs import JobAttempt, JobOutcome, WorkloadJob, amounts_of_role
from volcano.simulator.making import NAMESPACE, make_group, make_pods
from volcano.simulator.network import NetworkModel
from volcano.simulator.node_changes import NodeChange
from volcano.simulator.repetitions import Repetitions
from volcano.simulator.shortcuts import StrictOrder, has_strict_order, needs_no_idle_cycles
from volcano.simulator.timelines import Recorder

EPOCH: Final = datetime(2026, 1, 1, tzinfo=UTC)


class EventKind(IntEnum):
    """Events of one instant happen in this order."""

    JOB_END = 0
    NODE_CHANGE = 1
    SUBMIT = 2


@dataclass(slots=True)
class LiveJob:
    """A submitted job that has not ended."""

    job: WorkloadJob
    outcome: JobOutcome
    group: PodGroup
    pods: dict[str, core.Pod] = field(default_factory=dict)  # by uid
    running: dict[str, str] = field(default_factory=dict)  # uid → node
    amounts: dict[str, dict[str, float]] = field(default_factory=dict)  # what a pod of each role requests
    told: dict[str, frozenset[str]] = field(default_factory=dict)  # uid → annotations that it was bound with
    retries: int = 0
    ends: float | None = None  # when it will have run for its run time; None while its gang is not whole
    progress: SharedProgress | None = None  # of a job whose work some of its pods share


@dataclass(slots=True)
class SharedProgress:
    """How much of a job's run time (that with all its workers) is done, and how fast it goes on since a moment."""

    since: float
    done: float = 0.0
    speed: float = 0.0  # share of its workers that run


class Engine:
    """Runs one workload under one configuration."""

    def __init__(
        self,
        nodes: Iterable[core.Node],
        queues: Iterable[scheduling.Queue],
        config: SchedulerConfig,
        *,
        priority_classes: Iterable[core.PriorityClass] = (),
        hypernodes: Iterable[topology.HyperNode] = (),
        network: NetworkModel | None = None,
        seed: int = 0,
        plugins: Mapping[str, type[Plugin]] = PLUGINS,
        actions: Mapping[str, SchedulerAction] = ACTIONS,
        on_progress: Callable[[float, int], None] | None = None,
        shortcuts: bool = True,
    ) -> None:
        """Without `shortcuts`, every cycle runs and sees every job, which takes longer and decides the same."""
        self._chance = SeededChance(seed)
        self.cluster = PlayedCluster(config, plugins=plugins, actions=actions)
        self._events: list[tuple[float, int, int, str]] = []
        self._sequence = 0
        self._jobs: dict[str, LiveJob] = {}  # by PodGroup name
        self._to_submit: dict[str, WorkloadJob] = {}
        self.outcomes: dict[str, JobOutcome] = {}
        self.now = 0.0
        self._finished = 0
        self._replacements = 0
        self._on_progress = on_progress
        self._unsettled: set[str] = set()  # live jobs that are not running with all their pods
        self.repetitions = Repetitions()
        self._noted: dict[str, str] = {}  # phases that were taken in, of jobs to which nothing has happened since
        self._may_skip = shortcuts and needs_no_idle_cycles(config)
        self._line = StrictOrder(config, plugins) if shortcuts and has_strict_order(config) else None
        classes = list(priority_classes)
        self._classes = ClusterObjects(priority_classes={each.name: each for each in classes})
        self._list = classes
        self._network = network
        self._nodes = {node.metadata.name: node for node in nodes}
        self._node_changes: list[NodeChange] = []
        self.recorder = Recorder()
        for node in self._nodes.values():
            self.recorder.add_node(node)
        self.cluster.put_all((*self._nodes.values(), *queues, *hypernodes, *classes))

    @property
    def cycles(self) -> int:
        return self.cluster.cycles

    # -- input --------------------------------------------------------------------------------------------------------
    def submit(self, jobs: Iterable[WorkloadJob]) -> None:
        given = list(jobs)
        self.recorder.expect(given)
        for job in given:
            if job.name in self.outcomes:
                raise ValueError(f"two jobs are named {job.name}")
            self.outcomes[job.name] = JobOutcome(job)
            self._to_submit[job.name] = job
            self._at(job.submit, EventKind.SUBMIT, job.name)

    def begin_running(self, job: WorkloadJob, placed: Mapping[str, Sequence[str]]) -> None:
        """A job that runs as the simulation begins, its pods (by role) on these nodes; its run time is what is left."""
        self.outcomes[job.name] = JobOutcome(job)
        self._create_group(job)
        live = self._jobs[job.name]
        if self._line is not None:
            self._line.remove(job.name)
        status = msgspec.structs.replace(live.group.status, phase="Running")
        live.group = msgspec.structs.replace(live.group, status=status)
        self.cluster.put(live.group)
        self._create_pods(live)
        left = {role: list(nodes) for role, nodes in placed.items()}
        for uid, pod in list(live.pods.items()):
            if nodes := left.get(_role(pod)):
                self._start_pod(job.name, uid, nodes.pop(0))
        self._started(live)
        self._note_whether_settled(live)

    def run(self, until: float | None = None) -> None:
        """Until nothing is left to happen, or until the given time."""
        while self._events and (self._jobs or self._to_submit):
            moment = self._events[0][0]
            if until is not None and moment > until:
                self.recorder.pass_time(until)
                self.now = until
                return
            self.recorder.pass_time(moment)
            self.now = moment
            happened = False
            while self._events and self._events[0][0] <= moment:
                _, kind, _, name = heapq.heappop(self._events)
                happened |= self._happen(EventKind(kind), name)
            if happened:
                self._settle()
            if self.repetitions.is_endless:
                return
            self.recorder.mark(moment)
            if self._on_progress is not None:
                self._on_progress(self.now, self._finished)

    def _at(self, moment: float, kind: EventKind, name: str) -> None:
        self._sequence += 1
        heapq.heappush(self._events, (moment, kind, self._sequence, name))

    # -- events -------------------------------------------------------------------------------------------------------
    def _happen(self, kind: EventKind, name: str) -> bool:
        """Whether it still was to happen."""
        if kind is EventKind.SUBMIT:
            self._create_group(self._to_submit.pop(name))
        elif kind is EventKind.JOB_END:
            return self._end(name)
        elif kind is EventKind.NODE_CHANGE:
            self._change_node(self._node_changes[int(name)])
        return True

    def _create_group(self, job: WorkloadJob) -> None:
        group = make_group(job, f"{self._sequence:012d}-{job.name}", self._moment(job.submit - job.waited), self._list)
        live = self._jobs[job.name] = LiveJob(job, self.outcomes[job.name], group)
        live.amounts = {role.name: amounts_of_role(role) for role in job.roles}
        self._unsettled.add(job.name)
        for role in job.roles:
            self.recorder.want(job.queue, live.amounts[role.name], role.count)
        if self._line is None or self._line.add(group, self._classes.priority_of(job.priority_class)):
            self.cluster.put(group)

    def _create_pods(self, live: LiveJob) -> None:
        """The job controller creates pods once the PodGroup has entered its queue."""
        self._forget_phase(live)
        created = live.group.metadata.creation_timestamp or self._moment(self.now)
        for pod in make_pods(live.job, created, live.pods.values()):
            live.pods[pod.uid] = pod
            self.cluster.put(pod)

    def _end(self, name: str) -> bool:
        live = self._jobs.get(name)
        if live is None or live.ends != self.now:
            return False  # an eviction has ended that attempt already
        live.outcome.end = self.now
        self._leave(live)
        return True

    def _leave(self, live: LiveJob) -> None:
        """The job is over, and all that there was of it goes."""
        job = live.job
        del self._jobs[job.name]
        self._forget_phase(live)
        self._unsettled.discard(job.name)
        self._finished += 1
        self.repetitions.end_job()
        for uid in list(live.running):
            self._release(live, uid)
        for role in job.roles:
            self.recorder.want(job.queue, live.amounts[role.name], -role.count)
        if self._line is not None:
            self._line.remove(job.name)
        for pod in live.pods.values():
            self.cluster.drop(pod)
        self.cluster.drop(live.group)

    # -- nodes --------------------------------------------------------------------------------------------------------
    def expect_changes(self, changes: Iterable[NodeChange]) -> None:
        """Nodes that fail, come back, are cordoned or leave, at their times."""
        for change in changes:
            self._node_changes.append(change)
            self._at(change.at, EventKind.NODE_CHANGE, str(len(self._node_changes) - 1))

    def _change_node(self, change: NodeChange) -> None:
        name = change.node.metadata.name
        if change.pods_leave:
            for live in list(self._jobs.values()):
                for uid in [uid for uid, node in live.running.items() if node == name]:
                    if uid in live.running:
                        self._lose(live, uid)
        before = self._nodes.pop(name, None)
        if change.is_there:
            self._nodes[name] = change.node
            self.cluster.put(change.node)
            if before is None:
                self.recorder.add_node(change.node)
        elif before is not None:
            self.cluster.drop(before)
            self.recorder.remove_node(name)

    # -- cycles -------------------------------------------------------------------------------------------------------
    def _settle(self) -> None:
        self.repetitions.begin_instant()
        while self.cluster.has_changes and (self._unsettled or not self._may_skip):
            self._cycle()  # what changes without need of a cycle is taken in by the next one
            if self.repetitions.must_rest(self.now):
                return

    def _cycle(self) -> None:
        self.cluster.cycles += 1
        if self._line is not None:
            self.cluster.put_all(self._line.to_show())
        before = copy(self._chance)
        decisions = self._decide()
        while self._line is not None and (missing := self._line.missing(decisions)):
            self.cluster.put_all(missing)
            self._chance = copy(before)
            decisions = self._decide()
        self._carry_out(decisions)

    def _decide(self) -> Decisions:
        return self.cluster.decide(self._moment(self.now), self._chance)

    def _carry_out(self, decisions: Decisions) -> None:
        started: set[str] = set()
        for bind in decisions.binds:
            if bind.task not in decisions.dropped:
                self._start_pod(bind.job.partition("/")[2], bind.uid, bind.node, bind.annotations)
                started.add(bind.job.partition("/")[2])
        for name in sorted(started):
            live = self._jobs[name]
            if live.job.manifest is not None and len(live.pods) < live.job.pods:
                self._create_pods(live)  # tasks that waited for others to run
            self._started(live)
            self._share_work(live)
        for eviction in decisions.evictions:
            if eviction.task not in decisions.dropped:
                self._evict(eviction.job.partition("/")[2], eviction.uid)
        self._take_phases(decisions)

    def _take_phases(self, decisions: Decisions) -> None:
        noted = self._noted
        for job_id, status in decisions.groups.items():
            if noted.get(job_id) == status.phase and not decisions.reservations:
                continue  # nothing has happened to it since
            live = self._jobs.get(job_id.partition("/")[2])
            if live is not None:
                self._update_group(live, status.phase, decisions)
                self._note_whether_settled(live)
                if not live.group.metadata.annotations.get(RESERVATION_ANNOTATION):
                    noted[job_id] = status.phase

    def _forget_phase(self, live: LiveJob) -> None:
        self._noted.pop(f"{NAMESPACE}/{live.job.name}", None)

    def _note_whether_settled(self, live: LiveJob) -> None:
        if live.group.status.phase == "Running" and len(live.running) == live.job.pods:
            self._unsettled.discard(live.job.name)
        else:
            self._unsettled.add(live.job.name)

    def _start_pod(self, job: str, uid: str, node: str, annotations: Mapping[str, str] | None = None) -> None:
        live = self._jobs[job]
        pod = live.pods[uid]
        live.running[uid] = node
        self._forget_phase(live)
        self.repetitions.start(job)
        self.recorder.hold(live.job.queue, node, live.amounts.get(_role(pod), {}), 1.0)
        if annotations:
            live.told[uid] = frozenset(annotations.keys() - pod.metadata.annotations.keys())
        live.pods[uid] = started = started_pod(pod, node, self._moment(self.now), annotations)
        self.cluster.put(started)

    def _started(self, live: LiveJob) -> None:
        if live.ends is None and len(live.running) >= live.group.spec.min_member:
            if live.outcome.start is None:
                live.outcome.start = self.now
            live.outcome.attempts += 1
            live.outcome.last_start = self.now
            live.outcome.nodes = tuple(sorted(set(live.running.values())))
            live.outcome.ran = self._run_time(live)
            live.ends = self.now + live.outcome.ran
            if live.job.workers:
                live.progress = SharedProgress(self.now)
            else:
                self._at(live.ends, EventKind.JOB_END, live.job.name)

    def _share_work(self, live: LiveJob) -> None:
        """Pods of the role that shares the work have started or left: the end moves; without any there is none."""
        progress = live.progress
        if progress is None:
            return
        progress.done += (self.now - progress.since) * progress.speed
        running = sum(_role(live.pods[uid]) == live.job.workers for uid in live.running)
        progress.since, progress.speed = self.now, running / live.job.all_workers
        live.outcome.nodes = tuple(sorted(set(live.running.values())))
        if running:
            live.ends = self.now + max(live.job.run_time - progress.done, 0.0) / progress.speed
            self._at(live.ends, EventKind.JOB_END, live.job.name)
        else:
            live.ends = math.inf

    def _run_time(self, live: LiveJob) -> float:
        if self._network is None:
            return live.job.run_time
        return self._network.run_time(live.job, [(_role(live.pods[uid]), node) for uid, node in live.running.items()])

    def _evict(self, job: str, uid: str) -> None:
        live = self._jobs.get(job)
        if live is not None and uid in live.running:
            live.outcome.evictions += 1
            self.repetitions.evict(job)
            self._lose(live, uid)

    def _lose(self, live: LiveJob, uid: str) -> None:
        """A pod was evicted, or its node failed: what the job's policies say about that happens at once."""
        action = self._action_about(live, uid)
        if action in (Action.ABORT_JOB, Action.TERMINATE_JOB):
            self._give_up(live, f"{action} after a pod was evicted")
            return
        if action == Action.COMPLETE_JOB:
            live.outcome.end = self.now
            self._leave(live)
            return
        leaving = self._leaving(live, uid, action)
        stays_whole = live.ends is not None and len(live.running) - len(leaving) >= live.group.spec.min_member
        if not stays_whole and action not in (Action.RESTART_POD, Action.RESTART_TASK, Action.RESTART_PARTITION):
            leaving = list(live.running)
        if live.ends is not None and live.outcome.last_start is not None:
            live.outcome.lost_seconds += (self.now - live.outcome.last_start) * len(leaving)
            if not stays_whole:
                live.outcome.earlier.append(JobAttempt(live.outcome.last_start, self.now, live.outcome.nodes))
        if not stays_whole:
            live.ends = live.progress = None
            live.retries += 1
            if live.job.manifest is not None and action == Action.RESTART_JOB:
                most = live.job.manifest.spec.max_retry
                if live.retries > most:
                    self._give_up(live, f"restarted {most} times")
                    return
        for each in leaving:
            self._replace_pod(live, each)
        self._share_work(live)

    def _action_about(self, live: LiveJob, uid: str) -> str:
        if live.job.manifest is None:
            return ""
        pod = live.pods[uid]
        answer = answer_to(live.job.manifest, Occurrence(BusEvent.POD_EVICTED, _role(pod), pod.name))
        return answer.action if answer is not None else ""

    def _leaving(self, live: LiveJob, uid: str, action: str) -> list[str]:
        if action == Action.RESTART_JOB:
            return list(live.running)
        if action == Action.RESTART_TASK:
            role = _role(live.pods[uid])
            return [each for each in live.running if _role(live.pods[each]) == role]
        return [uid]

    def _give_up(self, live: LiveJob, why: str) -> None:
        live.outcome.failed = why
        if live.outcome.last_start is not None and live.ends is not None:
            live.outcome.earlier.append(JobAttempt(live.outcome.last_start, self.now, live.outcome.nodes))
        self._leave(live)

    def _release(self, live: LiveJob, uid: str) -> None:
        node = live.running.pop(uid)
        self._forget_phase(live)
        self.recorder.hold(live.job.queue, node, live.amounts.get(_role(live.pods[uid]), {}), -1.0)

    def _replace_pod(self, live: LiveJob, uid: str) -> None:
        self._release(live, uid)
        pod = live.pods.pop(uid)
        self._unsettled.add(live.job.name)
        self._replacements += 1
        fresh = f"{pod.metadata.name}.{self._replacements}r"
        told = live.told.pop(uid, frozenset())  # the cards of the pod that is gone are not those of its successor
        meta = msgspec.structs.replace(
            pod.metadata,
            uid=fresh,
            creation_timestamp=self._moment(self.now),
            annotations={key: value for key, value in pod.metadata.annotations.items() if key not in told},
        )
        live.pods[fresh] = msgspec.structs.replace(
            pod,
            metadata=meta,
            spec=msgspec.structs.replace(pod.spec, node_name=""),
            status=core.PodStatus(phase="Pending"),
        )
        self.cluster.put(live.pods[fresh])

    def _update_group(self, live: LiveJob, phase: str, decisions: Decisions) -> None:
        changed = updated_group(live.group, phase, decisions.reservations.get(f"{NAMESPACE}/{live.job.name}"))
        if changed is None:
            return
        live.group = changed
        self.cluster.put(live.group)
        if self._line is not None and phase != "Pending":
            self._line.remove(live.job.name)
        if phase in ("Inqueue", "Running") and not live.pods:
            self._create_pods(live)

    @staticmethod
    def _moment(seconds: float) -> datetime:
        return EPOCH + timedelta(seconds=seconds)


def _role(pod: core.Pod) -> str:
    return pod.metadata.annotations.get(TASK_SPEC_KEY, "")
