"""What a job does about its pods: policies of jobs and tasks, exit codes, retries, time limits."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.stories.builders import Phases, a_job, a_task, policy
from volcano.api.core import Pod


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ("RestartJob", ["Pending", "Running", "Restarting"]),
        ("TerminateJob", ["Pending", "Running", "Terminating", "Terminated"]),
        ("AbortJob", ["Pending", "Running", "Aborting", "Aborted"]),
        ("CompleteJob", ["Pending", "Running", "Completing", "Completed"]),
    ],
)
def test_a_failed_pod_has_the_job_do_as_its_policy_says(host, action, path):
    @host
    async def story(system):
        phases = Phases(system)
        tasks = a_task("good", replicas=2), a_task("bad", lasts="2s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy(action, "PodFailed")]))
        await system.until(lambda: phases.names[: len(path)] == path, why=f"{path}, saw {phases.names}")

        if path[-1] in ("Terminated", "Aborted", "Completed"):
            end = dict(phases.seen)[path[-1]]
            assert (end.pending, end.running, end.terminating) == (0, 0, 0)


@pytest.mark.hosts("embedded")  # how long pods take to end is known on virtual time only
@pytest.mark.parametrize(("action", "phase"), [("TerminateJob", "Terminating"), ("AbortJob", "Aborting")])
def test_pods_that_are_being_ended_are_counted(host, action, phase):
    @host
    async def story(system):
        phases = Phases(system)
        tasks = a_task("good", replicas=2), a_task("bad", lasts="20s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy(action, "PodFailed")]))
        await system.until(lambda: phase in phases.names[:-1])

        assert dict(phases.seen)[phase].terminating > 0


@pytest.mark.parametrize("event", ["PodEvicted", "*"])
def test_a_deleted_pod_restarts_the_job(host, event):
    @host
    async def story(system):
        phases = Phases(system)
        await system.apply(a_job("demo", a_task(replicas=2), policies=[policy("RestartJob", event)]))
        await system.until(lambda: system.phase("demo") == "Running")
        await system.delete(Pod, "demo-worker-0")
        await system.until(lambda: phases.names[-3:] == ["Restarting", "Pending", "Running"], why=str(phases.names))

        assert system.job("demo").status.retry_count == 1
        assert system.job("demo").status.version >= 1


def test_without_a_policy_a_deleted_pod_comes_back_and_a_failed_one_does_not(host):
    @host
    async def story(system):
        tasks = a_task("stays", replicas=1), a_task("fails", lasts="1s", exits=1)
        await system.apply(a_job("demo", *tasks, minimum=1))
        await system.until(lambda: system.job("demo").status.failed == 1)
        old = system.get(Pod, "demo-stays-0")
        await system.delete(Pod, "demo-stays-0")
        await system.until(
            lambda: (new := system.get(Pod, "demo-stays-0")) and new.uid != old.uid and new.status.phase == "Running"
        )

        assert system.get(Pod, "demo-fails-0").status.phase == "Failed"
        assert system.phase("demo") == "Running"


def test_restart_pod_restarts_only_that_pod(host):
    @host
    async def story(system):
        phases = Phases(system)
        tasks = a_task("good", replicas=2), a_task("bad", lasts="3s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy("RestartPod", "PodFailed")], maxRetry=5))
        await system.until(lambda: system.phase("demo") == "Running")
        before = {pod.name: pod.uid for pod in system.pods("demo")}
        await system.until(lambda: phases.names.count("Running") == 2)

        after = {pod.name: pod.uid for pod in system.pods("demo")}
        assert before["demo-good-0"] == after["demo-good-0"]
        assert before["demo-bad-0"] != after["demo-bad-0"]


def test_a_completed_task_completes_the_job_and_succeeded_pods_are_kept(host):
    @host
    async def story(system):
        phases = Phases(system)
        chief = a_task("chief", lasts="2s", policies=[policy("CompleteJob", "TaskCompleted")])
        await system.apply(a_job("demo", chief, a_task("ps", replicas=2)))
        await system.until(lambda: system.phase("demo") == "Completed")

        assert phases.names[-2:] == ["Completing", "Completed"]
        assert [pod.name for pod in system.pods("demo")] == ["demo-chief-0"]
        assert system.job("demo").status.retry_count == 0


@pytest.mark.parametrize(
    ("task", "job"),
    [
        ({"exits": 3}, {"policies": [policy("RestartJob", exitCode=3)]}),
        (
            {"exits": 1, "policies": [policy("RestartJob", "PodFailed")]},
            {"policies": [policy("AbortJob", "PodFailed")]},
        ),
    ],
    ids=["an exit code has its own policy", "a task's policy wins over the job's"],
)
def test_the_policy_that_fits_best_decides(host, task, job):
    @host
    async def story(system):
        phases = Phases(system)
        await system.apply(a_job("demo", a_task(lasts="1s", **task), **job))
        await system.until(lambda: "Restarting" in phases.names, why=str(phases.names))

        assert "Aborting" not in phases.names


def test_the_last_retry_keeps_what_failed(host):
    @host
    async def story(system):
        tasks = a_task("good"), a_task("bad", lasts="1s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy("RestartJob", "PodFailed")], maxRetry=2))
        await system.until(lambda: system.phase("demo") == "Failed")
        await system.until(lambda: [pod.name for pod in system.pods("demo")] == ["demo-bad-0"])

        assert system.job("demo").status.retry_count == 2
        (pod,) = system.pods("demo")
        assert (pod.status.phase, pod.is_deleting) == ("Failed", False)


@pytest.mark.hosts("embedded")  # containers are restarted later and later, for minutes
def test_restarted_containers_fail_the_task(host):
    @host
    async def story(system):
        phases = Phases(system)
        looping = a_task("loop", lasts="1s", exits=1, restart="OnFailure", maxRetry=3)
        await system.apply(a_job("demo", looping, policies=[policy("TerminateJob", "TaskFailed")]))
        await system.until(lambda: phases.names[-2:] == ["Terminating", "Terminated"], within=timedelta(minutes=30))


def test_a_pod_pending_too_long_has_the_job_aborted(host):
    @host
    async def story(system):
        phases = Phases(system)
        late = policy("AbortJob", "PodPending", timeout="2s")
        tasks = a_task("fits"), a_task("never", cpu="1000")
        await system.apply(a_job("demo", *tasks, minimum=1, policies=[late]))
        await system.until(lambda: system.phase("demo") == "Aborted")

        assert phases.names[-2:] == ["Aborting", "Aborted"]
