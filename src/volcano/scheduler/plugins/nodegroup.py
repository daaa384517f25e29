"""nodegroup: a queue's jobs run in the groups of nodes its affinity names, up to a limit per group."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec
import numpy as np

from volcano.api.quantity import QuantityError
from volcano.api.scheduling import NodeGroupRule, QueueAffinity
from volcano.scheduler.core.node_table import Column
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.framework.answers import Cause, Code
from volcano.scheduler.framework.config import PluginOption
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, Queue, Resources, Task, resources_from
from volcano.scheduler.model.status import IS_ALLOCATED

GROUP_LABEL: Final = "volcano.sh/nodegroup-name"
LIMITS_KEY: Final = "volcano.sh/nodegroup-resource-limits"

NO_JOB: Final = "the task's job is not known"
BAD_LIMITS: Final = "node group resource limit annotation invalid"
NO_GROUP: Final = "node group label not found"
NO_AFFINITY: Final = "node group affinity not specified"
MISMATCH: Final = "node does not satisfy the node group affinity"
EXCEEDED: Final = "node group resource limit exceeded"


@dataclass(slots=True)
class Rights:
    """What a queue may do where."""

    required: list[str] = field(default_factory=list)
    preferred: list[str] = field(default_factory=list)
    anti_required: list[str] = field(default_factory=list)
    anti_preferred: list[str] = field(default_factory=list)
    limits: dict[str, Resources] | None = None  # None: the annotation cannot be read
    allocated: dict[str, Resources] = field(default_factory=dict)

    @property
    def has_affinity(self) -> bool:
        return bool(self.required or self.preferred or self.anti_required or self.anti_preferred)

    def admits(self, group: str) -> bool:
        admitted = group in self.required or group in self.preferred
        if group in self.anti_required:
            admitted = False
        return admitted or group in self.anti_preferred

    def exceeds(self, group: str, request: Resources) -> bool:
        limit = (self.limits or {}).get(group)
        if limit is None:
            return False
        held = self.allocated.get(group, Resources())
        return any(held[name] + request[name] - most >= EPSILON for name, most in limit.amounts.items())


class NodeGroup(Plugin):
    name = "nodegroup"
    argument_names = frozenset({"strict", "enablePreferredOrder"})

    def __init__(self, option: PluginOption) -> None:
        super().__init__(option)
        self._strict = option.arguments.flag("strict", True)
        self._ordered = option.arguments.flag("enablePreferredOrder", False)

    def open(self, session: Session) -> None:
        super().open(session)
        self._rights = {name: self._rights_of(queue) for name, queue in session.queues.items()}
        for job in session.jobs.values():
            rights = self._rights.get(job.queue)
            if rights is not None and rights.limits:
                for task in job.tasks.values():
                    if IS_ALLOCATED[task.status]:
                        self._account(task, rights, 1.0)

    def _rights_of(self, queue: Queue) -> Rights:
        affinity = self._affinity_of(queue)
        near, away = (affinity.node_group_affinity, affinity.node_group_anti_affinity) if affinity else (None, None)
        return Rights(*_lists(near), *_lists(away), limits=_limits(queue))

    def _affinity_of(self, queue: Queue) -> QueueAffinity | None:
        """Its own; with hierarchy that of the nearest ancestor that has one."""
        queues, seen = self.session.queues, {queue.name}
        while self.hierarchy and queue.affinity is None and queue.name != "root":
            parent = queues.get(queue.parent or "root")
            if parent is None or parent.name in seen:
                return None
            seen.add(parent.name)
            queue = parent
        return queue.affinity

    # -- whose answers are shared, and how long they hold --------------------------------------------------------
    def sharing_key(self, task: Task) -> Hashable:
        job = self.session.jobs.get(task.job_id)
        return None if job is None else job.queue

    def row_local(self, task: Task) -> bool:
        rights = self._of(task)
        return rights is None or not rights.limits

    def _of(self, task: Task) -> Rights | None:
        job = self.session.jobs.get(task.job_id)
        return None if job is None else self._rights.get(job.queue)

    # -- answers -------------------------------------------------------------------------------------------------
    def node_filter(self, task: Task, nodes: NodeView) -> Iterator[Cause]:
        rights = self._of(task)
        if rights is None:
            yield Cause(nodes.all(), Code.ERROR, NO_JOB)
            return
        if rights.limits is None:
            yield Cause(nodes.all(), Code.UNRESOLVABLE, BAD_LIMITS)
            return
        column = nodes.labels.column(GROUP_LABEL)
        reasons = [self._objection(rights, group, task) for group in column.values]
        reasons.append("" if not self._strict and not rights.has_affinity else NO_GROUP)
        codes = nodes.take(column.codes)
        for reason in dict.fromkeys(filter(None, reasons)):
            refused = np.array([stated == reason for stated in reasons])[codes]
            if refused.any():
                yield Cause(refused, Code.UNRESOLVABLE, reason)

    def _objection(self, rights: Rights, group: str, task: Task) -> str:
        if not rights.has_affinity:
            return NO_AFFINITY
        if not rights.admits(group):
            return MISMATCH
        return EXCEEDED if rights.exceeds(group, task.request) else ""

    def node_score(self, task: Task, nodes: NodeView) -> Column:
        rights = self._of(task)
        if rights is None or not rights.has_affinity:
            return nodes.zeros()
        column = nodes.labels.column(GROUP_LABEL)
        scores = [self._score(rights, group) for group in column.values]
        column_of_scores: Column = np.array([*scores, 0.0])[nodes.take(column.codes)]
        return column_of_scores

    def _score(self, rights: Rights, group: str) -> float:
        if group in rights.anti_preferred:
            return -1.0
        score = 100.0 if group in rights.required else 0.0
        if group in rights.preferred:
            places = list(dict.fromkeys(rights.preferred))
            score += 50.0 * (len(places) - places.index(group)) / len(places) if self._ordered else 50.0
        return score

    # -- what happened -------------------------------------------------------------------------------------------
    def on_allocate(self, task: Task) -> None:
        rights = self._of(task)
        if rights is not None and rights.limits:
            self._account(task, rights, 1.0)

    def on_deallocate(self, task: Task) -> None:
        rights = self._of(task)
        if rights is not None and rights.limits:
            self._account(task, rights, -1.0)

    def _account(self, task: Task, rights: Rights, sign: float) -> None:
        row = self.session.table.index.get(task.node)
        group = "" if row is None else self.session.table.nodes[row].labels.get(GROUP_LABEL, "")
        if group:
            held = rights.allocated.setdefault(group, Resources())
            if sign > 0.0:
                held.add(task.request)
            else:
                held.subtract(task.request)


def _lists(rule: NodeGroupRule | None) -> tuple[list[str], list[str]]:
    if rule is None:
        return [], []
    required: Sequence[str] = rule.required_during_scheduling_ignored_during_execution
    preferred: Sequence[str] = rule.preferred_during_scheduling_ignored_during_execution
    return list(required), list(preferred)


def _limits(queue: Queue) -> dict[str, Resources] | None:
    text = queue.annotations.get(LIMITS_KEY, "")
    if not text:
        return {}
    try:
        stated: Any = msgspec.json.decode(text, type=dict[str, dict[str, str | int | float]])
        return {group: _stated(amounts) for group, amounts in stated.items()}
    except (msgspec.MsgspecError, QuantityError, ValueError, RecursionError):
        return None


def _stated(amounts: dict[str, str | int | float]) -> Resources:
    """Only the dimensions that are listed limit anything."""
    limit = resources_from(amounts)
    limit.amounts = {name: amount for name, amount in limit.amounts.items() if name in amounts}
    return limit
