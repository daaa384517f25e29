"""What is measured about jobs."""

from __future__ import annotations

from datetime import timedelta

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.controllers.job.measures import Ended, creation_latency, ended
from volcano.machinery.world import Change
from volcano.testing.pure_jobs import JobWorld, a_job, a_task


def changes(world: JobWorld) -> list[Change[Job]]:
    seen: list[Change[Job]] = []
    world.mirror.listen(Job, seen.append)
    return seen


def test_a_job_that_completes_is_counted_once() -> None:
    world = JobWorld(a_job(a_task())).started()
    seen = changes(world)

    world.succeed().wait()

    assert [found for change in seen if (found := ended(change))] == [Ended("default/j", "default", completed=True)]


def test_a_job_that_fails_is_counted_as_such() -> None:
    world = JobWorld(a_job(a_task())).started()
    seen = changes(world)

    world.fail().wait()

    assert [found.completed for change in seen if (found := ended(change))] == [False]


def test_a_job_found_to_have_ended_long_ago_is_not_counted() -> None:
    world = JobWorld(a_job(a_task())).started()
    world.succeed().wait()

    assert [found for change in changes(world) if (found := ended(change))] == []


def test_the_latency_of_a_pod_is_from_the_jobs_creation_to_its_own() -> None:
    world = JobWorld(a_job(a_task()))
    world.wait(3)
    seen: list[Change[Pod]] = []
    world.mirror.listen(Pod, seen.append)

    world.enqueue().run()

    assert [creation_latency(world.job, change) for change in seen] == [timedelta(seconds=3), None]
