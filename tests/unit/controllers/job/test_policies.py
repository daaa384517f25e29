"""Lifecycle policies: which action answers which event, at once or after a timeout; every rule of the reference."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from volcano.api.batch import Action, BusEvent, Job, LifecyclePolicy, Phase
from volcano.api.core import Pod
from volcano.api.decode import decode_object
from volcano.api.scheduling import PodGroup
from volcano.controllers.job.occurrences import Occurrence
from volcano.controllers.job.policies import Answer, answer_to, matches
from volcano.testing.pure_jobs import JobWorld, a_job, a_task, policy

USABLE = (
    BusEvent.POD_FAILED,
    BusEvent.POD_EVICTED,
    BusEvent.TASK_COMPLETED,
    BusEvent.TASK_FAILED,
    BusEvent.JOB_UNKNOWN,
    BusEvent.JOB_UPDATED,
)
INTERNAL = (BusEvent.POD_RUNNING, BusEvent.OUT_OF_SYNC, BusEvent.COMMAND_ISSUED)


def read(body: dict[str, Any]) -> Job:
    return decode_object(Job, body)


# -- matching -------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("event", USABLE)
def test_a_policy_matches_its_own_event_and_the_star(event: BusEvent) -> None:
    happened = Occurrence(event)

    assert matches(LifecyclePolicy(action="AbortJob", event=event), happened)
    assert matches(LifecyclePolicy(action="AbortJob", events=["TaskFailed", event]), happened)
    assert matches(LifecyclePolicy(action="AbortJob", event="*"), happened)
    assert not matches(LifecyclePolicy(action="AbortJob", event=BusEvent.POD_PENDING, timeout="1s"), happened)


def test_a_pending_pod_is_answered_only_with_a_timeout() -> None:
    happened = Occurrence(BusEvent.POD_PENDING)

    assert not matches(LifecyclePolicy(action="AbortJob", event="PodPending"), happened)
    assert not matches(LifecyclePolicy(action="AbortJob", event="*"), happened)
    assert matches(LifecyclePolicy(action="AbortJob", event="PodPending", timeout="1s"), happened)
    assert matches(LifecyclePolicy(action="AbortJob", event="*", timeout="1s"), happened)


def test_an_exit_code_matches_the_same_code_only() -> None:
    rule = LifecyclePolicy(action="AbortJob", exit_code=3)

    assert matches(rule, Occurrence(BusEvent.POD_FAILED, exit_code=3))
    assert not matches(rule, Occurrence(BusEvent.POD_FAILED, exit_code=4))
    assert not matches(rule, Occurrence(BusEvent.POD_EVICTED))


@pytest.mark.parametrize("event", INTERNAL)
def test_internal_events_are_answered_by_no_policy(event: BusEvent) -> None:
    job = read(a_job(policies=[policy("AbortJob", "*"), policy("AbortJob", event)]))

    assert answer_to(job, Occurrence(event)) is None


def test_policies_of_the_task_come_before_those_of_the_job() -> None:
    tasks = (a_task("a", policies=[policy("RestartTask", "PodFailed")]), a_task("b"))
    job = read(a_job(*tasks, policies=[policy("AbortJob", "PodFailed")]))

    assert answer_to(job, Occurrence(BusEvent.POD_FAILED, "a")) == Answer("RestartTask")
    assert answer_to(job, Occurrence(BusEvent.POD_FAILED, "b")) == Answer("AbortJob")


def test_a_task_policy_that_does_not_match_falls_through_to_the_job() -> None:
    job = read(a_job(a_task("a", policies=[policy("RestartTask", "PodEvicted")]), policies=[policy("AbortJob", "*")]))

    assert answer_to(job, Occurrence(BusEvent.POD_FAILED, "a")) == Answer("AbortJob")


def test_the_first_policy_of_a_list_that_matches_decides() -> None:
    job = read(a_job(policies=[policy("AbortJob", exitCode=3), policy("RestartJob", "PodFailed")]))

    assert answer_to(job, Occurrence(BusEvent.POD_FAILED, exit_code=3)) == Answer("AbortJob")
    assert answer_to(job, Occurrence(BusEvent.POD_FAILED, exit_code=1)) == Answer("RestartJob")


def test_a_timeout_is_a_delay() -> None:
    job = read(a_job(policies=[policy("AbortJob", "PodFailed", timeout="1m30s")]))

    assert answer_to(job, Occurrence(BusEvent.POD_FAILED)) == Answer("AbortJob", timedelta(seconds=90))


# -- the sequences of the end-to-end tests --------------------------------------------------------------------------
def running(*tasks: dict[str, Any], graceful: bool = True, **spec: Any) -> JobWorld:
    return JobWorld(a_job(*tasks, **spec), graceful=graceful).started()


def seen(world: JobWorld) -> list[str]:
    return world.phases


@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("RestartJob", ["Pending", "Running", "Restarting", "Pending", "Running"]),
        ("TerminateJob", ["Pending", "Running", "Terminating", "Terminated"]),
        ("AbortJob", ["Pending", "Running", "Aborting", "Aborted"]),
        ("CompleteJob", ["Pending", "Running", "Completing", "Completed"]),
    ],
)
@pytest.mark.parametrize("event", ["PodFailed", "*"])
def test_a_failed_pod_sets_off_the_action(event: str, action: str, expected: list[str]) -> None:
    world = running(policies=[policy(action, event)])

    world.fail("j-worker-0")
    during = world.statuses[-1]
    world.reap()
    world.enqueue().run()

    assert seen(world) == expected
    assert during["terminating"] > 0


@pytest.mark.parametrize("event", ["PodEvicted", "*"])
@pytest.mark.parametrize(
    ("action", "expected"),
    [
        ("RestartJob", ["Pending", "Running", "Restarting", "Pending", "Running"]),
        ("TerminateJob", ["Pending", "Running", "Terminating", "Terminated"]),
        ("AbortJob", ["Pending", "Running", "Aborting", "Aborted"]),
    ],
)
def test_a_deleted_pod_sets_off_the_action(event: str, action: str, expected: list[str]) -> None:
    world = running(policies=[policy(action, event)])

    world.evict("j-worker-1")
    world.reap()
    world.enqueue().run()

    assert seen(world) == expected


def test_a_deleted_pod_without_a_policy_is_made_again() -> None:
    world = running()

    world.evict("j-worker-1")

    assert world.pods() == {"j-worker-0": "Running", "j-worker-1": "Pending"}


def test_a_failed_pod_without_a_policy_stays_as_it_is() -> None:
    world = running(minAvailable=1)

    world.fail("j-worker-1")

    assert world.pods() == {"j-worker-0": "Running", "j-worker-1": "Failed"}
    assert world.phase == Phase.RUNNING


def test_restarting_a_pod_ends_that_pod_only() -> None:
    world = running(policies=[policy("RestartPod", "PodFailed")])
    other = world.get(Pod, "j-worker-1")

    world.fail("j-worker-0")
    world.reap()
    world.run("j-worker-0")

    assert seen(world) == ["Pending", "Running", "Restarting", "Pending", "Running"]
    assert world.get(Pod, "j-worker-1").uid == other.uid
    assert world.job.status.retry_count == 1


def test_restarting_a_task_leaves_other_tasks_alone() -> None:
    world = running(a_task("a", 2, policies=[policy("RestartTask", "PodFailed")]), a_task("b", 1))
    before = {pod.name: pod.uid for pod in world.all(Pod)}

    world.fail("j-a-1")
    world.reap()
    after = {pod.name: pod.uid for pod in world.all(Pod)}

    assert after["j-b-0"] == before["j-b-0"]
    assert after["j-a-0"] != before["j-a-0"] and after["j-a-1"] != before["j-a-1"]


def test_restarting_a_partition_leaves_other_partitions_alone() -> None:
    task = a_task("a", 4, partitionPolicy={"totalPartitions": 2, "partitionSize": 2})
    world = running(task, policies=[policy("RestartPartition", "PodFailed")])
    before = {pod.name: pod.uid for pod in world.all(Pod)}

    world.fail("j-a-3")
    world.reap()
    changed = {pod.name for pod in world.all(Pod) if pod.uid != before[pod.name]}

    assert changed == {"j-a-2", "j-a-3"}


def test_restarting_a_partition_without_one_changes_nothing() -> None:
    world = running(policies=[policy("RestartPartition", "PodFailed")], minAvailable=1)

    world.fail("j-worker-0")

    assert world.phase == Phase.RUNNING
    assert world.job.status.retry_count == 0


def test_a_second_pod_that_fails_while_the_job_restarts_is_restarted_with_it() -> None:
    world = running(a_task(replicas=3), policies=[policy("RestartPod", "PodFailed")])

    world.fail("j-worker-0")
    world.fail("j-worker-1")
    dying = world.dying()
    world.reap()

    assert dying == {"j-worker-0", "j-worker-1"}
    assert world.job.status.retry_count == 1
    assert world.pods() == {"j-worker-0": "Pending", "j-worker-1": "Pending", "j-worker-2": "Running"}


@pytest.mark.parametrize(("action", "goal"), [("RestartJob", "Restarting"), ("AbortJob", "Aborting")])
def test_a_podgroup_that_becomes_unknown_sets_off_the_action(action: str, goal: str) -> None:
    world = running(policies=[policy(action, "Unknown")])

    world.change(PodGroup, "j-uid-j", {"status": {"phase": "Unknown"}})
    world.settle()
    world.reap()

    assert goal in seen(world)
    assert seen(world)[-1] == {"RestartJob": "Pending", "AbortJob": "Aborted"}[action]


def test_unknown_is_answered_after_an_earlier_restart_too() -> None:
    world = running(policies=[policy("RestartJob", "Unknown", "PodFailed")])
    world.fail("j-worker-0")
    world.reap()
    world.enqueue().run()

    world.change(PodGroup, "j-uid-j", {"status": {"phase": "Unknown"}})
    world.settle()
    world.reap()

    assert world.job.status.retry_count == 2
    assert world.job.status.version == 2


def test_pods_that_succeed_while_the_job_completes_are_counted() -> None:
    world = running(a_task("a", 1), a_task("b", 3), policies=[policy("CompleteJob", "TaskCompleted")])

    world.succeed("j-a-0")  # the others are deleted, and two of them succeed within their grace period
    world.succeed("j-b-0", "j-b-1")
    world.fail("j-b-2")
    world.reap()

    assert world.phase == Phase.COMPLETED
    assert world.job.status.succeeded == 3
    assert world.job.status.failed == world.job.status.terminating == 0
    assert world.pods() == {"j-a-0": "Succeeded"}


def test_a_completed_job_keeps_its_count_when_its_pods_are_deleted() -> None:
    world = running(a_task("a", 2), policies=[policy("CompleteJob", "TaskCompleted")])
    world.succeed()
    world.reap()

    world.evict("j-a-0")

    assert world.job.status.succeeded == 2


@pytest.mark.parametrize("level", ["job", "task"])
def test_a_completed_task_completes_the_job(level: str) -> None:
    rule = [policy("CompleteJob", "TaskCompleted")]
    a = a_task("a", 2, **({"policies": rule} if level == "task" else {}))
    world = running(a, a_task("b", 1), **({"policies": rule} if level == "job" else {}))

    world.succeed("j-a-0")
    half = world.phase
    world.succeed("j-a-1")
    world.reap()

    assert half == Phase.RUNNING
    assert seen(world) == ["Pending", "Running", "Completing", "Completed"]
    assert world.pods() == {"j-a-0": "Succeeded", "j-a-1": "Succeeded"}
    assert world.job.status.retry_count == 0


@pytest.mark.parametrize(("timeout", "waits"), [(None, 0), ("30s", 30)])
def test_a_pod_that_ended_in_the_future_of_a_wrong_clock_is_answered_as_if_it_ended_now(
    timeout: str | None, waits: int
) -> None:
    rule = policy("CompleteJob", "TaskCompleted", **({"timeout": timeout} if timeout else {}))
    world = running(a_task("a", 1, policies=[rule]), a_task("b", 1))
    ended = {"exitCode": 0, "finishedAt": (world.now + timedelta(hours=1)).isoformat()}
    status = {"name": "main", "ready": False, "restartCount": 0, "state": {"terminated": ended}}

    world.change(Pod, "j-a-0", {"status": {"phase": "Succeeded", "containerStatuses": [status]}})
    world.settle()
    if waits:
        assert world.phase == Phase.RUNNING
        world.wait(waits)
    world.reap()

    assert seen(world)[-2:] == ["Completing", "Completed"]


def test_a_task_that_restarts_its_containers_too_often_has_failed() -> None:
    world = running(a_task(replicas=2, maxRetry=3), policies=[policy("TerminateJob", "TaskFailed")])

    world.set_phase("Running", "j-worker-0", restarts=2)
    before = world.phase
    world.set_phase("Running", "j-worker-1", restarts=1)
    world.reap()

    assert before == Phase.RUNNING
    assert seen(world)[-2:] == ["Terminating", "Terminated"]


@pytest.mark.parametrize(("max_retry", "restarts", "fails"), [(0, 3, True), (0, 2, False), (-1, 50, False)])
def test_a_task_has_three_restarts_unless_it_says_otherwise(max_retry: int, restarts: int, fails: bool) -> None:
    world = running(a_task(maxRetry=max_retry), policies=[policy("TerminateJob", "TaskFailed")])

    world.set_phase("Running", "j-worker-0", restarts=restarts)
    world.reap()

    assert (world.phase == Phase.TERMINATED) is fails


def test_an_exit_code_sets_off_the_action() -> None:
    world = running(policies=[policy("RestartJob", exitCode=3)])

    world.fail("j-worker-0", exit_code=4)
    before = world.phase
    world.fail("j-worker-1", exit_code=3)

    assert before == Phase.RUNNING
    assert world.phase == Phase.RESTARTING


def test_a_policy_of_the_task_overrides_that_of_the_job() -> None:
    task = a_task(replicas=2, policies=[policy("RestartJob", "PodFailed")])
    world = running(task, policies=[policy("AbortJob", "PodFailed")])

    world.fail("j-worker-0")

    assert world.phase == Phase.RESTARTING


def test_pods_from_before_a_restart_set_off_nothing() -> None:
    world = running(policies=[policy("RestartJob", "PodFailed", "PodEvicted")])
    world.fail("j-worker-0")

    world.reap()  # both pods of the old version are removed
    world.enqueue().run()

    assert world.job.status.retry_count == 1
    assert world.phase == Phase.RUNNING


def test_the_execution_of_an_action_is_told() -> None:
    world = running(policies=[policy("TerminateJob", "PodFailed")])

    world.fail("j-worker-0", exit_code=9)

    told = [event for event in world.events if event.reason == "ExecuteAction"]
    assert len(told) == 1
    assert "TerminateJob" in told[0].message
    assert world.job.status.state.reason == "TerminateJob"
    assert world.job.status.state.message == "PodFailed of pod j-worker-0 with exit code 9"


# -- timeouts ---------------------------------------------------------------------------------------------------------
def test_a_pod_that_stays_pending_too_long_sets_off_the_action() -> None:
    world = JobWorld(a_job(policies=[policy("AbortJob", "PodPending", timeout="60s")])).settle()
    world.enqueue()

    world.wait(59)
    before = world.phase
    world.wait(2)

    assert before == Phase.PENDING
    assert world.phase == Phase.ABORTED
    assert world.events[0].reason == "ExecuteAction"
    assert "AbortJob after 1m0s" in world.events[0].message


def test_a_pod_that_runs_in_time_sets_off_nothing() -> None:
    world = JobWorld(a_job(policies=[policy("AbortJob", "PodPending", timeout="60s")])).settle()
    world.enqueue().wait(30)

    world.run().wait(100)

    assert world.phase == Phase.RUNNING


def test_only_the_pod_that_is_still_pending_is_restarted() -> None:
    world = JobWorld(a_job(policies=[policy("RestartPod", "PodPending", timeout="60s")])).settle()
    world.enqueue().run("j-worker-0")
    before = {pod.name: pod.uid for pod in world.all(Pod)}

    world.wait(61)

    after = {pod.name: pod.uid for pod in world.all(Pod)}
    assert after["j-worker-0"] == before["j-worker-0"]
    assert after["j-worker-1"] != before["j-worker-1"]


def test_the_answer_to_a_failure_waits_for_its_timeout() -> None:
    world = running(minAvailable=1, policies=[policy("RestartJob", "PodFailed", timeout="10s")], graceful=False)
    world.fail("j-worker-0")

    world.wait(9)
    before = world.phase
    world.wait(2)

    assert before == Phase.RUNNING
    assert "Restarting" in seen(world)


def test_a_replacement_that_runs_in_time_avoids_the_answer_to_an_eviction() -> None:
    world = running(minAvailable=1, policies=[policy("RestartJob", "PodEvicted", timeout="10s")])
    world.evict("j-worker-0")
    noted = dict(world.job.status.controlled_resources)

    world.wait(5).run("j-worker-0").wait(20)

    assert "evicted-j-worker-0" in noted
    assert "evicted-j-worker-0" not in world.job.status.controlled_resources
    assert "Restarting" not in seen(world)


def test_an_eviction_whose_replacement_does_not_run_in_time_is_answered() -> None:
    world = running(minAvailable=1, policies=[policy("RestartJob", "PodEvicted", timeout="10s")], graceful=False)
    world.evict("j-worker-0")

    world.wait(11)

    assert "Restarting" in seen(world)
    assert world.job.status.retry_count == 1
    assert "evicted-j-worker-0" not in world.job.status.controlled_resources


def test_an_action_that_ran_takes_the_waiting_ones_with_it() -> None:
    rules = [policy("RestartJob", "PodFailed"), policy("AbortJob", "PodPending", timeout="60s")]
    world = JobWorld(a_job(policies=rules)).settle()
    world.enqueue().wait(30).fail("j-worker-0")

    world.wait(31)  # 61 seconds after the first pods, 31 after the job began anew

    assert "Aborting" not in seen(world)


def test_a_restarted_controller_waits_out_the_rest_of_a_timeout() -> None:
    world = JobWorld(a_job(policies=[policy("AbortJob", "PodPending", timeout="60s")])).settle()
    world.enqueue().wait(50)

    world.restart()
    world.wait(11)

    assert world.phase == Phase.ABORTED


# -- what was missed while nobody looked ----------------------------------------------------------------------------
@pytest.mark.parametrize("action", ["RestartJob", "AbortJob", "RestartPod", "RestartTask"])
def test_a_failure_is_answered_by_a_controller_that_was_down_when_it_happened(action: str) -> None:
    world = running(policies=[policy(action, "PodFailed")], graceful=False)
    status = {"phase": "Failed", "containerStatuses": [{"name": "main", "state": {"terminated": {"exitCode": 1}}}]}
    world.change(Pod, "j-worker-0", {"status": status})

    world.restart()
    world.settle()

    assert {"AbortJob": "Aborting"}.get(action, "Restarting") in seen(world)


@pytest.mark.parametrize("action", ["RestartJob", "AbortJob", "RestartPod", "RestartTask"])
def test_an_eviction_is_answered_by_a_controller_that_was_down_when_it_happened(action: str) -> None:
    world = running(policies=[policy(action, "PodEvicted")], graceful=False)
    world.delete(Pod, "j-worker-0")

    world.restart()
    world.settle()

    assert {"AbortJob": "Aborting"}.get(action, "Restarting") in seen(world)
    assert world.job.status.retry_count == (0 if action == "AbortJob" else 1)


def test_a_controller_that_starts_anew_finds_nothing_to_answer_where_nothing_happened() -> None:
    world = running(policies=[policy("RestartJob", "*")])
    before = world.writes

    world.restart()
    world.wait(10)

    assert world.writes == before


@pytest.mark.parametrize("action", tuple(Action))
def test_policies_of_a_finished_job_set_off_nothing(action: str) -> None:
    world = running(a_task(), policies=[policy(action, "PodEvicted")])
    world.succeed()

    world.evict("j-worker-0")
    world.wait(100)

    assert world.phase == Phase.COMPLETED
