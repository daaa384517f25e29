"""Questions: the enabled plugins of a session, asked point by point, with what holds when no plugin answers.

Which plugins take part in a point is determined once, when it is first asked; the rule of the point's row in
framework.points then makes the function that asks them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from volcano.scheduler.core.node_table import Column
from volcano.scheduler.framework.answers import Refusal
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.points import POINTS, Point
from volcano.scheduler.framework.rules import Method, Tiers
from volcano.scheduler.model import Domain, Job, Node, Queue, SubJob, Task

Answering: TypeAlias = object
"""What is asked: anything with methods named after points."""
RENAMED: Final = {
    "allocated": "on_allocate",
    "deallocated": "on_deallocate",
    "compare_jobs": "job_order",
    "_compare_queues": "queue_order",
    "_compare_victim_queues": "victim_queue_order",
    "_compare_sub_jobs": "sub_job_order",
    "_compare_tasks": "task_order",
    "_sub_job_ready": "sub_job_ready",
    "_sub_job_pipelined": "sub_job_pipelined",
}
"""Attributes that are not called like their point."""


class Questions:
    """Asks every point except those that score and filter nodes, which framework.node_answers asks and caches.

    A point that needs nothing beyond its rule is an attribute: the function that the rule makes when the point is asked
    for the first time, because most cycles ask few of them.
    """

    job_valid: Callable[[Job], Refusal | None]
    job_enqueueable: Callable[[Job], bool]
    job_enqueued: Callable[[Job], None]
    enqueue_ends_at: Callable[[Job], bool]
    job_startable: Callable[[Job], Refusal | None]
    job_not_placed: Callable[[Job], None]
    job_ready: Callable[[Job], bool]
    job_pipelined: Callable[[Job], bool]
    job_starving: Callable[[Job], bool]
    overused: Callable[[Queue], bool]
    allocatable: Callable[[Queue, Task], bool]
    bindable: Callable[[Queue, Task], bool]
    preemptive: Callable[[Queue, Sequence[Task]], bool]
    pre_filter: Callable[[Task], Refusal | None]
    best_node: Callable[[Task, Sequence[Node], Column], Node | None]
    domain_score: Callable[[SubJob, Sequence[Domain]], dict[str, float]]
    preemptable: Callable[[Task, list[Task]], list[Task]]
    reclaimable: Callable[[Task, list[Task]], list[Task]]
    evictable: Callable[[str, Job, list[Task]], list[Task]]
    victim_tasks: Callable[[list[Task]], list[Task]]
    simulate_allocatable: Callable[[Queue, Task], bool]
    simulate_filter: Callable[[Task, Node], Refusal | None]
    allocated: Callable[[Task], str | None]
    deallocated: Callable[[Task], None]
    compare_jobs: Callable[[Job, Job], float]  # zero: no plugin distinguishes them
    _compare_queues: Callable[[Queue, Queue], float]
    _compare_victim_queues: Callable[[Queue, Queue, Queue], float]
    _compare_sub_jobs: Callable[[SubJob, SubJob], float]
    _compare_tasks: Callable[[Task, Task], float]
    _sub_job_ready: Callable[[Job, SubJob], bool]
    _sub_job_pipelined: Callable[[Job, SubJob], bool]

    def __init__(self, config: SchedulerConfig, plugins: Mapping[str, Answering]) -> None:
        self._config, self._plugins = config, plugins
        self._tiers: dict[str, Tiers] = {}
        self._asks: dict[str, Method] = {}

    def __getattr__(self, name: str) -> Any:
        """A point that is asked for the first time; from then on it is an attribute, and this is not called for it."""
        point = RENAMED.get(name, name)
        if point not in POINTS:
            raise AttributeError(name)
        ask = self.asker(point)
        setattr(self, name, ask)
        return ask

    def asker(self, point: str) -> Method:
        """The function that asks a point and combines the answers by the rule of its row in the table."""
        found = self._asks.get(point)
        if found is None:
            found = self._asks[point] = POINTS[point].combine(self.tiers(point))
        return found

    def tiers(self, point: str) -> Tiers:
        """The methods that answer a point; a tier without any is left out."""
        found = self._tiers.get(point)
        if found is None:
            found = self._tiers[point] = _enrolled(POINTS[point], self._config, self._plugins)
        return found

    def plugins(self, point: str) -> list[Any]:
        """The plugins that answer a point, in order."""
        return [getattr(method, "__self__", None) for tier in self.tiers(point) for method in tier]

    def is_answered(self, point: str) -> bool:
        return bool(self.tiers(point))

    def is_final_vote(self, point: str, plugin: str = "gang") -> bool:
        """Whether a plugin's REJECT is final, because no earlier tier can have permitted."""
        first = next(iter(self.tiers(point)), [])
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
