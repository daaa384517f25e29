"""task-topology: tasks of a job share nodes, or keep apart, by their roles."""

from __future__ import annotations

from collections import Counter

import numpy as np

from volcano.scheduler.core.node_table import Column, Mask
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import BatchScore
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.record import Note
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, Job, Status, Task
from volcano.scheduler.plugins.task_topology.buckets import Bucket, Buckets
from volcano.scheduler.plugins.task_topology.relations import InvalidRelations, relations_from

FULL = 100.0


class TaskTopology(Plugin):
    name = "task-topology"
    argument_names = frozenset({"task-topology.weight"})

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._weight = option.arguments.integer("task-topology.weight", 1)

    def open(self, session: Session) -> None:
        super().open(session)
        self._jobs: dict[str, Buckets] = {}
        self._placed: dict[str, dict[int, Counter[str]]] = {}  # job → row → roles placed there by this session
        for job in session.waiting:
            if job.group is not None and job.by_status[Status.PENDING]:
                self._take_in(job, job.group.annotations)

    def _take_in(self, job: Job, annotations: dict[str, str]) -> None:
        try:
            relations = relations_from(annotations, set(job.roles), f"{job.namespace}/{job.name}")
        except InvalidRelations as error:
            self.session.record.notes.append(Note(job.id, "InvalidTaskTopology", str(error)))
            return
        if relations is not None:
            present = (task for task in job.tasks.values() if not task.is_terminated)
            self._jobs[job.id] = Buckets(relations, present)

    # -- who goes first --------------------------------------------------------------------------------------------
    def task_order(self, one: Task, other: Task) -> int:
        mine, theirs = self._jobs.get(one.job_id), self._jobs.get(other.job_id)
        if mine is None or theirs is None:
            return 0
        bucket, rival = mine.of.get(one.uid), theirs.of.get(other.uid)
        if bucket is None or rival is None:
            return (bucket is None) - (rival is None)
        if mine is not theirs:
            return 0
        if bucket is rival:
            return mine.compare_roles(one, other)
        return rival.size - bucket.size or bucket.number - rival.number

    # -- which node ------------------------------------------------------------------------------------------------
    def batch_node_score(self, task: Task, nodes: NodeView) -> BatchScore:
        return BatchScore(nodes.zeros(), live=self._score)

    def _score(self, task: Task, candidates: Mask) -> Column:
        """How much of its bucket is on each node, or would fit there with it; less where rivals were placed."""
        job = self._jobs.get(task.job_id)
        bucket = job.of.get(task.uid) if job is not None else None
        if job is None or bucket is None:
            return np.zeros(len(candidates))
        table = self.session.table
        score = self._company(task, bucket)
        fits = score > 0.0
        for name, count in bucket.nodes.items():
            if name in table.index:
                score[table.index[name]] += count
        for row, roles in self._placed.get(task.job_id, {}).items():
            score[row] -= sum(count for role, count in roles.items() if job.relations.apart(task.role, role))
        scale = self._weight * FULL / job.largest if job.largest else float(self._weight)
        return np.where(fits, score * scale, 0.0)

    def _company(self, task: Task, bucket: Bucket) -> Column:
        """How many of the bucket's waiting tasks, this one first, each node has room for."""
        view = NodeView(self.session.table)
        others = sorted((t for t in bucket.waiting.values() if t.uid != task.uid), key=lambda t: t.uid)
        requests = [task.request, *(other.request for other in others)]
        most = np.full(len(view), float(len(requests)))
        for name in {name for request in requests for name in request}:
            needed = np.cumsum([request[name] for request in requests])
            room = view.idle[name] + view.releasing[name]
            most = np.minimum(most, np.searchsorted(needed, room + EPSILON, side="left"))
            most[room < task.request[name]] = 0.0
        return most

    # -- what happened ---------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> None:
        if task.job_id in self._jobs and task.status in (Status.ALLOCATED, Status.PIPELINED):
            self._note(task, 1)
            bucket = self._jobs[task.job_id].of.get(task.uid)
            if bucket is not None:
                bucket.place(task)

    def on_deallocate(self, task: Task) -> None:
        if task.job_id in self._jobs and task.status == Status.PENDING:
            self._note(task, -1)
            bucket = self._jobs[task.job_id].of.get(task.uid)
            if bucket is not None:
                bucket.lift(task)

    def _note(self, task: Task, by: int) -> None:
        row = self.session.table.index.get(task.node)
        if row is not None:
            self._placed.setdefault(task.job_id, {}).setdefault(row, Counter())[task.role] += by
