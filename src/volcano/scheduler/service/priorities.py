"""What the place of each waiting job is made of: its priority class, and how long it has waited."""

from __future__ import annotations

from typing import Final

from volcano.api.jobs.priorities import JobPriorities, JobPriority
from volcano.scheduler.core.aging import aging_points
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.service.expected_starts import job_name
from volcano.scheduler.service.simulate import Known, snapshot_of

AGING_ARGUMENTS: Final = {"priority": "priority.aging", "easy": "easy.aging"}


def job_priorities(known: Known) -> JobPriorities:
    slope = points_per_hour(known.config)
    waiting = [job for job in snapshot_of(known).schedulable_jobs().values() if not job.is_ready or job.is_pending]
    return JobPriorities(
        slope,
        {
            job_name(job): JobPriority(job.queue, job.priority, round(aging_points(job, known.now, slope), 2))
            for job in sorted(waiting, key=lambda job: job.id)
        },
    )


def points_per_hour(config: SchedulerConfig) -> float:
    """Of the first plugin that ages priorities."""
    for tier in config.tiers:
        for option in tier:
            if option.name in AGING_ARGUMENTS and AGING_ARGUMENTS[option.name] in option.arguments:
                return option.arguments.number(AGING_ARGUMENTS[option.name], 0.0)
    return 0.0
