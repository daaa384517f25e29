"""Snapshot: everything one cycle may look at, and how single objects enter and leave it.

A cache keeps one Snapshot alive and follows watch events with `put_…` and `drop_…`; a session changes it and puts
everything back when it closes. An object that cannot be read is set aside with the reason; nothing else stops for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from volcano.api.core import Node as ApiNode
from volcano.api.core import Pod
from volcano.api.jobs.estimates import stated_estimate
from volcano.api.quantity import QuantityError
from volcano.api.scheduling import PodGroup
from volcano.api.scheduling import Queue as ApiQueue
from volcano.scheduler.core.domain_columns import Rooted, rooted
from volcano.scheduler.core.job_book import JobBook
from volcano.scheduler.core.ledger import Ledger
from volcano.scheduler.core.node_table import NodeTable
from volcano.scheduler.model import ClusterObjects, Domains, Job, Node, Queue, Task
from volcano.scheduler.model.job import is_adopted
from volcano.scheduler.model.queue import UNCHARGED, uncharged_queue
from volcano.scheduler.model.read import Shapes, job_from, node_from, place_in_sub_job, queue_from, task_from_pod


@dataclass(slots=True, frozen=True)
class Settled:
    """The last cycle's result for a job that waits for nothing; it is reused while the job does not change."""

    job: Job
    version: int
    status: object
    counts: dict[str, int]


@dataclass(slots=True)
class Snapshot:
    now: datetime = datetime(1970, 1, 1, tzinfo=UTC)
    uid: str = "cycle"  # names this cycle in PodGroup conditions
    table: NodeTable = field(default_factory=NodeTable)
    jobs: JobBook = field(default_factory=JobBook)
    queues: dict[str, Queue] = field(default_factory=dict)
    domains: Domains = field(default_factory=Domains)
    cluster: ClusterObjects = field(default_factory=ClusterObjects)
    tasks: dict[str, Task] = field(default_factory=dict)  # every known task by uid, also those without a job
    shapes: Shapes = field(default_factory=Shapes)
    set_aside: dict[str, str] = field(default_factory=dict)  # kind/namespace/name → why it could not be read
    ledger: Ledger = field(default_factory=Ledger)
    settled: dict[str, Settled] = field(default_factory=dict)  # jobs nothing is to be decided about, until they change
    settled_groups: dict[str, Any] = field(default_factory=dict)  # their statuses, and their tasks by status
    settled_counts: dict[str, Mapping[str, int]] = field(default_factory=dict)
    homeless: dict[str, dict[str, Task]] = field(default_factory=dict)  # tasks on nodes not yet known
    memory: dict[str, dict[str, Any]] = field(default_factory=dict)  # what plugins hand to the next cycle, as JSON
    _rooted: Rooted | None = None
    default_queue: str = "default"
    admits_by_gate: bool = False  # feature SchedulingGatesQueueAdmission
    scheduler_names: frozenset[str] | None = None  # None: every pod is ours

    def node_of(self, task: Task) -> Node | None:
        row = self.table.index.get(task.node)
        return None if row is None else self.table.nodes[row]

    def rooted_domains(self) -> Rooted:
        """The domains under a root that holds every node; made anew when domains or nodes have changed."""
        if self._rooted is None or not self._rooted.holds_for(self.domains, self.table.index):
            self._rooted = rooted(self.domains, self.table.index)
        return self._rooted

    def schedulable_jobs(self) -> dict[str, Job]:
        """Jobs a session sees: with a PodGroup, in a queue that exists; by id, whatever order they arrived in."""
        return self.jobs.schedulable(self.queues)


# -- nodes --------------------------------------------------------------------------------------------------------
def put_nodes(snapshot: Snapshot, nodes: Iterable[ApiNode]) -> None:
    """Many nodes at once into an empty snapshot."""
    read = [node for node in (_readable_node(snapshot, node) for node in nodes) if node is not None]
    snapshot.table = NodeTable({node.name: node for node in read}.values())


def put_node(snapshot: Snapshot, node: ApiNode) -> None:
    read = _readable_node(snapshot, node)
    if read is None:
        return
    read.tasks = snapshot.homeless.pop(node.name, {})
    snapshot.table.put(read)


def drop_node(snapshot: Snapshot, name: str) -> None:
    row = snapshot.table.index.get(name)
    if row is not None:
        snapshot.homeless[name] = snapshot.table.nodes[row].tasks
        snapshot.table.remove(name)


