"""What the PodGroup of a Job states about its run time."""

from __future__ import annotations

import msgspec

from volcano.api.batch import Job
from volcano.api.jobs.estimates import ESTIMATE_KEY, LEARNED_KEY
from volcano.testing.pure_jobs import JobWorld, a_job


def annotations(world: JobWorld) -> dict[str, str]:
    assert world.group is not None
    return world.group.annotations


def completed(name: str, seconds: int) -> JobWorld:
    """A world in which a job of this name has completed after so many seconds."""
    world = JobWorld(a_job(name=name), name=name).started()
    world.wait(seconds - 2).succeed()
    assert world.phase == "Completed"
    return world


def submit(world: JobWorld, **job: str) -> JobWorld:
    world.name = str(job["name"])
    world.put(a_job(**job))  # type: ignore[arg-type]
    world.settle()
    return world


def test_a_stated_estimate_is_written_on_the_podgroup() -> None:
    world = JobWorld(a_job(runningEstimate="1h30m"))
    world.settle()

    assert annotations(world)[ESTIMATE_KEY] == "1h30m"


def test_a_job_learns_from_completed_ones_of_its_name() -> None:
    world = completed("train-1", 90)

    submit(world, name="train-2")

    assert msgspec.json.decode(annotations(world)[LEARNED_KEY]) == {"p50": 90.0, "p90": 90.0, "runs": 1}


def test_other_names_queues_and_stated_estimates_learn_nothing() -> None:
    world = completed("train-1", 90)

    assert LEARNED_KEY not in annotations(submit(world, name="other-2"))
    stated = annotations(submit(world, name="train-3", runningEstimate="5m"))

    assert LEARNED_KEY not in stated
    assert stated[ESTIMATE_KEY] == "5m"


def test_a_failed_job_teaches_nothing() -> None:
    world = JobWorld(a_job(name="train-1", maxRetry=1), name="train-1").started()
    world.fail().wait()
    assert world.get(Job, "train-1") is not None

    assert LEARNED_KEY not in annotations(submit(world, name="train-2"))
