"""Questions: the enabled plugins of a session, asked point by point, with what holds when no plugin answers.

Which plugins take part in a point is determined once, when the session opens; the rule of the point's row in
framework.points then makes the function that asks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeAlias

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.framework.answers import Refusal
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.points import POINTS, Point
from volcano.scheduler.framework.rules import Method, Tiers
from volcano.scheduler.model import Domain, Job, Node, Queue, SubJob, Task

Answering: TypeAlias = object
"""What is asked: anything with methods named after points."""


class Questions:
    """Asks every point except those that score and filter nodes, which framework.node_answers asks and caches.

    A point that needs nothing beyond its rule is an attribute: the function that the rule made.
    """

    def __init__(self, config: SchedulerConfig, plugins: Mapping[str, Answering]) -> None:
        self._tiers = {name: _enrolled(point, config, plugins) for name, point in POINTS.items()}
        asks = self._asks = {name: POINTS[name].combine(tiers) for name, tiers in self._tiers.items()}
        self.job_valid: Callable[[Job], Refusal | None] = asks["job_valid"]
        self.job_enqueueable: Callable[[Job], bool] = asks["job_enqueueable"]
        self.job_enqueued: Callable[[Job], None] = asks["job_enqueued"]
        self.enqueue_ends_at: Callable[[Job], bool] = asks["enqueue_ends_at"]
        self.job_startable: Callable[[Job], Refusal | None] = asks["job_startable"]
        self.job_not_placed: Callable[[Job], None] = asks["job_not_placed"]
        self.job_ready: Callable[[Job], bool] = asks["job_ready"]
        self.job_pipelined: Callable[[Job], bool] = asks["job_pipelined"]
        self.job_starving: Callable[[Job], bool] = asks["job_starving"]
        self.overused: Callable[[Queue], bool] = asks["overused"]
        self.allocatable: Callable[[Queue, Task], bool] = asks["allocatable"]
        self.preemptive: Callable[[Queue, Sequence[Task]], bool] = asks["preemptive"]
        self.pre_filter: Callable[[Task], Refusal | None] = asks["pre_filter"]
        self.best_node: Callable[[Task, Sequence[Node], Column], Node | None] = asks["best_node"]
        self.domain_score: Callable[[SubJob, Sequence[Domain]], dict[str, float]] = asks["domain_score"]
        self.preemptable: Callable[[Task, list[Task]], list[Task]] = asks["preemptable"]
        self.reclaimable: Callable[[Task, list[Task]], list[Task]] = asks["reclaimable"]
        self.evictable: Callable[[str, Job, list[Task]], list[Task]] = asks["evictable"]
        self.victim_tasks: Callable[[list[Task]], list[Task]] = asks["victim_tasks"]
        self.simulate_allocatable: Callable[[Queue, Task], bool] = asks["simulate_allocatable"]
        self.simulate_filter: Callable[[Task, Node], Refusal | None] = asks["simulate_filter"]
        self.allocated: Callable[[Task], str | None] = asks["on_allocate"]
        self.deallocated: Callable[[Task], None] = asks["on_deallocate"]
        self.compare_jobs: Callable[[Job, Job], float] = asks["job_order"]  # zero: no plugin distinguishes them
        self._compare_queues: Callable[[Queue, Queue], float] = asks["queue_order"]
        self._compare_victim_queues: Callable[[Queue, Queue, Queue], float] = asks["victim_queue_order"]
        self._compare_sub_jobs: Callable[[SubJob, SubJob], float] = asks["sub_job_order"]
        self._compare_tasks: Callable[[Task, Task], float] = asks["task_order"]
        self._sub_job_ready: Callable[[Job, SubJob], bool] = asks["sub_job_ready"]
        self._sub_job_pipelined: Callable[[Job, SubJob], bool] = asks["sub_job_pipelined"]

    def asker(self, point: str) -> Method:
        """The function that asks a point and combines the answers by the rule of its row in the table."""
        return self._asks[point]

    def tiers(self, point: str) -> Tiers:
        """The methods that answer a point; a tier without any is left out."""
        return self._tiers[point]

    def plugins(self, point: str) -> list[Any]:
        """The plugins that answer a point, in order."""
        return [getattr(method, "__self__", None) for tier in self._tiers[point] for method in tier]

    def is_answered(self, point: str) -> bool:
        return bool(self._tiers[point])

    def is_final_vote(self, point: str, plugin: str = "gang") -> bool:
        """Whether a plugin's REJECT is final, because no earlier tier can have permitted."""
        first = next(iter(self._tiers[point]), [])
        return any(getattr(getattr(method, "__self__", None), "name", "") == plugin for method in first)

    # -- orders: plugins first, then a total order, so that nothing depends on chance -----------------------------
    def job_before(self, one: Job, other: Job) -> bool:
        difference = self.compare_jobs(one, other)
        if difference:
            return difference < 0
        return (one.created, one.uid) < (other.created, other.uid)

    def queue_before(self, one: Queue, other: Queue) -> bool:
        difference = self._compare_queues(one, other)
        if difference:
            return difference < 0
        return (one.created, one.name) < (other.created, other.name)

    def victim_queue_before(self, one: Queue, other: Queue, preemptor: Queue) -> bool:
        difference = self._compare_victim_queues(one, other, preemptor)
        if difference:
            return difference < 0
        return not self.queue_before(one, other)

    def task_before(self, one: Task, other: Task) -> bool:
        difference = self._compare_tasks(one, other)
        if difference:
            return difference < 0
        if one.index is not None and other.index is not None and one.index != other.index:
            return one.index < other.index
        return (one.created, one.uid) < (other.created, other.uid)

    def sub_job_before(self, one: SubJob, other: SubJob) -> bool:
        difference = self._compare_sub_jobs(one, other)
        if difference:
            return difference < 0
        return (one.match_index, one.id) < (other.match_index, other.id)

    # -- sub-groups: a job without policies is asked as a whole ---------------------------------------------------
    def sub_job_ready(self, job: Job, sub_job: SubJob) -> bool:
        return self._sub_job_ready(job, sub_job) if job.has_policies else self.job_ready(job)

    def sub_job_pipelined(self, job: Job, sub_job: SubJob) -> bool:
        return self._sub_job_pipelined(job, sub_job) if job.has_policies else self.job_pipelined(job)

    # -- hypernodes -----------------------------------------------------------------------------------------------
    def domain_gradients(self, owner: Job | SubJob, within: Domain, purpose: str) -> list[list[Domain]]:
        """Groups of domains to try in turn for a job or a sub-group."""
        point = "domain_gradient_for_job" if isinstance(owner, Job) else "domain_gradient_for_sub_job"
        found: list[list[Domain]] = self.asker(point)(owner, within, purpose)
        return found


def _enrolled(point: Point, config: SchedulerConfig, plugins: Mapping[str, Answering]) -> list[list[Method]]:
    """The methods that take part in a point; a tier without any is left out."""
    tiers = []
    for tier in config.tiers:
        methods = [
            getattr(plugins[option.name], point.name)
            for option in tier
            if option.name in plugins
            and hasattr(plugins[option.name], point.name)
            and (not point.switches or any(option.is_on(switch) for switch in point.switches))
        ]
        if methods:
            tiers.append(methods)
    return tiers
