"""Cache: keeps one Snapshot equal to the API server's objects, change by change.

Only one thread at a time uses it: the worker thread while a cycle runs, the event loop in between. What changes while
a cycle runs waits in cache.pending_changes; an object that cannot be taken in is set aside.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from volcano.api import core, scheduling, topology
from volcano.api.jobs.reservations import RESERVATION_ANNOTATION, decode_reservation
from volcano.api.meta import Key, ObjectMeta, Resource
from volcano.api.scheduling import QUEUE_NAME_ANNOTATION, PodGroup, PodGroupSpec, PodGroupStatus
from volcano.scheduler.cache.composition import Composition, keep
from volcano.scheduler.cache.followed import CLUSTER_WIDE, SURROUNDING, asked_of_group
from volcano.scheduler.cache.pending_changes import Batch, Confirmed
from volcano.scheduler.core.snapshot import (
    Snapshot,
    drop_group,
    drop_node,
    drop_pod,
    put_group,
    put_node,
    put_nodes,
    put_task,
)
from volcano.scheduler.model import Shard, Status, Task
from volcano.scheduler.model.job import ADOPTED, is_adopted
from volcano.scheduler.model.queue import UNCHARGED
from volcano.scheduler.model.read import task_from_pod
from volcano.scheduler.model.task import PREEMPTABLE_KEY

log = logging.getLogger(__name__)

PLAIN_SCHEDULERS: Final = frozenset({"default-scheduler", ""})
MAX_UNUSED_SHAPES: Final = 1024


@dataclass(slots=True, frozen=True)
class CacheSettings:
    scheduler_names: frozenset[str] = frozenset({"volcano"})
    default_queue: str = "default"
    adopt_plain_pods: bool = False
    admits_by_gate: bool = False
    node_selector: tuple[tuple[str, str], ...] = ()  # nodes with at least one of these labels; none: all
    ignored_provisioners: frozenset[str] = frozenset()
    sharding_mode: str = "none"
    shard_name: str = "volcano"


class Cache:
    def __init__(self, settings: CacheSettings | None = None) -> None:
        self.settings = settings or CacheSettings()
        self.snapshot = self._empty()
        self._bound: set[str] = set()  # pods (by uid) whose assumed bind is confirmed
        self._evicted: set[str] = set()  # and whose assumed eviction is
        self._uids: dict[Key, str] = {}
        self._numa: dict[str, Any] = {}
        self._composition = Composition(self.settings.sharding_mode, self.settings.shard_name)

    def _empty(self) -> Snapshot:
        chosen = self.settings
        names = chosen.scheduler_names | (PLAIN_SCHEDULERS if chosen.adopt_plain_pods else frozenset())
        snapshot = Snapshot(
            default_queue=chosen.default_queue, admits_by_gate=chosen.admits_by_gate, scheduler_names=names
        )
        snapshot.cluster.ignored_provisioners |= chosen.ignored_provisioners
        snapshot.cluster.shard = Shard(chosen.sharding_mode, chosen.shard_name)
        return snapshot

    @property
    def hypernodes(self) -> Iterable[topology.HyperNode]:
        return self._composition.hypernodes

    def reset(self) -> None:
        """Throw the snapshot away, after a failure that may have left it half changed; all objects must come again."""
        self.snapshot = self._empty()
        self._uids.clear()
        self._bound, self._evicted = set(), set()

    # -- as a cycle ends -----------------------------------------------------------------------------------------
    def assume(self, bound: Mapping[str, str], evicted: Iterable[str]) -> None:
        """What is about to be sent counts as done: a bound task takes its room, an evicted one is being released."""
        for uid, node in bound.items():
            self._move(uid, Status.BINDING, node)
        for uid in evicted:
            task = self.snapshot.tasks.get(uid)
            if task is not None:
                self._move(uid, Status.RELEASING, task.node)

    def take_confirmed(self) -> Confirmed:
        """The assumptions of the batches taken in so far that need not be made any longer."""
        confirmed = Confirmed(frozenset(self._bound), frozenset(self._evicted))
        self._bound, self._evicted = set(), set()
        return confirmed

    def _move(self, uid: str, status: Status, node: str) -> None:
        task = self.snapshot.tasks.get(uid)
        if task is not None:
            drop_pod(self.snapshot, uid)
            task.status, task.node = status, node
            put_task(self.snapshot, task)

    # -- taking in (as a cycle begins) ---------------------------------------------------------------------------
    def refresh(self, batch: Batch, now: datetime, uid: str) -> Snapshot:
        """The snapshot with the batch in it."""
        snapshot = self.snapshot
        snapshot.now, snapshot.uid = now, uid
        if not len(snapshot.table) and not snapshot.tasks:
            self._take_all_nodes(batch)
        for (kind, key), resource in batch.objects.items():
            label = f"{kind.__name__}/{key}"
            try:
                self._take_in(kind, key, resource, batch)
                if resource is None:
                    snapshot.set_aside.pop(label, None)
            except Exception as error:  # whatever is wrong with one object, the others must not suffer
                log.warning("%s is set aside: %s: %s", label, type(error).__name__, error)
                snapshot.set_aside[label] = f"{type(error).__name__}: {error}"
        snapshot.cluster.assumed_allocations = batch.allocations
        self._composition.rebuild(snapshot)
        for name, usage in batch.usage.items():
            row = snapshot.table.index.get(name)
            if row is not None:
                snapshot.table.nodes[row].usage = usage
        self._spare_shapes()
        return snapshot

    def _take_in(self, kind: type[Resource], key: Key, resource: Any, batch: Batch) -> None:
        if kind is core.Pod:
            self._take_pod(key, resource, batch)
        elif kind is core.Node:
            self._take_node(key.name, resource)
        elif kind is scheduling.PodGroup:
            self._take_group(key, resource)
        elif self._composition.concerns(kind):
            self._composition.keep(kind, key.name, resource)
        elif kind is topology.Numatopology:
            keep(self._numa, key.name, resource.spec if resource is not None else None)
            self._set_numa(key.name)
        else:
            held = getattr(self.snapshot.cluster, SURROUNDING[kind])
            keep(held, key.name if kind in CLUSTER_WIDE else key, resource)
            if kind is core.PriorityClass:
                self._composition.priorities_changed()

    # -- pods
    def _take_pod(self, key: Key, pod: core.Pod | None, batch: Batch) -> None:
        known = self._uids.pop(key, None)
        if known is not None and (pod is None or known != _uid(pod)):
            self._drop(known, batch)
        if pod is None:
            return
        uid = self._uids[key] = _uid(pod)
        if not self._is_ours(pod):
            self._drop(uid, batch)
            return
        task = task_from_pod(pod, self.snapshot.shapes)
        self._apply_assumptions(task, batch)
        if self.settings.adopt_plain_pods and not task.job_id and pod.spec.scheduler_name in PLAIN_SCHEDULERS:
            task.job_id = self._adopt(pod)
            task.preemptable &= _names_a_queue(pod)
        self.snapshot.set_aside.pop(f"Pod/{key}", None)
        put_task(self.snapshot, task)

    def _is_ours(self, pod: core.Pod) -> bool:
        names = self.snapshot.scheduler_names
        return bool(pod.spec.node_name) or names is None or pod.spec.scheduler_name in names

    def _apply_assumptions(self, task: Task, batch: Batch) -> None:
        if task.node or task.is_terminated or task.status == Status.RELEASING:
            self._bound |= batch.assumed.keys() & {task.uid}
        elif task.uid in batch.assumed:
            task.status, task.node = Status.BINDING, batch.assumed[task.uid]
            task.bind_annotations = dict(batch.annotations.get(task.uid, {}))
        if task.status == Status.RELEASING or task.is_terminated:
            self._evicted |= batch.evicting & {task.uid}
        elif task.uid in batch.evicting:
            task.status = Status.RELEASING

    def _adopt(self, pod: core.Pod) -> str:
        """The job of one that a plain pod is. Unless it names a queue, it is charged to none and never evicted."""
        namespace = pod.namespace or "default"
        job_id = f"{namespace}/{ADOPTED}{pod.name}"
        if job_id not in self.snapshot.jobs or self.snapshot.jobs[job_id].group is None:
            meta = ObjectMeta(
                name=f"{ADOPTED}{pod.name}",
                namespace=namespace,
                creation_timestamp=pod.metadata.creation_timestamp,
                annotations={} if _names_a_queue(pod) else {PREEMPTABLE_KEY: "false"},
            )
            spec = PodGroupSpec(
                min_member=1,
                queue=pod.annotations.get(QUEUE_NAME_ANNOTATION) or UNCHARGED,
                priority_class_name=pod.spec.priority_class_name,
            )
            put_group(self.snapshot, PodGroup(metadata=meta, spec=spec, status=PodGroupStatus(phase="Inqueue")))
        return job_id

    def _drop(self, uid: str, batch: Batch) -> None:
        task = self.snapshot.tasks.get(uid)
        drop_pod(self.snapshot, uid)
        self._bound |= batch.assumed.keys() & {uid}
        self._evicted |= batch.evicting & {uid}
        if task is not None and is_adopted(task.job_id):
            drop_group(self.snapshot, task.job_id)

    # -- nodes, groups
    def _take_node(self, name: str, node: core.Node | None) -> None:
        before = self.snapshot.table.index.get(name)
        labels = self.snapshot.table.nodes[before].labels if before is not None else None
        if node is None or not self._is_chosen(node):
            drop_node(self.snapshot, name)
        else:
            self.snapshot.set_aside.pop(f"Node/{name}", None)
            put_node(self.snapshot, node)
            self._set_numa(name)
        if node is None or labels != node.labels:
            self._composition.nodes_changed()

    def _take_all_nodes(self, batch: Batch) -> None:
        """The first ones at once: one by one each would make the table a little wider."""
        nodes = [n for (kind, _), n in batch.objects.items() if kind is core.Node and isinstance(n, core.Node)]
        put_nodes(self.snapshot, [node for node in nodes if self._is_chosen(node)])
        for node in nodes:
            if node.name in self.snapshot.table.index:
                del batch.objects[core.Node, node.key]
                self._set_numa(node.name)
        self._composition.nodes_changed()

    def _is_chosen(self, node: core.Node) -> bool:
        wanted = self.settings.node_selector
        return not wanted or any(node.labels.get(key) == value for key, value in wanted)

    def _set_numa(self, name: str) -> None:
        row = self.snapshot.table.index.get(name)
        if row is not None:
            self.snapshot.table.nodes[row].numa = self._numa.get(name)

    def _take_group(self, key: Key, group: PodGroup | None) -> None:
        job = self.snapshot.jobs.get(str(key))
        if group is None:
            drop_group(self.snapshot, str(key))
        elif job is not None and job.group is not None and asked_of_group(job.group) == asked_of_group(group):
            if job.group.annotations.get(RESERVATION_ANNOTATION) != group.annotations.get(RESERVATION_ANNOTATION):
                job.reservation = decode_reservation(group.annotations)
            job.group, job.phase = group, group.status.phase  # only its status changed: its tasks stay where they are
            job.touch()
        else:
            put_group(self.snapshot, group)

    def _spare_shapes(self) -> None:
        """Drop shapes that no task has, once there are many."""
        shapes, tasks = self.snapshot.shapes, self.snapshot.tasks
        if len(shapes.by_key) > MAX_UNUSED_SHAPES + 2 * len(tasks):
            live = {task.shape for task in tasks.values()}
            shapes.by_key = {key: shape for key, shape in shapes.by_key.items() if shape in live}
            shapes.sociable = [shape for shape in shapes.sociable if shape in live]


def _names_a_queue(pod: core.Pod) -> bool:
    return bool(pod.annotations.get(QUEUE_NAME_ANNOTATION))


def _uid(pod: core.Pod) -> str:
    return pod.uid or f"{pod.namespace or 'default'}-{pod.name}"
