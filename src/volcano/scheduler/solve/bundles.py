"""Bundles: what of a running job is evicted together to make room for a gang. What it can spare, or all the rest."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cmp_to_key

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Resources, Task
from volcano.scheduler.model.resources import total


@dataclass(slots=True, eq=False)
class Bundle:
    """`costs` is what is lost with it: nothing for spare tasks, the whole job when it is no longer whole."""

    job: Job
    tasks: list[Task]
    is_spare: bool
    costs: Resources = field(default_factory=Resources)

    def without(self, refused: Iterable[str]) -> Bundle | None:
        """What remains when some tasks must stay: of spare ones the others, of a whole job nothing."""
        stays = set(refused)
        left = [task for task in self.tasks if task.uid not in stays]
        if len(left) == len(self.tasks):
            return self
        return Bundle(self.job, left, True) if self.is_spare and left else None

    def worth(self, need: Resources) -> float:
        """How much of the need it covers for what it costs."""
        if self.is_spare:
            return math.inf
        names = need.names
        frees = total(task.request for task in self.tasks)
        price = sum(self.costs[name] / need[name] for name in names)
        return sum(min(frees[name] / need[name], 1.0) for name in names) / price if price else math.inf


def bundles_of(job: Job, tasks: Iterable[Task]) -> list[Bundle]:
    """The tasks a job can spare without ceasing to be whole, the least important first; and the others."""
    ordered = sorted(tasks, key=lambda task: (task.priority, task.uid))
    if job.counts.ready < job.min_available:
        return [Bundle(job, ordered, True)] if ordered else []
    left = Surplus(job)
    spare = [task for task in ordered if left.takes(task)]
    spared = {task.uid for task in spare}
    rest = [task for task in ordered if task.uid not in spared]
    found = [Bundle(job, spare, True)] if spare else []
    if rest:
        found.append(Bundle(job, rest, False, job.total_request))
    return found


class Surplus:
    """What a job has beyond its minimums, shrinking as tasks are taken."""

    def __init__(self, job: Job) -> None:
        self._job = job
        self._left = job.counts.ready - job.min_available
        self._roles = {role: job.role_occupied(role) for role in job.role_minimums} if job.checks_roles else {}
        self._ready = {sub_job.id for sub_job in job.sub_jobs.values() if sub_job.is_ready}
        self._groups = Counter(job.sub_jobs[id].policy_id for id in self._ready)

    def takes(self, task: Task) -> bool:
        """Whether the job can do without the task; if so, it is counted as evicted."""
        job, role = self._job, task.role
        least = job.role_minimums.get(role, 0) if role in self._roles else 0
        if self._left <= 0 or (least > 0 and self._roles[role] <= least) or not self._can_break(task.sub_job_id):
            return False
        self._left -= 1
        if role in self._roles:
            self._roles[role] -= 1
        if job.has_policies and task.sub_job_id in self._ready:
            self._ready.discard(task.sub_job_id)
            self._groups[job.sub_jobs[task.sub_job_id].policy_id] -= 1
        return True

    def _can_break(self, sub_job: str) -> bool:
        if not self._job.has_policies or sub_job not in self._ready:
            return True
        policy = self._job.sub_jobs[sub_job].policy_id
        return self._groups[policy] > self._job.sub_group_minimums.get(policy, 0)


class BundleOrder:
    """Which bundles go first: spare tasks, then of less deserving jobs or queues, then the most worth its price."""

    def __init__(self, session: Session, job: Job, need: Resources, *, between_queues: bool) -> None:
        self._session, self._need, self._between_queues = session, need, between_queues
        self._queue = session.queues[job.queue]
        self._worth: dict[Bundle, float] = {}

    def sorted(self, bundles: Iterable[Bundle]) -> list[Bundle]:
        return sorted(bundles, key=cmp_to_key(self._compare))

    def _compare(self, one: Bundle, other: Bundle) -> int:
        if one.is_spare != other.is_spare:
            return -1 if one.is_spare else 1
        difference = self._less_deserving(one.job, other.job)
        if difference:
            return difference
        mine, theirs = self._worth_of(one), self._worth_of(other)
        if mine != theirs:
            return -1 if mine > theirs else 1
        return -1 if _identity(one) < _identity(other) else 1

    def _less_deserving(self, one: Job, other: Job) -> int:
        ask, queues = self._session.ask, self._session.queues
        if not self._between_queues:
            return 0 if one is other else 1 if ask.job_before(one, other) else -1
        if one.queue == other.queue:
            return 0
        return -1 if ask.victim_queue_before(queues[one.queue], queues[other.queue], self._queue) else 1

    def _worth_of(self, bundle: Bundle) -> float:
        if bundle not in self._worth:
            self._worth[bundle] = bundle.worth(self._need)
        return self._worth[bundle]


def _identity(bundle: Bundle) -> tuple[str, str, int]:
    return bundle.job.uid, bundle.tasks[0].uid, len(bundle.tasks)
