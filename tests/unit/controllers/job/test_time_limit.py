"""A job ends at its time limit where the job or its queue asks for that, and only there."""

from __future__ import annotations

from datetime import timedelta

import pytest

from volcano.api.meta import JSON
from volcano.testing.pure_jobs import JobWorld, a_job, a_queue

ENFORCED = {"annotations": {"volcano.sh/time-limit": "enforce"}}


def limited(**spec: str) -> JSON:
    return a_job(metadata=ENFORCED, **spec)


def test_a_job_is_terminated_at_its_limit_with_a_reason() -> None:
    world = JobWorld(limited(runningEstimate="10m")).started()

    world.wait(590)
    assert world.phase == "Running"
    world.wait(20)

    assert world.phase == "Terminated"
    assert world.pods() == {}
    reasons = [(status["state"].get("reason"), status["state"].get("message")) for status in world.statuses]
    assert ("TimeLimit", "the job has run for its time limit of 10m0s") in reasons


def test_the_queue_may_ask_for_limits() -> None:
    queue = a_queue()
    queue["metadata"]["annotations"] = {"volcano.sh/time-limit": "enforce"}
    world = JobWorld(queue, a_job(runningEstimate="10m")).started()

    assert world.wait(620).phase == "Terminated"


@pytest.mark.parametrize(
    "job", [a_job(runningEstimate="10m"), limited(), limited(runningEstimate="nonsense")], ids=["off", "none", "bad"]
)
def test_without_a_limit_a_job_runs_on(job: JSON) -> None:
    assert JobWorld(job).started().wait(3600).phase == "Running"


def test_a_restarted_job_has_its_whole_time_again() -> None:
    policies = [{"event": "PodFailed", "action": "RestartJob"}]
    world = JobWorld(limited(runningEstimate="10m", policies=policies)).started()  # type: ignore[arg-type]

    world.wait(400).fail("j-worker-0").wait()
    world.enqueue().run().wait(400)

    assert world.phase == "Running"
    assert world.wait(250).phase == "Terminated"


def test_a_start_that_a_clock_which_was_ahead_has_stamped_counts_from_when_it_is_seen() -> None:
    world = JobWorld(limited(runningEstimate="10m"))
    world.now += timedelta(hours=1)
    world.started()

    world.now -= timedelta(hours=1)
    world.restart()
    assert world.wait(590).phase == "Running"

    assert world.wait(20).phase == "Terminated"
