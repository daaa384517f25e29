"""The check list of controllers.md section 16, as far as it concerns jobs and can be told from decisions alone.

Error handling is in test_job_policies, scaling and controlled resources in test_job_sync and the plugins' tests.
"""

from __future__ import annotations

import pytest

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.scheduling import PodGroup
from volcano.controllers.job import JobController
from volcano.machinery.controller import PlanFailed
from volcano.testing.pure_jobs import JobWorld, a_job, a_task, policy


def test_on_the_last_retry_the_failed_pod_is_kept_and_the_running_one_is_not() -> None:
    world = JobWorld(
        a_job(a_task(replicas=2), maxRetry=2, policies=[policy("RestartJob", "PodFailed")]), graceful=True
    ).started()

    world.fail("j-worker-0").reap()
    world.enqueue().run()
    world.fail("j-worker-0").reap()

    assert world.phase == "Failed"
    assert world.job.status.retry_count == 2
    assert world.pods() == {"j-worker-0": "Failed"}
    assert world.dying() == set()
    assert world.job.status.state.reason == "MaxRetriesReached"


@pytest.mark.parametrize("max_retry", [1, 2, 3, 4])
def test_a_job_that_may_be_tried_n_times_is_restarted_once_less(max_retry: int) -> None:
    world = JobWorld(a_job(a_task(), maxRetry=max_retry, policies=[policy("RestartJob", "PodFailed")])).started()

    runs = 1
    while world.fail("j-worker-0").phase != "Failed":
        world.enqueue().run()
        runs += 1

    assert runs == max_retry
    assert world.job.status.retry_count == max_retry


def test_completing_a_job_keeps_the_pod_that_succeeded() -> None:
    tasks = (a_task("a", 1, policies=[policy("CompleteJob", "TaskCompleted")]), a_task("b", 1))
    world = JobWorld(a_job(*tasks), graceful=True).started()

    world.succeed("j-a-0").reap()

    assert world.phase == "Completed"
    assert world.job.status.retry_count == 0
    assert world.pods() == {"j-a-0": "Succeeded"}


def test_two_successes_of_five_complete_a_job_that_needs_two() -> None:
    world = JobWorld(a_job(a_task(replicas=5), minSuccess=2), graceful=True).started()

    world.succeed("j-worker-1", "j-worker-3")
    at_once = world.phase
    world.reap()

    assert at_once == "Completed"
    assert world.pods() == {"j-worker-1": "Succeeded", "j-worker-3": "Succeeded"}
    assert (world.job.status.succeeded, world.job.status.running, world.job.status.terminating) == (2, 0, 0)


@pytest.mark.parametrize("running", [True, False])
def test_a_suspended_job_has_no_pods_and_runs_again_when_resumed(running: bool) -> None:
    world = JobWorld(a_job(), graceful=True)
    world.settle()
    if running:
        world.enqueue().run()

    world.command("AbortJob").reap()
    suspended = (world.phase, world.pods(), world.group)
    world.command("ResumeJob")
    world.enqueue().run()

    assert suspended == ("Aborted", {}, None)
    assert world.phase == "Running"


@pytest.mark.parametrize("outcome", ["Pending", "Running", "Completed", "Failed", "Aborted", "Terminated"])
def test_everything_of_a_job_belongs_to_it_in_every_phase(outcome: str) -> None:
    """So that it all goes when the Job is deleted."""
    world = JobWorld(a_job(plugins={"svc": [], "env": []}, volumes=[{"mountPath": "/d", "volumeClaim": {}}]))
    world.settle()
    if outcome != "Pending":
        world.enqueue().run()
    if outcome in ("Completed", "Failed"):
        world.set_phase({"Completed": "Succeeded"}.get(outcome, outcome))
    if outcome in ("Aborted", "Terminated"):
        world.command({"Aborted": "AbortJob", "Terminated": "TerminateJob"}[outcome])

    owners = {
        f"{row.kind} {key}": body["metadata"].get("ownerReferences", [{}])[0].get("uid")
        for (row, key), body in world.objects.items()
        if row.kind not in ("Queue", "Job")
    }

    assert world.phase == outcome
    assert owners and set(owners.values()) == {"uid-j"}


def test_terminating_a_job_is_told() -> None:
    world = JobWorld(a_job()).started()

    world.command("TerminateJob")

    assert any(event.reason == "ExecuteAction" and "TerminateJob" in event.message for event in world.events)


