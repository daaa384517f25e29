"""priority: more important jobs and tasks go first, and are evicted only for still more important ones."""

from __future__ import annotations

from volcano.scheduler.core.aging import aging_points
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Job, SubJob, Task


class Priority(Plugin):
    name = "priority"
    argument_names = frozenset({"priority.aging"})

    def open(self, session: Session) -> None:
        super().open(session)
        self._aging = self.arguments.number("priority.aging", 0.0)

    def task_order(self, one: Task, other: Task) -> int:
        return other.priority - one.priority

    def job_order(self, one: Job, other: Job) -> float:
        if self._aging <= 0.0:
            return other.priority - one.priority
        now = self.session.now
        mine = one.priority + aging_points(one, now, self._aging)
        return other.priority + aging_points(other, now, self._aging) - mine

    def sub_job_order(self, one: SubJob, other: SubJob) -> int:
        return other.priority - one.priority

    def preemptable(self, preemptor: Task, candidates: list[Task]) -> list[Task]:
        """Tasks of less important jobs; within the job, less important tasks."""
        job = self.session.job_of(preemptor)
        if job is None:
            return []
        jobs = self.session.jobs
        return [
            task
            for task in candidates
            if (
                task.priority < preemptor.priority
                if task.job_id == job.id
                else task.job_id in jobs and jobs[task.job_id].priority < job.priority
            )
        ]

    def evictable(self, kind: str, job: Job, candidates: list[Task]) -> list[Task]:
        """Reclaiming between queues is a matter of fairness, not of importance."""
        if kind == "GangReclaim":
            return list(candidates)
        jobs = self.session.jobs
        return [task for task in candidates if task.job_id in jobs and jobs[task.job_id].priority < job.priority]

    def job_starving(self, job: Job) -> bool:
        return job.counts.ready + job.counts.waiting < len(job.tasks)
