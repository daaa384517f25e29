"""Kubernetes' own Jobs."""

from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st
from workload_objects import a_template, a_workload, pods, set_pod, start_all

from volcano.api.core import BatchJob, Pod
from volcano.embedded.cluster.workloads import BatchJobController
from volcano.embedded.cluster.workloads.batch_job_pods import slot_of
from volcano.embedded.cluster.workloads.batch_job_spec import format_indexes, parse_indexes
from volcano.testing.pure_world import Killed, PureWorld


def a_job(**spec) -> dict:
    template = spec.pop("template", a_template(restartPolicy="Never"))
    return a_workload("Job", "j", api="batch/v1", template=template, **spec)


def a_world(*objects: dict) -> PureWorld:
    return PureWorld(*objects, controllers=[BatchJobController()]).settle()


def end(world: PureWorld, phase: str = "Succeeded", *, slot: int | None = None, restart: bool = True) -> None:
    """End the pods that run, or the one of a slot."""
    for pod in pods(world):
        if not pod.is_finished and (slot is None or slot_of(pod) == slot):
            set_pod(world, pod.name, phase)
    world.settle()


def status(world: PureWorld) -> dict:
    return world.raw(BatchJob, "j").get("status", {})


def conditions(world: PureWorld) -> dict[str, tuple[str, str]]:
    return {c["type"]: (c["status"], c["reason"]) for c in status(world).get("conditions", [])}


def living(world: PureWorld) -> list[Pod]:
    return [pod for pod in pods(world) if not pod.is_finished]


def test_a_job_runs_one_pod_and_completes():
    world = a_world(a_job())
    start_all(world)
    assert (status(world)["active"], status(world)["ready"]) == (1, 1)
    (pod,) = pods(world)
    assert pod.labels["job-name"] == "j"

    end(world)

    assert conditions(world)["Complete"][0] == "True"
    assert status(world)["succeeded"] == 1
    assert status(world)["completionTime"]
    assert "active" not in status(world)


def test_so_many_at_once_until_so_many_are_done():
    world = a_world(a_job(completions=5, parallelism=2))

    rounds = 0
    while "Complete" not in conditions(world):
        assert len(living(world)) <= 2
        end(world)
        rounds += 1

    assert rounds == 3
    assert status(world)["succeeded"] == 5
    assert len(pods(world)) == 5


def test_indexed_pods_know_their_index():
    world = a_world(a_job(completions=3, parallelism=3, completionMode="Indexed"))

    bodies = [world.raw(Pod, pod.name) for pod in pods(world)]

    assert [body["metadata"]["annotations"]["batch.kubernetes.io/job-completion-index"] for body in bodies] == [
        "0",
        "1",
        "2",
    ]
    assert [body["spec"]["hostname"] for body in bodies] == ["j-0", "j-1", "j-2"]
    assert [body["spec"]["containers"][0]["env"] for body in bodies] == [
        [{"name": "JOB_COMPLETION_INDEX", "value": str(i)}] for i in range(3)
    ]
    assert all(body["metadata"]["name"].startswith(f"j-{i}-") for i, body in enumerate(bodies))


def test_an_index_that_failed_is_tried_again_and_one_that_is_done_is_not():
    world = a_world(a_job(completions=3, parallelism=3, completionMode="Indexed"))

    end(world, slot=0)
    end(world, "Failed", slot=1)
    assert status(world)["completedIndexes"] == "0"
    assert sorted(slot_of(pod) for pod in living(world)) == [2]  # the pause after a failure

    world.advance(timedelta(seconds=11))
    assert sorted(slot_of(pod) for pod in living(world)) == [1, 2]

    end(world)
    assert conditions(world)["Complete"][0] == "True"
    assert status(world)["completedIndexes"] == "0-2"


def test_what_was_done_stays_done_when_its_pod_is_deleted():
    world = a_world(a_job(completions=2, parallelism=1))
    end(world)
    done = next(pod for pod in pods(world) if pod.is_finished)

    world.delete(Pod, done.name)
    world.settle()
    end(world)

    assert conditions(world)["Complete"][0] == "True"
    assert status(world)["succeeded"] == 2


def test_too_many_failures_fail_the_job():
    world = a_world(a_job(backoffLimit=2))

    for _ in range(3):
        assert "Failed" not in conditions(world)
        end(world, "Failed")
        world.advance(timedelta(minutes=11))

    assert conditions(world)["Failed"] == ("True", "BackoffLimitExceeded")
    assert status(world)["failed"] == 3
    assert len(pods(world)) == 3


def test_each_failure_in_a_row_makes_the_pause_longer():
    world = a_world(a_job(backoffLimit=6))
    pauses = []
    for _ in range(4):
        for pod in living(world):
            set_pod(world, pod.name, "Failed", containerStatuses=[
                {"name": "c", "state": {"terminated": {"exitCode": 1, "finishedAt": world.now.isoformat()}}}
            ])  # fmt: skip
        since = world.now
        world.settle()
        while not living(world):
            world.advance(timedelta(seconds=1))
        pauses.append((world.now - since).total_seconds())

    assert pauses == [10, 20, 40, 80]