def test_ten_jobs_at_once_do_not_disturb_each_other() -> None:
    jobs = [
        a_job(a_task(replicas=3), name=f"job{number}", policies=[policy("RestartJob", "PodFailed")])
        for number in range(10)
    ]
    world = JobWorld(*jobs, name="job0")
    world.settle()
    world.enqueue().run()

    world.fail("job3-worker-1")
    world.enqueue().run().wait()
    world.succeed().wait()

    phases = {job.name: job.status.state.phase for job in world.all(Job)}
    retries = {job.name: job.status.retry_count for job in world.all(Job)}
    assert set(phases.values()) == {"Completed"}
    assert [name for name, count in retries.items() if count] == ["job3"]
    assert len(world.all(Pod)) == 30
    assert world.all(PodGroup) == []


def test_what_watchers_see_of_a_restart() -> None:
    """Restarting with pods terminating; later Pending with room for the gang; Running with the gang up."""
    world = JobWorld(a_job(a_task(replicas=2), policies=[policy("RestartJob", "PodFailed")]), graceful=True).started()

    world.fail("j-worker-0").reap()
    world.enqueue().run()

    restarting = [s for s in world.statuses if s["state"]["phase"] == "Restarting"]
    pending = [s for s in world.statuses if s["state"]["phase"] == "Pending"]
    final = world.statuses[-1]
    assert any(status.get("terminating", 0) > 0 for status in restarting)
    assert any(2 - status.get("terminating", 0) >= status["minAvailable"] for status in pending)
    assert final["state"]["phase"] == "Running" and final["running"] >= 2


def test_a_pod_of_an_older_job_of_the_same_name_is_not_the_jobs_own() -> None:
    world = JobWorld(a_job(a_task(replicas=1), policies=[policy("RestartJob", "*")]))
    owner = {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "name": "j",
        "uid": "an-older-one",
        "controller": True,
    }
    notes = {"volcano.sh/job-name": "j", "volcano.sh/task-spec": "worker", "volcano.sh/job-version": "0"}
    metadata = {"name": "j-worker-0", "annotations": notes, "ownerReferences": [owner]}
    world.put({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {}, "status": {"phase": "Failed"}})
    world.settle()
    world.enqueue()

    waiting = world.job.status.state.phase, world.job.status.retry_count
    world.evict("j-worker-0")

    assert waiting == ("Pending", 0)
    assert world.job.status.retry_count == 0
    assert world.get(Pod, "j-worker-0").controller.uid == "uid-j"


# -- what cannot be written ----------------------------------------------------------------------------------------
def failing(kind: str, step: str, tries: int) -> PlanFailed:
    return PlanFailed(step, kind, "default/x", "exceeded quota", tries)


@pytest.mark.parametrize(
    ("kind", "step", "reason"),
    [
        ("Pod", "Create", "FailedCreate"),
        ("Pod", "Delete", "FailedDelete"),
        ("PodGroup", "Create", "PodGroupError"),
        ("PersistentVolumeClaim", "Create", "PVCError"),
        ("Secret", "EnsureSecret", "PluginError"),
    ],
)
def test_people_are_told_what_could_not_be_done(kind: str, step: str, reason: str) -> None:
    world = JobWorld(a_job()).started()

    (told,) = JobController().on_failure(world.job.key, world.mirror, failing(kind, step, 1))

    assert (told.reason, told.type) == (reason, "Warning")
    assert "exceeded quota" in told.message


def test_a_conflict_over_the_job_itself_is_told_to_nobody() -> None:
    world = JobWorld(a_job()).started()

    assert JobController().on_failure(world.job.key, world.mirror, failing("Job", "Patch", 3)) == ()


def test_a_job_for_which_a_write_fails_too_often_is_terminated() -> None:
    world = JobWorld(a_job()).started()
    controller = JobController(max_requeue=15)

    patient = controller.on_failure(world.job.key, world.mirror, failing("Pod", "Create", 15))
    world.apply(controller.on_failure(world.job.key, world.mirror, failing("Pod", "Create", 16)))
    world.settle()

    assert [type(step).__name__ for step in patient] == ["Record"]
    assert world.phase == "Terminated"
    assert any("TerminateJob" in event.message and "retry limit" in event.message for event in world.events)


def test_a_job_without_a_limit_is_tried_for_ever() -> None:
    world = JobWorld(a_job()).started()

    plan = JobController(max_requeue=-1).on_failure(world.job.key, world.mirror, failing("Pod", "Create", 10_000))

    assert [type(step).__name__ for step in plan] == ["Record"]
