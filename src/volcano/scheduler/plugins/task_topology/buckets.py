"""Buckets: tasks of a job that should share a node, by the affinity and anti-affinity of their roles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from functools import cmp_to_key

from volcano.scheduler.model import CPU, MEMORY, Resources, Task
from volcano.scheduler.plugins.task_topology.relations import Relations


class Bucket:
    def __init__(self, number: int) -> None:
        self.number = number
        self.waiting: dict[str, Task] = {}
        self.roles: Counter[str] = Counter()
        self.nodes: Counter[str] = Counter()  # tasks on each node
        self.size = 0  # how many waited as the session opened
        self.demand = 0.0  # of waiting tasks, to distinguish small buckets from large ones

    def add(self, task: Task) -> None:
        self.roles[task.role] += 1
        if task.node:
            self.nodes[task.node] += 1
        else:
            self.waiting[task.uid] = task
            self.size += 1
            self.demand += _demand(task.request)

    @property
    def count(self) -> int:
        return len(self.waiting) + self.nodes.total()

    # -- what happens in a session -----------------------------------------------------------------------------------
    def place(self, task: Task) -> None:
        if self.waiting.pop(task.uid, None) is not None:
            self.nodes[task.node] += 1

    def lift(self, task: Task) -> None:
        if task.uid not in self.waiting:
            self.nodes[task.node] -= 1
            self.waiting[task.uid] = task


class Buckets:
    """Of one job."""

    def __init__(self, relations: Relations, tasks: Iterable[Task]) -> None:
        self.relations = relations
        self.of: dict[str, Bucket] = {}  # by task uid; tasks whose role has no relations are in none
        self._buckets: list[Bucket] = []
        self._by_node: dict[str, Bucket] = {}
        for task in sorted(tasks, key=cmp_to_key(self._visit_order)):
            if task.role and task.role in relations.related:
                bucket = self._for(task)
                bucket.add(task)
                self.of[task.uid] = bucket
        self.largest = max((bucket.count for bucket in self._buckets), default=0)

    def _visit_order(self, one: Task, other: Task) -> int:
        """Tasks with a node first, by node; then the more important role; then by name."""
        if bool(one.node) != bool(other.node):
            return -1 if one.node else 1
        if one.node != other.node:
            return -1 if one.node < other.node else 1
        difference = self.compare_roles(one, other)
        return difference or (-1 if (one.name, one.uid) < (other.name, other.uid) else 1)

    def compare_roles(self, one: Task, other: Task) -> int:
        mine, theirs = self.relations.importance(one.role), self.relations.importance(other.role)
        return 0 if mine == theirs else -1 if mine > theirs else 1

    def _for(self, task: Task) -> Bucket:
        if task.node:
            if task.node not in self._by_node:
                self._by_node[task.node] = self._another()
            return self._by_node[task.node]
        best: tuple[int, float] | None = None
        chosen: Bucket | None = None
        for bucket in self._buckets:
            liked = sum(self.relations.of(task.role, role) * count for role, count in bucket.roles.items())
            if best is None or (-liked, bucket.demand) < best:
                best, chosen = (-liked, bucket.demand), bucket
        return chosen if chosen is not None and best is not None and best[0] <= 0 else self._another()

    def _another(self) -> Bucket:
        self._buckets.append(Bucket(len(self._buckets)))
        return self._buckets[-1]


def _demand(request: Resources) -> float:
    return request[CPU] + request[MEMORY] / 2**20 + sum(request[name] for name in request.scalars)