def test_restarts_in_place_count_too():
    world = a_world(a_job(backoffLimit=2, template=a_template(restartPolicy="OnFailure")))
    (pod,) = pods(world)

    set_pod(world, pod.name, containerStatuses=[{"name": "c", "restartCount": 2}])
    world.settle()

    assert conditions(world)["Failed"] == ("True", "BackoffLimitExceeded")
    assert living(world) == []


def test_a_job_that_takes_too_long_fails():
    world = a_world(a_job(activeDeadlineSeconds=60))
    start_all(world)

    world.advance(timedelta(seconds=59))
    assert "Failed" not in conditions(world)

    world.advance(timedelta(seconds=1))
    assert conditions(world)["Failed"] == ("True", "DeadlineExceeded")
    assert living(world) == []


def test_a_suspended_job_has_no_pods_and_its_clock_stands_still():
    world = a_world(a_job(suspend=True, activeDeadlineSeconds=60))
    world.advance(timedelta(hours=1))
    assert pods(world) == []
    assert conditions(world)["Suspended"] == ("True", "JobSuspended")

    world.change(BatchJob, "j", {"spec": {"suspend": False}})
    world.settle()
    assert len(living(world)) == 1
    assert conditions(world)["Suspended"] == ("False", "JobResumed")
    assert status(world)["startTime"]

    world.change(BatchJob, "j", {"spec": {"suspend": True}})
    world.settle()
    assert living(world) == []
    assert "startTime" not in status(world)


def test_workers_of_a_queue_end_with_the_last_of_them():
    world = a_world(a_job(parallelism=3))
    assert len(living(world)) == 3

    end(world, slot=0)
    assert len(living(world)) == 2
    assert "Complete" not in conditions(world)

    end(world)
    assert conditions(world)["Complete"][0] == "True"


def test_a_smaller_parallelism_ends_pods():
    world = a_world(a_job(completions=10, parallelism=4))

    world.change(BatchJob, "j", {"spec": {"parallelism": 1}})
    world.settle()

    assert [slot_of(pod) for pod in living(world)] == [0]


def test_a_finished_job_goes_after_its_time():
    world = a_world(a_job(ttlSecondsAfterFinished=100))
    end(world)

    world.advance(timedelta(seconds=99))
    assert "deletionTimestamp" not in world.raw(BatchJob, "j")["metadata"]

    world.advance(timedelta(seconds=1))
    assert "deletionTimestamp" in world.raw(BatchJob, "j")["metadata"]


def test_an_end_that_a_clock_which_was_ahead_has_stamped_counts_from_when_it_is_seen():
    world = a_world(a_job(ttlSecondsAfterFinished=100))
    world.now += timedelta(hours=1)
    end(world)

    world.now -= timedelta(hours=1)
    world.restart()
    world.advance(timedelta(seconds=99))
    assert "deletionTimestamp" not in world.raw(BatchJob, "j")["metadata"]

    world.advance(timedelta(seconds=1))
    assert "deletionTimestamp" in world.raw(BatchJob, "j")["metadata"]


def test_a_start_that_a_clock_which_was_ahead_has_stamped_does_not_prolong_the_deadline():
    world = a_world(a_job(activeDeadlineSeconds=60))
    start_all(world)
    world.change(BatchJob, "j", {"status": {"startTime": (world.now + timedelta(hours=1)).isoformat()}})
    world.restart()

    world.advance(timedelta(seconds=59))
    assert "Failed" not in conditions(world)

    world.advance(timedelta(seconds=1))
    assert conditions(world)["Failed"] == ("True", "DeadlineExceeded")


def test_volcanos_jobs_are_not_ours():
    owner = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": "j", "uid": "x", "controller": True}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "p", "ownerReferences": [owner]}}

    assert a_world(pod).writes == 0


@pytest.mark.parametrize("mode", ["Indexed", "NonIndexed"])
def test_a_kill_after_any_write_runs_no_slot_twice_and_skips_none(mode: str):
    def live(world: PureWorld) -> None:
        for _ in range(8):
            world.settle()
            start_all(world)
            end(world)

    given_ = a_job(completions=4, parallelism=2, completionMode=mode)
    whole = PureWorld(given_, controllers=[BatchJobController()])
    live(whole)

    for writes in range(whole.writes):
        world = PureWorld(given_, controllers=[BatchJobController()])
        world.stop_after = writes
        with pytest.raises(Killed):
            live(world)
        world.stop_after = None
        world.restart()
        live(world)

        assert conditions(world)["Complete"][0] == "True"
        assert sorted(slot_of(pod) for pod in pods(world)) == [0, 1, 2, 3]
        assert {pod.name for pod in pods(world)} == {pod.name for pod in pods(whole)}


@given(st.sets(st.integers(0, 200)))
def test_indexes_survive_being_written_down(indexes: set[int]):
    assert parse_indexes(format_indexes(indexes)) == indexes


def test_how_indexes_are_written():
    assert format_indexes([0, 1, 2, 4, 5, 9]) == "0-2,4,5,9"
