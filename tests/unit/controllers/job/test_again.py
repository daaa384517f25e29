"""Pods are made again only for a Job that the API server still has, and after many restarts with a back-off."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec

from volcano.api.batch import Job, JobCondition
from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.controllers.job.again import MAX_BACK_OFF, NO_PAUSE, back_off, is_still_there, rest_of_back_off
from volcano.controllers.job.view import JobView
from volcano.machinery.plan import Create, Found, Look, Plan, ref
from volcano.machinery.world import frozen_world
from volcano.testing.pure_jobs import JobWorld, a_job, a_task, policy

JOB = (resource_type(Job), Key("default", "j"))


class LookCounter(JobWorld):
    """Counts what is asked of the API server itself."""

    looks = 0

    def apply(self, plan: Plan, *more: Any, **options: Any) -> None:
        self.looks += sum(isinstance(step, Look) for step in plan)
        super().apply(plan, *more, **options)

    def _note(self) -> None:
        if JOB in self.objects:
            super()._note()


def made(world: JobWorld) -> list[str]:
    """Names of the pods that were created, in order."""
    return [step.key.name for step in world.log if isinstance(step, Create) and step.resource.kind == "Pod"]


def deleted_unseen(world: JobWorld) -> None:
    """The store no longer has the Job; the controller's mirror still does."""
    del world.objects[JOB]


def test_the_first_pods_of_a_job_are_made_without_a_look() -> None:
    world = LookCounter(a_job(a_task(replicas=3))).started()

    assert len(world.pods()) == 3
    assert world.looks == 0


def test_a_pod_that_was_lost_is_made_again() -> None:
    world = LookCounter(a_job()).started()

    world.evict("j-worker-0")

    assert set(world.pods()) == {"j-worker-0", "j-worker-1"}
    assert world.looks == 1


def test_a_pod_of_a_job_whose_deletion_is_not_seen_yet_is_not_made_again() -> None:
    world = LookCounter(a_job()).started()
    before = made(world)
    deleted_unseen(world)

    world.evict("j-worker-0", "j-worker-1")
    world.wait(60)

    assert made(world) == before
    assert world.all(Pod) == []


def test_a_controller_that_starts_with_a_job_whose_pods_are_gone_asks_whether_it_is_there() -> None:
    world = LookCounter(a_job()).started()
    before = made(world)
    for name in ("j-worker-0", "j-worker-1"):
        del world.objects[resource_type(Pod), Key("default", name)]

    world.restart()
    deleted_unseen(world)
    world.settle()

    assert world.looks == 1
    assert made(world) == before


def test_a_job_that_is_being_deleted_counts_as_gone() -> None:
    job = JobWorld(a_job()).job
    view = JobView(job, frozen_world(job))

    assert is_still_there(view, ()) is None
    assert is_still_there(view, (Found(ref(job), present=True),)) is True
    assert is_still_there(view, (Found(ref(job), present=True, is_deleting=True),)) is False


def test_a_job_that_was_restarted_asks_before_it_makes_its_pods() -> None:
    world = LookCounter(a_job(policies=[{"event": "PodFailed", "action": "RestartJob"}])).started()

    world.fail("j-worker-0").wait()
    world.enqueue()

    assert set(world.pods()) == {"j-worker-0", "j-worker-1"}
    assert world.looks >= 1


def test_after_many_restarts_pods_are_made_with_a_back_off() -> None:
    job = a_job(a_task(), maxRetry=1000, policies=[policy("RestartJob", "PodFailed")])
    world = JobWorld(job).started()
    for _ in range(10):
        world.fail("j-worker-0").wait(0)
        world.enqueue()
        assert world.pods(), "the first ten restarts wait for nothing"

    world.fail("j-worker-0").wait(0)
    world.enqueue()

    state = world.job.status.state
    assert world.pods() == {}
    assert (state.phase, state.reason) == ("Pending", "RestartBackOff")
    assert state.message == "restarted 11 times; this time its pods are made after 2 s"

    world.wait(3)

    assert set(world.pods()) == {"j-worker-0"}


def test_the_back_off_has_an_end_and_a_wrong_clock_does_not_prolong_it() -> None:
    job = JobWorld(a_job()).job
    job = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, retry_count=2**31 - 1))
    view = JobView(job, frozen_world(job))
    ahead = [JobCondition(status="Restarting", last_transition_time=view.now + timedelta(days=1))]
    late = msgspec.structs.replace(job, status=msgspec.structs.replace(job.status, conditions=ahead))

    assert back_off(view) == MAX_BACK_OFF
    assert rest_of_back_off(JobView(late, frozen_world(late))) == NO_PAUSE
