"""The output edge: a cycle's decisions become plans, and of what there is to say only what is news.

Binds and evictions are plans of their own, so that one that fails stops no other. A status is written at once when
something in it changed; when only numbers or words did, at most every ten seconds.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any, Final

from volcano.api import core
from volcano.api.meta import JSON, Key
from volcano.api.quantity import BINARY_SI, NANO, Quantity, QuantityError
from volcano.api.scheduling import WHY_ANNOTATION, PodGroup, PodGroupCondition
from volcano.api.scheduling import Queue as ApiQueue
from volcano.api.scheme import resource_type
from volcano.api.topology import NodeShard
from volcano.api.why import Why, decode_why, encode_why
from volcano.machinery.plan import Bind, Delete, Patch, Plan, Record, Ref, Step, ref
from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.decisions import Decisions, GroupStatus, PodNotice
from volcano.scheduler.framework.record import VolumeChoice
from volcano.scheduler.model import CPU, MEMORY, PODS, Resources, resources_from
from volcano.scheduler.model.task import QUEUE_GATE

QUIET_TIME: Final = timedelta(seconds=10)
REPEAT_TIME: Final = timedelta(minutes=5)
LONGEST_MESSAGE: Final = 1024
VOLUMES: Final = resource_type(core.PersistentVolume)
CLAIMS: Final = resource_type(core.PersistentVolumeClaim)
PODS_TYPE: Final = resource_type(core.Pod)


@dataclass(slots=True, frozen=True)
class Binding:
    """One bind: claims that must be bound first, how to ask for that, and the bind itself."""

    pod: core.Pod
    uid: str
    node: str
    volumes: tuple[VolumeChoice, ...]
    prepare: Plan
    bind: Plan


@dataclass(slots=True, frozen=True)
class Evicting:
    pod: core.Pod
    uid: str
    plan: Plan


@dataclass(slots=True, frozen=True)
class Commitment:
    """Everything a cycle has to send; each step stands for itself."""

    binds: tuple[Binding, ...] = ()
    evictions: tuple[Evicting, ...] = ()
    groups: Mapping[str, Patch] = field(default_factory=dict)  # by job
    others: tuple[Step, ...] = ()  # pods' conditions, queues, gates
    records: tuple[Record, ...] = ()


@dataclass(slots=True)
class Told:
    """What was last said of something, and when."""

    said: Any
    at: datetime


class Committer:
    """Remembers what it has said, so that it does not say it again."""

    def __init__(self, scheduler_name: str = "volcano") -> None:
        self._scheduler_name = scheduler_name
        self._groups: dict[str, datetime] = {}
        self._pods: dict[str, Told] = {}
        self._notes: dict[tuple[str, str], Told] = {}

    def commitment(
        self,
        decisions: Decisions,
        snapshot: Snapshot,
        now: datetime,
        *,
        in_flight: frozenset[str] = frozenset(),
        is_virtual: frozenset[str] = frozenset(),
    ) -> Commitment:
        """`in_flight`: jobs whose PodGroup is just being written; `is_virtual`: jobs without one."""
        binds = tuple(self._binds(decisions, snapshot))
        evictions = tuple(self._evictions(decisions, snapshot, now))
        groups = {
            job: patch
            for job, status in decisions.groups.items()
            if job not in in_flight
            and job not in is_virtual
            and (patch := self._group(snapshot, job, status, decisions.why.get(job), now)) is not None
        }
        pods = list(self._notices(decisions, snapshot, now))
        records = [*self._notes_to_record(decisions, snapshot, now, is_virtual), *(r for _, r in pods if r is not None)]
        self._forget(snapshot)
        return Commitment(
            binds,
            evictions,
            groups,
            (*(patch for patch, _ in pods), *_queues(decisions, snapshot), *_gates(decisions, snapshot)),
            tuple(records),
        )

    def unsay(self, *, job: str = "", pod_uid: str = "") -> None:
        """A status could not be written: whatever it should say is news again."""
        self._groups.pop(job, None)
        self._pods.pop(pod_uid, None)

    # -- binds and evictions -------------------------------------------------------------------------------------
    def _binds(self, decisions: Decisions, snapshot: Snapshot) -> Iterator[Binding]:
        for bind in decisions.binds:
            task = snapshot.tasks.get(bind.uid)
            if task is None or bind.task in decisions.dropped:
                continue
            volumes = decisions.volumes.get(bind.uid, ())
            said = Record(ref(task.pod), "Scheduled", f"Successfully assigned {bind.task} to {bind.node}")
            steps = (Bind(ref(task.pod), bind.node, bind.annotations), said)
            yield Binding(task.pod, bind.uid, bind.node, volumes, tuple(_prepared(volumes, snapshot)), steps)

    def _evictions(self, decisions: Decisions, snapshot: Snapshot, now: datetime) -> Iterator[Evicting]:
        for eviction in decisions.evictions:
            task = snapshot.tasks.get(eviction.uid)
            if task is None or eviction.task in decisions.dropped:
                continue
            pod = ref(task.pod)
            because = f"Pod is evicted, because of {eviction.reason}"
            conditions = [
                _condition("Ready", "False", "Evict", because, now),
                _condition(
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
            steps.append(Delete(pod))
            yield Evicting(task.pod, eviction.uid, tuple(steps))

    # -- PodGroups -----------------------------------------------------------------------------------------------
    def _group(
        self, snapshot: Snapshot, job_id: str, status: GroupStatus, why: Why | None, now: datetime
    ) -> Patch | None:
        job = snapshot.jobs.get(job_id)
        if job is None or job.group is None:
            return None
        group = job.group
        before = decode_why(group.annotations[WHY_ANNOTATION]) if WHY_ANNOTATION in group.annotations else None
        body = _group_body(group, status, before, why, now)
        if body is None:
            return None
        if not _is_news(group, status, before, why):
            last = self._groups.get(job_id)
            if last is not None and now - last < QUIET_TIME:
                return None
        self._groups[job_id] = now
        return Patch(ref(group), body)

    # -- pods ----------------------------------------------------------------------------------------------------
    def _notices(
        self, decisions: Decisions, snapshot: Snapshot, now: datetime
    ) -> Iterator[tuple[Patch, Record | None]]:
        for notice in decisions.pods:
            task = snapshot.tasks.get(notice.uid)
            if task is None or task.node or not self._is_pod_news(notice, task.pod, now):
                continue
            condition = _condition("PodScheduled", "False", notice.reason, notice.message[:LONGEST_MESSAGE], now)
            said = _current(task.pod, "PodScheduled")
            if said is not None and said.status == "False" and said.last_transition_time is not None:
                condition["lastTransitionTime"] = _text(said.last_transition_time)
            status: JSON = {"conditions": [condition]}
            if notice.nominated_node:
                status["nominatedNodeName"] = notice.nominated_node
            patch = Patch(ref(task.pod), {"status": status}, kind="strategic", subresource="status")
            yield patch, Record(ref(task.pod), "FailedScheduling", notice.message[:LONGEST_MESSAGE], "Warning")

    def _is_pod_news(self, notice: PodNotice, pod: core.Pod, now: datetime) -> bool:
        """Something changed that was not said a moment ago; mere words wait."""
        said = _current(pod, "PodScheduled")
        saying = (notice.reason, notice.message[:LONGEST_MESSAGE], notice.nominated_node)
        nominated = notice.nominated_node and notice.nominated_node != pod.status.nominated_node_name
        if said is not None and not nominated and (said.status, said.reason, said.message) == ("False", *saying[:2]):
            return False
        last = self._pods.get(notice.uid)
        if last is not None:
            same_cause = last.said[0] == notice.reason and last.said[2] == notice.nominated_node
            if last.said == saying or (same_cause and now - last.at < QUIET_TIME):
                return False
        self._pods[notice.uid] = Told(saying, now)
        return True

    # -- events --------------------------------------------------------------------------------------------------
    def _notes_to_record(
        self, decisions: Decisions, snapshot: Snapshot, now: datetime, is_virtual: frozenset[str]
    ) -> Iterator[Record]:
        for note in decisions.notes:
            job = snapshot.jobs.get(note.job)
            if job is None or job.group is None or note.job in is_virtual:
                continue
            if note.type == "Warning" and note.job not in decisions.why:
                continue  # it only waits for what was just decided
            place = (note.job, note.reason)
            last = self._notes.get(place)
            if last is not None and now - last.at < (REPEAT_TIME if last.said == note.message else QUIET_TIME):
                continue
            self._notes[place] = Told(note.message, now)
            message = note.message[:LONGEST_MESSAGE]
            yield Record(ref(job.group), note.reason, message, "Warning" if note.type == "Warning" else "Normal")

    def _forget(self, snapshot: Snapshot) -> None:
        """What is gone needs no memory."""
        if len(self._pods) > 2 * len(snapshot.tasks) + 64:
            self._pods = {uid: told for uid, told in self._pods.items() if uid in snapshot.tasks}
        if len(self._groups) + len(self._notes) > 4 * len(snapshot.jobs) + 64:
            self._groups = {job: at for job, at in self._groups.items() if job in snapshot.jobs}
            self._notes = {place: told for place, told in self._notes.items() if place[0] in snapshot.jobs}


# -- parts of plans ---------------------------------------------------------------------------------------------
def bind_failed(pod: core.Pod, reason: str, now: datetime) -> Plan:
    """What is said when a bind did not come about."""
    condition = _condition("PodScheduled", "False", "SchedulerError", reason[:LONGEST_MESSAGE], now)
    return (
        Record(ref(pod), "FailedScheduling", reason[:LONGEST_MESSAGE], "Warning"),
        Patch(ref(pod), {"status": {"conditions": [condition]}}, kind="strategic", subresource="status"),
    )


def shard_status(own: NodeShard, used: Collection[str], now: datetime) -> Patch | None:
    """What our shard should say of the nodes a cycle used; None when it says so already."""
    desired = set(own.spec.nodes_desired)
    lists = {
        "nodesInUse": sorted(used),
        "nodesToRemove": sorted(set(used) - desired),
        "nodesToAdd": sorted(desired - set(used)),
    }
    said = own.status
    if [*lists.values()] == [sorted(said.nodes_in_use), sorted(said.nodes_to_remove), sorted(said.nodes_to_add)]:
        return None
    return Patch(ref(own), {"status": {**lists, "lastUpdateTime": _text(now)}}, subresource="status")


def _prepared(volumes: Iterable[VolumeChoice], snapshot: Snapshot) -> Iterator[Step]:
    """Tell the volume controller which volume a claim shall have, or for which node one is to be made."""
    around = snapshot.surroundings
    for choice in volumes:
        claim = around.claims.get(choice.claim)
        if claim is None:
            continue
        if not choice.volume:
            body: JSON = {"metadata": {"annotations": {"volume.kubernetes.io/selected-node": choice.node}}}
            yield Patch(ref(claim), body, gone_ok=False)
            continue
        reference = {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "namespace": choice.claim.namespace,
            "name": choice.claim.name,
            "uid": claim.uid,
        }
        body = {
            "metadata": {"annotations": {"pv.kubernetes.io/bound-by-controller": "yes"}},
            "spec": {"claimRef": reference},
        }
        yield Patch(Ref(VOLUMES, Key("", choice.volume)), body, gone_ok=False)


def _group_body(
    group: PodGroup, status: GroupStatus, before: Why | None, why: Why | None, now: datetime
) -> JSON | None:
    """The merge patch from what the PodGroup says to what it should; None when it says so already."""
    body: JSON = {}
    if why != before:
        body["metadata"] = {"annotations": {WHY_ANNOTATION: encode_why(why) if why is not None else None}}
    changed: JSON = {}
    for name in ("phase", "running", "succeeded", "failed"):
        if getattr(group.status, name) != getattr(status, name):
            changed[name] = getattr(status, name)
    conditions = [_settled(group, condition, now) for condition in status.conditions]
    if [_said(c) for c in conditions] != [_said(c) for c in group.status.conditions]:
        changed["conditions"] = [_group_condition(condition) for condition in conditions]
    if changed:
        body["status"] = changed
    return body or None


def _is_news(group: PodGroup, status: GroupStatus, before: Why | None, why: Why | None) -> bool:
    """More than numbers and words."""
    if (why is None) != (before is None) or (why is not None and why.is_news(before)):
        return True
    counts = ("phase", "running", "succeeded", "failed")
    if any(getattr(group.status, name) != getattr(status, name) for name in counts):
        return True
    stated = [(c.type, c.status, c.reason) for c in status.conditions]
    return stated != [(c.type, c.status, c.reason) for c in group.status.conditions]


def _settled(group: PodGroup, condition: PodGroupCondition, now: datetime) -> PodGroupCondition:
    """A condition that says what it said keeps its time."""
    for known in group.status.conditions:
        if known.type == condition.type and _said(known) == _said(condition):
            return known
    if condition.last_transition_time is not None:
        return condition
    return _with_time(condition, now)


def _with_time(condition: PodGroupCondition, now: datetime) -> PodGroupCondition:
    return PodGroupCondition(
        type=condition.type,
        status=condition.status,
        transition_id=condition.transition_id,
        last_transition_time=now,
        reason=condition.reason,
        message=condition.message,
    )


def _said(condition: PodGroupCondition) -> tuple[str, ...]:
    return condition.type, condition.status, condition.reason, condition.message


def _group_condition(condition: PodGroupCondition) -> JSON:
    body: JSON = {
        "type": condition.type,
        "status": condition.status,
        "transitionID": condition.transition_id,
        "reason": condition.reason,
        "message": condition.message,
    }
    if condition.last_transition_time is not None:
        body["lastTransitionTime"] = _text(condition.last_transition_time)
    return {name: value for name, value in body.items() if value}


def _queues(decisions: Decisions, snapshot: Snapshot) -> Iterator[Step]:
    for name, amount in decisions.queue_allocated.items():
        queue = snapshot.queues.get(name)
        stated = queue.object if queue is not None else None
        if stated is None or _is_stated(stated, amount):
            continue
        before = stated.status.allocated or {}
        body: JSON = dict(quantities_from(amount))
        body |= {resource: None for resource in before if resource not in body}
        yield Patch(ref(stated), {"status": {"allocated": body}}, subresource="status")


def _is_stated(queue: ApiQueue, amount: Resources) -> bool:
    if queue.status.allocated is None:
        return False
    try:
        known = resources_from(queue.status.allocated)
    except QuantityError:
        return False
    names = {name for name in (*known, *amount) if known[name] or amount[name]}
    return all(known[name] == amount[name] for name in names)


def quantities_from(amount: Resources) -> dict[str, str]:
    """A ResourceList as Volcano writes a queue's: cpu and the rest in thousandths, memory binary, pods counted."""
    listed: dict[str, str] = {}
    for name, value in amount.amounts.items():
        if name == MEMORY:
            listed[name] = str(Quantity(round(value) * NANO, BINARY_SI))
        elif name == PODS:
            listed[name] = str(Quantity(round(value) * NANO))
        elif value or name == CPU:
            listed[name] = str(Quantity(round(value) * (NANO // 1000)))
    return listed


def _gates(decisions: Decisions, snapshot: Snapshot) -> Iterator[Step]:
    waiting = set(decisions.gates_to_remove)
    for task in snapshot.tasks.values() if waiting else ():
        if task.key in waiting and task.gates == (QUEUE_GATE,):
            body = {"spec": {"schedulingGates": [{"$patch": "delete", "name": QUEUE_GATE}]}}
            yield Patch(ref(task.pod), body, kind="strategic")


def _condition(kind: str, status: str, reason: str, message: str, now: datetime) -> JSON:
    return {
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "lastProbeTime": None,
        "lastTransitionTime": _text(now),
    }


def _current(pod: core.Pod, kind: str) -> Any:
    return next((condition for condition in pod.status.conditions if condition.type == kind), None)


def _text(moment: datetime) -> str:
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
