"""Waiting raises a job's place."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from volcano.scheduler.core.aging import aging_points
from volcano.scheduler.model import Job

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def a_job(*, hours: float, minimum: int = 1) -> Job:
    return Job("ns/j", "j", "ns", "q", min_available=minimum, created=NOW - timedelta(hours=hours))


def test_points_grow_with_the_time_waited() -> None:
    assert aging_points(a_job(hours=3), NOW, 10.0) == 30.0
    assert aging_points(a_job(hours=-1), NOW, 10.0) == 0.0


def test_without_a_slope_or_once_it_has_what_it_needs_a_job_does_not_age() -> None:
    assert aging_points(a_job(hours=3), NOW, 0.0) == 0.0
    assert aging_points(a_job(hours=3, minimum=0), NOW, 10.0) == 0.0
