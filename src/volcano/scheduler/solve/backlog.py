"""JobBacklog: what of a job is still to be placed, in the order in which it is tried."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cmp_to_key

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, Status, SubJob, Task


class TaskBacklog:
    """Waiting tasks, the first one next. The order of tasks is fixed while they wait, so one sort will do."""

    __slots__ = ("_waiting", "mixed")

    def __init__(self, session: Session, tasks: Iterable[Task]) -> None:
        before = session.ask.task_before
        tasks = list(tasks)
        self.mixed = mixed_roles(tasks)

        def compare(one: Task, other: Task) -> int:
            return -1 if before(one, other) else 1

        self._waiting = sorted(tasks, key=cmp_to_key(compare))
        self._waiting.reverse()

    def __len__(self) -> int:
        return len(self._waiting)

    def __iter__(self) -> Iterator[Task]:
        return reversed(self._waiting)

    def pop(self) -> Task:
        return self._waiting.pop()

    def alike(self) -> list[Task]:
        """The next tasks with the shape and role of the first, in order; they stay in the backlog."""
        first = self._waiting[-1]
        shape, role, found = first.shape, first.role, list[Task]()
        for task in reversed(self._waiting):
            if task.shape is not shape or task.role != role or task.gates or task.nominated_node:
                break
            found.append(task)
        return found

    def drop(self, number: int) -> None:
        """The next tasks are no longer waiting."""
        del self._waiting[-number:]

    def copy(self) -> TaskBacklog:
        copied = TaskBacklog.__new__(TaskBacklog)
        copied._waiting = self._waiting.copy()
        copied.mixed = self.mixed
        return copied

    def clear(self) -> None:
        self._waiting.clear()


class JobBacklog:
    """Sub-jobs with tasks to place, those a policy requires first."""

    def __init__(self, session: Session, job: Job, *, gated: bool = True) -> None:
        """`gated`: whether tasks held back only by the queue's own gate take part."""
        self._session = session
        self.lines: dict[str, TaskBacklog] = {}
        self._sub_jobs: list[SubJob] = []
        waiting: dict[str, list[Task]] = {}
        for task in job.by_status[Status.PENDING].values():
            held_back = task.is_externally_gated or (task.is_gated and not gated)
            if not held_back and not task.best_effort:
                waiting.setdefault(task.sub_job_id, []).append(task)
        for sub_job in job.sub_jobs.values():
            if sub_job.id in waiting:
                self.lines[sub_job.id] = TaskBacklog(session, waiting[sub_job.id])
                self._sub_jobs.append(sub_job)
        self._required = required_sub_jobs(session, job) if job.has_policies else frozenset()

    def __len__(self) -> int:
        return len(self._sub_jobs)

    def copy(self) -> JobBacklog:
        copied = JobBacklog.__new__(JobBacklog)
        copied._session = self._session
        copied.lines = {id: line.copy() for id, line in self.lines.items()}
        copied._sub_jobs = self._sub_jobs.copy()
        copied._required = self._required
        return copied

    def pop(self) -> SubJob:
        """The next sub-job; put it back with `push` if tasks of it remain."""
        first = min(range(len(self._sub_jobs)), key=cmp_to_key(self._compare))
        return self._sub_jobs.pop(first)

    def push(self, sub_job: SubJob) -> None:
        if self.lines[sub_job.id]:
            self._sub_jobs.append(sub_job)

    def line(self, sub_job: SubJob) -> TaskBacklog:
        return self.lines[sub_job.id]

    def _compare(self, one: int, other: int) -> int:
        mine, theirs = self._sub_jobs[one], self._sub_jobs[other]
        difference = (theirs.id in self._required) - (mine.id in self._required)
        if difference:
            return difference
        return -1 if self._session.ask.sub_job_before(mine, theirs) else 1


def mixed_roles(tasks: Iterable[Task]) -> frozenset[str]:
    """The roles whose tasks are not all alike."""
    first: dict[str, int] = {}
    mixed = set()
    for task in tasks:
        if task.role and first.setdefault(task.role, task.shape.number) != task.shape.number:
            mixed.add(task.role)
    return frozenset(mixed)


def required_sub_jobs(session: Session, job: Job) -> frozenset[str]:
    """The not-ready sub-jobs needed so that every policy reaches its minimum."""
    have = Counter(s.policy_id for s in job.sub_jobs.values() if session.ask.sub_job_ready(job, s))

    def compare(one: SubJob, other: SubJob) -> int:
        return -1 if session.ask.sub_job_before(one, other) else 1

    required = set()
    for sub_job in sorted(job.sub_jobs.values(), key=cmp_to_key(compare)):
        if session.ask.sub_job_ready(job, sub_job):
            continue
        if have[sub_job.policy_id] < job.sub_group_minimums.get(sub_job.policy_id, 0):
            have[sub_job.policy_id] += 1
            required.add(sub_job.id)
    return frozenset(required)
