"""CronJobs: when Jobs are made, by which rules, and what is kept of them."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from volcano.api.batch import CronJob, Job
from volcano.controllers.cronjob import CronJobController
from volcano.testing.pure_world import START, Killed, PureWorld

MINUTE = timedelta(minutes=1)


def a_cron(schedule: str = "* * * * *", *, name: str = "cron", created: datetime = START, **spec) -> dict:
    template = {
        "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}, "name": "ignored"},
        "spec": {"queue": "gold", "tasks": [{"name": "t", "replicas": 1, "template": {"spec": {"new": "field"}}}]},
    }
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "metadata": {"name": name, "creationTimestamp": created.isoformat()},
        "spec": {
            "schedule": schedule,
            "concurrencyPolicy": "Allow",
            "suspend": False,
            "successfulJobsHistoryLimit": 3,
            "failedJobsHistoryLimit": 1,
            "jobTemplate": template,
            **spec,
        },
    }


def a_world(*objects: dict, now: datetime = START, **settings) -> PureWorld:
    return PureWorld(*objects, controllers=[CronJobController(**settings)], now=now).settle()


def runs(world: PureWorld) -> list[datetime]:
    """The times of the Jobs that are there."""
    stamps = (job.annotations["volcano.sh/cronjob-scheduled-timestamp"] for job in world.all(Job))
    return sorted(datetime.fromisoformat(stamp) for stamp in stamps)


def finish(world: PureWorld, phase: str = "Completed", *names: str) -> None:
    for name in names or [job.name for job in world.all(Job)]:
        state = {"phase": phase, "lastTransitionTime": world.now.replace(microsecond=0).isoformat()}
        world.change(Job, name, {"status": {"state": state}})
    world.settle()


def the_cron(world: PureWorld) -> CronJob:
    cron = world.get(CronJob, "cron")
    assert cron is not None
    return cron


def active(world: PureWorld) -> list[str]:
    return [entry.name for entry in the_cron(world).status.active]


# -- making Jobs ----------------------------------------------------------------------------------------------
def test_a_job_is_made_each_minute():
    world = a_world(a_cron())
    assert runs(world) == []

    world.advance(3 * MINUTE + timedelta(seconds=1))

    assert runs(world) == [START + n * MINUTE for n in (1, 2, 3)]
    assert the_cron(world).status.last_schedule_time == START + 3 * MINUTE
    assert world.reasons().count("SuccessfulCreate") == 3


def test_the_job_of_a_time():
    world = a_world(a_cron())

    world.advance(MINUTE + timedelta(seconds=1))

    (job,) = world.all(Job)
    raw = world.raw(Job, job.name)
    assert job.name == f"cron-{int((START + MINUTE).timestamp()) // 60}"
    assert raw["spec"] == a_cron()["spec"]["jobTemplate"]["spec"]
    assert raw["metadata"]["labels"] == {"team": "a"}
    assert raw["metadata"]["annotations"] == {
        "note": "b",
        "volcano.sh/cronjob-scheduled-timestamp": "2026-01-01T00:01:00Z",
    }
    assert [(o.kind, o.name, o.controller) for o in job.metadata.owner_references] == [("CronJob", "cron", True)]
    (entry,) = the_cron(world).status.active
    assert (entry.kind, entry.name, entry.uid, entry.api_version) == (
        "Job",
        job.name,
        job.uid,
        "batch.volcano.sh/v1alpha1",
    )


def test_the_time_is_shown_in_the_schedules_zone():
    world = a_world(a_cron("0 9 * * *", timeZone="Asia/Tokyo"))

    world.advance(timedelta(hours=24, seconds=1))

    (job,) = world.all(Job)
    assert job.annotations["volcano.sh/cronjob-scheduled-timestamp"] == "2026-01-02T09:00:00+09:00"


def test_intervals_count_from_the_last_run():
    world = a_world(a_cron("@every 90s", created=START - timedelta(seconds=30)))

    world.advance(timedelta(minutes=4, seconds=1))

    assert runs(world) == [START + timedelta(seconds=seconds) for seconds in (60, 150, 240)]


def test_an_interval_with_a_short_deadline_still_comes():
    world = a_world(a_cron("@every 10m", startingDeadlineSeconds=60))

    world.advance(timedelta(minutes=25))

    assert runs(world) == [START + timedelta(minutes=10), START + timedelta(minutes=20)]


def test_a_suspended_cronjob_makes_nothing():
    world = a_world(a_cron(suspend=True))

    world.advance(10 * MINUTE)
    assert runs(world) == []

    world.change(CronJob, "cron", {"spec": {"suspend": False}})
    world.advance(timedelta(seconds=1))
    assert runs(world) == [START + 10 * MINUTE]


def test_a_changed_schedule_counts_from_then_on():
    world = a_world(a_cron("0 0 1 1 *"))
    world.advance(MINUTE)

    world.change(CronJob, "cron", {"spec": {"schedule": "*/5 * * * *"}})
    world.advance(timedelta(minutes=5))

    assert runs(world) == [START + timedelta(minutes=5)]


@pytest.mark.parametrize(
    ("spec", "reason"),
    [
        ({"schedule": "every day"}, "UnParseableCronJobSchedule"),
        ({"schedule": "61 * * * *"}, "UnParseableCronJobSchedule"),
        ({"timeZone": "Mars/Olympus"}, "InvalidTimeZone"),
        ({"schedule": "0 0 31 2 *"}, "InvalidSchedule"),
        ({"schedule": "TZ=Asia/Tokyo 0 0 * * *"}, "UnsupportedSchedule"),
    ],
)
def test_a_schedule_that_cannot_be_followed_is_said(spec: dict, reason: str):
    world = a_world(a_cron(**spec))

    assert reason in world.reasons()


def test_a_zone_inside_the_schedule_wins():
    world = a_world(a_cron("TZ=Asia/Tokyo 0 9 * * *", timeZone="Europe/Berlin"))

    world.advance(timedelta(hours=25))

    assert runs(world) == [datetime(2026, 1, 2, 0, 0, tzinfo=UTC)]


# -- catching up ----------------------------------------------------------------------------------------------
def test_a_controller_that_was_down_makes_good_the_last_time_only():
    world = a_world(a_cron("*/10 * * * *"), now=START + timedelta(minutes=35))

    assert runs(world) == [START + timedelta(minutes=30)]
    assert "TooManyMissedTimes" not in world.reasons()


def test_more_than_a_hundred_missed_times_are_a_warning_and_the_last_one_is_run():
    world = a_world(a_cron(), now=START + timedelta(days=400, seconds=30))

    assert runs(world) == [START + timedelta(days=400)]
    assert world.reasons().count("TooManyMissedTimes") == 1


@pytest.mark.parametrize(("minutes", "warned"), [(100, False), (101, True)])
def test_exactly_how_many_are_too_many(minutes: int, warned: bool):
    world = a_world(a_cron(), now=START + minutes * MINUTE)

    assert ("TooManyMissedTimes" in world.reasons()) is warned


@pytest.mark.parametrize(("deadline", "made"), [(None, True), (600, True), (299, False), (0, False)])
def test_a_missed_time_is_made_good_within_the_deadline_only(deadline: int | None, made: bool):
    spec = {"startingDeadlineSeconds": deadline} if deadline is not None else {}

    world = a_world(
        a_cron("0 * * * *", created=START - timedelta(minutes=30), **spec), now=START + timedelta(minutes=5)
    )

    assert bool(runs(world)) is made


def test_a_deadline_of_seconds_lets_punctual_runs_through():
    world = a_world(a_cron("*/5 * * * *", startingDeadlineSeconds=10))

    world.advance(timedelta(minutes=11))

    assert len(runs(world)) == 2


# -- concurrency ----------------------------------------------------------------------------------------------
def test_allow_runs_them_side_by_side():
    world = a_world(a_cron(concurrencyPolicy="Allow"))

    world.advance(3 * MINUTE + timedelta(seconds=1))

    assert len(active(world)) == 3


def test_forbid_keeps_exactly_one_and_starts_the_next_when_it_ends():
    world = a_world(a_cron(concurrencyPolicy="Forbid"))
    world.advance(3 * MINUTE + timedelta(seconds=30))
    assert runs(world) == [START + MINUTE]
    assert "ForbidConcurrent" in world.reasons()

    finish(world)

    assert runs(world) == [START + MINUTE, START + 3 * MINUTE]
    assert len(active(world)) == 1


def test_replace_keeps_exactly_one_and_it_is_the_newest():
    world = a_world(a_cron(concurrencyPolicy="Replace"))

    world.advance(3 * MINUTE + timedelta(seconds=1))

    assert runs(world) == [START + 3 * MINUTE]
    assert len(active(world)) == 1
    assert world.reasons().count("ReplaceConcurrent") == 2
    assert "StaleReference" not in world.reasons()


def test_a_replaced_job_that_takes_its_time_to_go_is_not_active_again():
    world = a_world(a_cron(concurrencyPolicy="Replace"))
    world.advance(MINUTE + timedelta(seconds=1))
    (first,) = world.all(Job)
    world.change(Job, first.name, {"metadata": {"finalizers": ["example.com/hold"]}})

    world.advance(MINUTE)

    assert len(world.all(Job)) == 2
    assert first.name not in active(world)


# -- what becomes of Jobs -------------------------------------------------------------------------------------
@pytest.mark.parametrize("phase", ["Completed", "Failed", "Terminated"])
def test_finished_jobs_leave_active(phase: str):
    world = a_world(a_cron("0 * * * *"))
    world.advance(timedelta(hours=1, seconds=1))
    assert len(active(world)) == 1

    finish(world, phase)

    assert active(world) == []
    assert "SawCompletedJob" in world.reasons()
    successful = the_cron(world).status.last_successful_time
    assert (successful is not None) is (phase == "Completed")


@pytest.mark.parametrize("phase", ["Aborted", "Running", "Restarting", "Pending"])
def test_unfinished_jobs_stay_active(phase: str):
    world = a_world(a_cron("0 * * * *"))
    world.advance(timedelta(hours=1, seconds=1))

    finish(world, phase)

    assert len(active(world)) == 1


def test_history_limits_keep_the_newest():
    world = a_world(a_cron("0 * * * *", successfulJobsHistoryLimit=2, failedJobsHistoryLimit=1))
    for hour in range(8):
        world.advance(timedelta(hours=1))
        world.advance(timedelta(seconds=1))
        finish(world, "Completed" if hour % 2 else "Failed", *active(world))

    kept = {job.status.state.phase: [] for job in world.all(Job)}
    for job in world.all(Job):
        kept[job.status.state.phase].append(job.annotations["volcano.sh/cronjob-scheduled-timestamp"][11:13])
    assert kept == {"Completed": ["06", "08"], "Failed": ["07"]}
    assert "SuccessfulDelete" in world.reasons()


def test_terminated_jobs_are_never_pruned_and_no_limit_prunes_nothing():
    world = a_world(a_cron("0 * * * *", failedJobsHistoryLimit=None, successfulJobsHistoryLimit=0))
    for phase in ("Terminated", "Terminated", "Failed", "Failed", "Completed"):
        world.advance(timedelta(hours=1))
        world.advance(timedelta(seconds=1))
        finish(world, phase, *active(world))

    assert sorted(job.status.state.phase for job in world.all(Job)) == ["Failed", "Failed", "Terminated", "Terminated"]


def test_an_active_job_that_someone_deletes_is_a_stale_reference():
    world = a_world(a_cron("0 * * * *"))
    world.advance(timedelta(hours=1, seconds=1))

    world.delete(Job, active(world)[0])
    world.settle()

    assert active(world) == []
    assert "StaleReference" in world.reasons()
    assert runs(world) == []


def test_a_job_made_by_hand_is_an_orphan():
    world = a_world(a_cron("0 * * * *"))
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "CronJob",
        "name": "cron",
        "uid": the_cron(world).uid,
        "controller": True,
    }
    world.put(
        {
            "apiVersion": "batch.volcano.sh/v1alpha1",
            "kind": "Job",
            "metadata": {"name": "by-hand", "ownerReferences": [owner]},
        }
    )

    world.settle()

    assert active(world) == []
    assert world.reasons().count("OrphanedJob") == 1


def test_a_foreign_job_of_that_name_is_left_alone():
    name = f"cron-{int((START + timedelta(hours=1)).timestamp()) // 60}"
    foreign = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": {"name": name}}
    world = a_world(a_cron("0 * * * *"), foreign)

    world.advance(timedelta(hours=1, seconds=1))

    assert "ForeignJob" in world.reasons()
    assert active(world) == []


# -- crashes --------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("policy", ["Allow", "Forbid", "Replace"])
def test_a_kill_after_any_write_loses_no_run_and_makes_none_twice(policy: str):
    def live(world: PureWorld) -> None:
        for _ in range(4):
            world.advance(timedelta(seconds=90))
            if policy == "Forbid":
                finish(world)

    given = a_cron("*/3 * * * *", concurrencyPolicy=policy)
    whole = a_world(given)
    live(whole)
    made = {key for key in whole._incarnations if key[1] == "Job"}

    for writes in range(whole.writes):
        world = PureWorld(given, controllers=[CronJobController()])
        world.stop_after = writes
        end = world.now + timedelta(seconds=360)
        with pytest.raises(Killed):
            live(world)
        world.stop_after = None
        world.restart()
        world.settle()
        while world.now < end:
            world.advance(min(timedelta(seconds=90), end - world.now))
            if policy == "Forbid":
                finish(world)
        world.settle()

        assert {key for key in world._incarnations if key[1] == "Job"} == made
        assert all(count == 1 for (_, kind, _), count in world._incarnations.items() if kind == "Job")
        assert the_cron(world).status.last_schedule_time == the_cron(whole).status.last_schedule_time
