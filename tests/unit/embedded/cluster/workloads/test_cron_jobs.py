"""Kubernetes' own CronJobs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from workload_objects import a_template

from volcano.api.core import BatchJob
from volcano.api.jobs.sources import BatchCronJobSource
from volcano.embedded.cluster.workloads import BatchCronJobController
from volcano.testing.pure_world import PureWorld

MINUTE = timedelta(minutes=1)


def a_world(**spec) -> PureWorld:
    template = {"metadata": {"labels": {"a": "b"}}, "spec": {"template": a_template(restartPolicy="Never")}}
    fields = {"schedule": "* * * * *", "jobTemplate": template, "concurrencyPolicy": "Allow", **spec}
    cron = {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "c"}, "spec": fields}
    return PureWorld(cron, controllers=[BatchCronJobController()]).settle()


def end(world: PureWorld, name: str, kind: str = "Complete") -> None:
    condition = {"type": kind, "status": "True", "lastTransitionTime": world.now.replace(microsecond=0).isoformat()}
    world.change(BatchJob, name, {"status": {"conditions": [condition]}})
    world.settle()


def names(world: PureWorld) -> list[str]:
    return [job.name for job in world.all(BatchJob)]


def status(world: PureWorld) -> dict:
    return world.raw(BatchCronJobSource, "c").get("status", {})


def test_a_job_is_made_at_each_time():
    world = a_world().advance(2 * MINUTE + timedelta(seconds=5))

    jobs = world.all(BatchJob)
    assert len(jobs) == 2
    assert jobs[0].labels == {"a": "b"} and jobs[0].controller.name == "c"
    assert [entry["name"] for entry in status(world)["active"]] == names(world)
    assert "lastScheduleTime" in status(world)


def test_a_job_that_ended_is_no_longer_active():
    world = a_world().advance(MINUTE + timedelta(seconds=5))
    end(world, names(world)[0])

    assert not status(world).get("active")
    assert "lastSuccessfulTime" in status(world)
    assert "SawCompletedJob" in world.reasons()


@pytest.mark.parametrize(("policy", "left"), [("Allow", 3), ("Forbid", 1), ("Replace", 1)])
def test_a_policy_says_what_becomes_of_the_one_that_still_runs(policy: str, left: int):
    world = a_world(concurrencyPolicy=policy).advance(MINUTE + timedelta(seconds=5))
    first = names(world)

    world.advance(2 * MINUTE)

    assert len(names(world)) == left
    assert (first[0] in names(world)) == (policy != "Replace")


def test_a_suspended_one_makes_nothing():
    assert names(a_world(suspend=True).advance(5 * MINUTE)) == []


def test_only_so_many_ended_jobs_are_kept():
    world = a_world(successfulJobsHistoryLimit=1, failedJobsHistoryLimit=0)
    for kind in ("Complete", "Complete", "Failed"):
        world.advance(MINUTE)
        for entry in status(world).get("active", []):
            end(world, entry["name"], kind)

    assert len([job for job in world.all(BatchJob) if (job.status or {}).get("conditions")]) == 1


def test_a_job_made_by_hand_does_not_count_as_a_time():
    world = a_world()
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": "c", "controller": True}
    uid = world.raw(BatchCronJobSource, "c")["metadata"]["uid"]
    metadata = {"name": "by-hand", "ownerReferences": [{**owner, "uid": uid}]}
    world.put({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {}})
    world.settle()

    assert not status(world).get("active")


def test_a_bad_schedule_is_told():
    assert "UnParseableCronJobSchedule" in a_world(schedule="every day").reasons()
