"""Aging: waiting raises a job's place among others, so that no job waits for ever behind more important ones."""

from __future__ import annotations

from datetime import datetime
from typing import Final

from volcano.scheduler.model import Job

SECONDS_PER_HOUR: Final = 3600.0


def aging_points(job: Job, now: datetime, points_per_hour: float) -> float:
    """What its waiting adds to the priority of a job; nothing once the job has what it needs."""
    if points_per_hour <= 0.0 or job.is_ready:
        return 0.0
    return max((now - job.created).total_seconds(), 0.0) / SECONDS_PER_HOUR * points_per_hour