def _readable_node(snapshot: Snapshot, node: ApiNode) -> Node | None:
    try:
        return node_from(node)
    except QuantityError as error:
        snapshot.set_aside[f"Node/{node.name}"] = str(error)
        return None


# -- queues and groups --------------------------------------------------------------------------------------------
def put_queue(snapshot: Snapshot, queue: ApiQueue) -> None:
    try:
        snapshot.queues[queue.name] = queue_from(queue)
        snapshot.set_aside.pop(f"Queue/{queue.name}", None)
    except QuantityError as error:
        snapshot.set_aside[f"Queue/{queue.name}"] = str(error)


def put_group(snapshot: Snapshot, group: PodGroup) -> None:
    """A new or changed PodGroup; tasks that were waiting for it join."""
    label = f"PodGroup/{group.key}"
    try:
        priority = snapshot.cluster.priority_of(group.spec.priority_class_name)
        job = job_from(group, default_queue=snapshot.default_queue, priority=priority)
    except QuantityError as error:
        snapshot.set_aside[label] = str(error)
        return
    snapshot.set_aside.pop(label, None)
    if job.queue == UNCHARGED:
        if is_adopted(job.id):
            snapshot.queues.setdefault(UNCHARGED, uncharged_queue())
        else:
            job.queue = ""  # a PodGroup cannot name it
    before = snapshot.jobs.get(job.id)
    snapshot.jobs[job.id] = job
    if before is not None:
        job.allocated_domain = before.allocated_domain
        for task in before.tasks.values():
            _join(job, task)
        for id, sub_job in job.sub_jobs.items():
            if id in before.sub_jobs:
                sub_job.allocated_domain = before.sub_jobs[id].allocated_domain


def drop_group(snapshot: Snapshot, job_id: str) -> None:
    job = snapshot.jobs.remove(job_id)
    if job is not None and job.tasks:
        shell = _shell(job_id)
        snapshot.jobs[job_id] = shell
        for task in job.tasks.values():
            _join(shell, task)


def _shell(job_id: str) -> Job:
    """A job known only by its pods; it is not scheduled."""
    namespace, _, name = job_id.partition("/")
    return Job(id=job_id, name=name, namespace=namespace, queue="", uid=job_id)


def _join(job: Job, task: Task) -> None:
    if job.estimate is None:
        job.estimate = stated_estimate(task.pod.metadata.annotations)
    place_in_sub_job(job, task)
    job.add(task)


# -- pods ---------------------------------------------------------------------------------------------------------
def put_pod(snapshot: Snapshot, pod: Pod) -> Task | None:
    """A new or changed pod; None when it is not ours or cannot be read."""
    names = snapshot.scheduler_names
    if names is not None and pod.spec.scheduler_name not in names and not pod.spec.node_name:
        drop_pod(snapshot, pod.uid)
        return None
    try:
        task = task_from_pod(pod, snapshot.shapes)
    except QuantityError as error:
        snapshot.set_aside[f"Pod/{pod.key}"] = str(error)
        return None
    put_task(snapshot, task)
    return task


def put_task(snapshot: Snapshot, task: Task) -> None:
    drop_pod(snapshot, task.uid)
    snapshot.tasks[task.uid] = task
    snapshot.table.vector(task.request)  # a resource that no node has must be a column before a session begins
    if task.job_id:
        job = snapshot.jobs.get(task.job_id)
        if job is None:
            job = snapshot.jobs[task.job_id] = _shell(task.job_id)
        _join(job, task)
    if not task.node or task.is_terminated:
        return
    node = snapshot.node_of(task)
    if node is None:
        snapshot.homeless.setdefault(task.node, {})[task.key] = task
    else:
        snapshot.table.occupy(task, node)


def drop_pod(snapshot: Snapshot, uid: str) -> None:
    task = snapshot.tasks.pop(uid, None)
    if task is None:
        return
    node = snapshot.node_of(task)
    if node is not None and task.key in node.tasks:
        snapshot.table.vacate(task, node)
    elif task.node in snapshot.homeless:
        snapshot.homeless[task.node].pop(task.key, None)
    job = snapshot.jobs.get(task.job_id)
    if job is not None and uid in job.tasks:
        job.remove(task)
        if job.group is None and not job.tasks:
            del snapshot.jobs[job.id]
