"""Finished Jobs go when their time is over."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.api.batch import Job
from volcano.controllers.garbage import GarbageController
from volcano.machinery.plan import Delete
from volcano.testing.pure_world import START, PureWorld


def a_job(phase: str, ttl: int | None, *, finished=START) -> dict:
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": "j"},
        "spec": {"ttlSecondsAfterFinished": ttl} if ttl is not None else {},
        "status": {"state": {"phase": phase, "lastTransitionTime": finished.isoformat()}},
    }


def a_world(job: dict) -> PureWorld:
    return PureWorld(job, controllers=[GarbageController()]).settle()


@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_a_finished_job_goes_when_its_time_is_over(phase: str):
    world = a_world(a_job(phase, 60))

    world.advance(timedelta(seconds=59))
    assert world.get(Job, "j") is not None

    world.advance(timedelta(seconds=1))
    job = world.get(Job, "j")
    assert job is not None
    assert job.is_deleting
    assert job.metadata.finalizers == ["foregroundDeletion"]


@pytest.mark.parametrize(
    "phase", ["", "Pending", "Running", "Restarting", "Aborting", "Aborted", "Completing", "Terminating"]
)
def test_an_unfinished_job_stays(phase: str):
    world = a_world(a_job(phase, 0))

    world.advance(timedelta(days=1))

    assert world.writes == 0


def test_a_job_without_a_ttl_stays():
    world = a_world(a_job("Completed", None))

    world.advance(timedelta(days=365))

    assert world.writes == 0


def test_a_ttl_of_nothing_deletes_at_once():
    assert a_world(a_job("Completed", 0)).writes == 1


def test_the_time_counts_from_when_the_job_finished_not_from_when_we_looked():
    assert a_world(a_job("Failed", 60, finished=START - timedelta(minutes=2))).writes == 1


def test_deleting_is_tied_to_the_job_that_was_looked_at():
    world = PureWorld(a_job("Completed", 0))
    job = world.get(Job, "j")
    assert job is not None

    (step,) = GarbageController().decide(job.key, world.mirror, ())

    assert isinstance(step, Delete)
    assert step.target.uid == job.uid
    assert step.target.resource_version == job.metadata.resource_version
    assert step.propagation == "Foreground"


def test_a_ttl_raised_in_time_is_respected():
    world = a_world(a_job("Completed", 60))
    world.advance(timedelta(seconds=30))

    world.change(Job, "j", {"spec": {"ttlSecondsAfterFinished": 600}})
    world.advance(timedelta(seconds=300))

    job = world.get(Job, "j")
    assert job is not None
    assert not job.is_deleting


def test_a_finish_that_a_clock_which_was_ahead_has_stamped_counts_from_when_it_is_seen():
    world = a_world(a_job("Completed", 60, finished=START + timedelta(hours=1)))

    world.advance(timedelta(seconds=59))
    assert world.writes == 0

    world.advance(timedelta(seconds=1))
    assert world.writes == 1


def test_changes_of_a_job_that_finishes_in_the_future_do_not_prolong_its_time():
    world = a_world(a_job("Completed", 60, finished=START + timedelta(hours=1)))
    world.advance(timedelta(seconds=50))

    world.change(Job, "j", {"metadata": {"labels": {"any": "label"}}})
    world.settle()
    world.advance(timedelta(seconds=10))

    job = world.get(Job, "j")
    assert job is not None
    assert job.is_deleting
