"""Questions: the enabled plugins of a session, asked point by point, with what holds when nobody answers.

Which plugin takes part in which point is settled once when the session opens; asking is then a walk over methods.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from volcano.scheduler.framework.answers import Refusal
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.points import POINTS, Point
from volcano.scheduler.model import Job, Queue, SubJob, Task

Method: TypeAlias = Callable[..., Any]


Answering: TypeAlias = object
"""What is asked: anything with methods named after points."""


class Questions:
    """Asks every point except those about nodes, which framework.node_answers asks and keeps."""

    def __init__(self, config: SchedulerConfig, plugins: Mapping[str, Answering]) -> None:
        self._tiers = {name: _enrolled(point, config, plugins) for name, point in POINTS.items()}
        self._flat = {name: [method for tier in tiers for method in tier] for name, tiers in self._tiers.items()}

    def methods(self, point: str) -> Sequence[Method]:
        """Who answers a point, in order, tiers apart forgotten."""
        return self._flat[point]

    def plugins(self, point: str) -> list[Any]:
        """The plugins whose methods these are."""
        return [getattr(method, "__self__", None) for method in self._flat[point]]

    def insists(self, point: str, plugin: str = "gang") -> bool:
        """Whether a plugin's no to a vote is final: nobody in an earlier tier can have settled it."""
        first = next(iter(self._tiers[point]), [])
        return any(getattr(getattr(method, "__self__", None), "name", "") == plugin for method in first)

    def ask(self, point: str, *about: Any) -> Any:
        """Combine the answers as the table says; lazily, so a decided question is not asked further."""
        return POINTS[point].combine(_answers(tier, about) for tier in self._tiers[point])

    # -- orders: plugins first, then a total order, so that nothing depends on chance -----------------------------
    def _compare(self, point: str, one: Any, other: Any) -> float:
        for method in self._flat[point]:
            answer: float = method(one, other)
            if answer:
                return answer
        return 0

    def compare_jobs(self, one: Job, other: Job) -> float:
        """Plugins only; zero when they do not tell the jobs apart."""
        return self._compare("job_order", one, other)

    def job_before(self, one: Job, other: Job) -> bool:
        difference = self._compare("job_order", one, other)
        if difference:
            return difference < 0
        return (one.created, one.uid) < (other.created, other.uid)

    def queue_before(self, one: Queue, other: Queue) -> bool:
        difference = self._compare("queue_order", one, other)
        if difference:
            return difference < 0
        return (one.created, one.name) < (other.created, other.name)

    def victim_queue_before(self, one: Queue, other: Queue, preemptor: Queue) -> bool:
        for method in self._flat["victim_queue_order"]:
            difference = method(one, other, preemptor)
            if difference:
                return bool(difference < 0)
        return not self.queue_before(one, other)

    def task_before(self, one: Task, other: Task) -> bool:
        difference = self._compare("task_order", one, other)
        if difference:
            return difference < 0
        if one.index is not None and other.index is not None and one.index != other.index:
            return one.index < other.index
        return (one.created, one.uid) < (other.created, other.uid)

    def sub_job_before(self, one: SubJob, other: SubJob) -> bool:
        difference = self._compare("sub_job_order", one, other)
        if difference:
            return difference < 0
        return (one.match_index, one.id) < (other.match_index, other.id)

    # -- jobs -----------------------------------------------------------------------------------------------------
    def job_valid(self, job: Job) -> Refusal | None:
        refusal: Refusal | None = self.ask("job_valid", job)
        return refusal

    def job_enqueueable(self, job: Job) -> bool:
        return bool(self.ask("job_enqueueable", job))

    def job_enqueued(self, job: Job) -> None:
        self.ask("job_enqueued", job)

    def job_ready(self, job: Job) -> bool:
        return all(method(job) for method in self._flat["job_ready"])

    def job_pipelined(self, job: Job) -> bool:
        return bool(self.ask("job_pipelined", job))

    def job_starving(self, job: Job) -> bool:
        return bool(self.ask("job_starving", job))

    def sub_job_ready(self, job: Job, sub_job: SubJob) -> bool:
        if not job.has_policies:
            return self.job_ready(job)
        return all(method(job, sub_job) for method in self._flat["sub_job_ready"])

    def sub_job_pipelined(self, job: Job, sub_job: SubJob) -> bool:
        if not job.has_policies:
            return self.job_pipelined(job)
        return bool(self.ask("sub_job_pipelined", job, sub_job))

    # -- queues ---------------------------------------------------------------------------------------------------
    def overused(self, queue: Queue) -> bool:
        return any(method(queue) for method in self._flat["overused"])

    def allocatable(self, queue: Queue, task: Task) -> bool:
        return all(method(queue, task) for method in self._flat["allocatable"])

    def preemptive(self, queue: Queue, tasks: Sequence[Task]) -> bool:
        return all(method(queue, tasks) for method in self._flat["preemptive"])

    def simulate_allocatable(self, queue: Queue, task: Task) -> bool:
        return all(method(queue, task) for method in self._flat["simulate_allocatable"])

    # -- nodes: the rest is asked by framework.node_answers ------------------------------------------------------------
    def pre_filter(self, task: Task) -> Refusal | None:
        for method in self._flat["pre_filter"]:
            refusal: Refusal | None = method(task)
            if refusal is not None:
                return refusal
        return None

    # -- victims --------------------------------------------------------------------------------------------------
    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        victims: list[Task] = self.ask("preemptable", preemptor, candidates)
        return victims

    def reclaimable(self, reclaimer: Task, candidates: list[Task]) -> list[Task]:
        victims: list[Task] = self.ask("reclaimable", reclaimer, candidates)
        return victims

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        victims: list[Task] = self.ask("evictable", kind, job, candidates)
        return victims

    def victim_tasks(self, tasks: list[Task]) -> list[Task]:
        victims: list[Task] = self.ask("victim_tasks", tasks)
        return victims

    # -- what happened --------------------------------------------------------------------------------------------
    def allocated(self, task: Task) -> str | None:
        """Tell everybody; the first objection, if any. All are told even so, for all are told when it is undone."""
        objection: str | None = None
        for method in self._flat["on_allocate"]:
            answer = method(task)
            objection = objection or answer
        return objection

    def deallocated(self, task: Task) -> None:
        for method in self._flat["on_deallocate"]:
            method(task)


def _answers(tier: Iterable[Method], about: tuple[Any, ...]) -> Iterator[Any]:
    return (method(*about) for method in tier)


def _enrolled(point: Point, config: SchedulerConfig, plugins: Mapping[str, Answering]) -> list[list[Method]]:
    """The methods that take part in a point; a tier nobody is left in is no tier."""
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
