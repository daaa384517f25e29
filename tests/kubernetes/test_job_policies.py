"""What a job does about its pods, on a real API server: policies, retries, dependencies, how much success is enough."""

from __future__ import annotations

import pytest

from tests.running_server import Client
from tests.system.stories import Phases, a_command, a_job, a_task, policy
from volcano.api.batch import Job
from volcano.api.core import Pod

from .components import wait_for
from .real_system import RealSystem


async def test_without_a_policy_a_deleted_pod_comes_back_and_a_failed_one_does_not(system: RealSystem):
    tasks = a_task("stays", replicas=1), a_task("fails", lasts="1s", exits=1)
    await system.apply(a_job("demo", *tasks, minimum=1))
    await system.until(lambda: system.job("demo").status.failed == 1)
    old = system.get(Pod, "demo-stays-0")
    assert old is not None
    await system.delete(Pod, "demo-stays-0")
    await system.until(
        lambda: (new := system.get(Pod, "demo-stays-0")) and new.uid != old.uid and new.status.phase == "Running"
    )

    failed = system.get(Pod, "demo-fails-0")
    assert failed is not None and failed.status.phase == "Failed"
    assert system.phase("demo") == "Running"


async def test_restart_pod_restarts_only_that_pod(system: RealSystem):
    phases = Phases(system)
    tasks = a_task("good", replicas=2), a_task("bad", lasts="3s", exits=1)
    await system.apply(a_job("demo", *tasks, policies=[policy("RestartPod", "PodFailed")], maxRetry=5))
    await system.until(lambda: system.phase("demo") == "Running")
    before = {pod.name: pod.uid for pod in system.pods("demo")}
    await system.until(lambda: phases.names.count("Running") == 2)

    after = {pod.name: pod.uid for pod in system.pods("demo")}
    assert before["demo-good-0"] == after["demo-good-0"]
    assert before["demo-bad-0"] != after["demo-bad-0"]


async def test_a_completed_task_completes_the_job_and_succeeded_pods_are_kept(system: RealSystem):
    phases = Phases(system)
    chief = a_task("chief", lasts="2s", policies=[policy("CompleteJob", "TaskCompleted")])
    await system.apply(a_job("demo", chief, a_task("ps", replicas=2)))
    await system.until(lambda: system.phase("demo") == "Completed")

    assert phases.names[-2:] == ["Completing", "Completed"]
    assert [pod.name for pod in system.pods("demo")] == ["demo-chief-0"]


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
async def test_the_policy_that_fits_best_decides(system: RealSystem, task: dict, job: dict):
    phases = Phases(system)
    await system.apply(a_job("demo", a_task(lasts="1s", **task), **job))
    await system.until(lambda: "Restarting" in phases.names, why=str(phases.names))

    assert "Aborting" not in phases.names


async def test_the_last_retry_keeps_what_failed(system: RealSystem):
    tasks = a_task("good"), a_task("bad", lasts="1s", exits=1)
    await system.apply(a_job("demo", *tasks, policies=[policy("RestartJob", "PodFailed")], maxRetry=2))
    await system.until(lambda: system.phase("demo") == "Failed")
    await system.until(lambda: [pod.name for pod in system.pods("demo")] == ["demo-bad-0"])

    assert system.job("demo").status.retry_count == 2


async def test_a_pod_pending_too_long_has_the_job_aborted(system: RealSystem):
    late = policy("AbortJob", "PodPending", timeout="2s")
    tasks = a_task("fits"), a_task("never", cpu="1000")
    await system.apply(a_job("demo", *tasks, minimum=1, policies=[late]))

    await system.until(lambda: system.phase("demo") == "Aborted")


async def test_two_of_five_successes_are_enough(system: RealSystem):
    tasks = a_task("quick", replicas=2, lasts="1s"), a_task("slow", replicas=3)
    await system.apply(a_job("demo", *tasks, minimum=1, minSuccess=2))

    await system.until(lambda: system.phase("demo") == "Completed")


async def test_a_task_waits_for_the_one_it_depends_on(system: RealSystem):
    second = a_task("second", dependsOn={"name": ["first"]})
    await system.apply(a_job("demo", a_task("first", minAvailable=1), second, minimum=1))
    await system.until(lambda: system.get(Pod, "demo-second-0"))

    first = system.get(Pod, "demo-first-0")
    assert first is not None and first.status.phase == "Running"


@pytest.mark.parametrize("phase", ["Pending", "Completed", "Aborted"])
async def test_deleting_a_job_in_any_phase_removes_all_of_it(system: RealSystem, phase: str):
    lasts = "1s" if phase == "Completed" else ""
    await system.apply(a_job("demo", a_task(replicas=2, lasts=lasts, cpu="1000" if phase == "Pending" else "1")))
    await system.until(lambda: system.phase("demo") in (phase, "Running"))
    if phase == "Aborted":
        await system.apply(a_command(system.job("demo"), "AbortJob"))
    await system.until(lambda: system.phase("demo") == phase)
    await system.delete(Job, "demo")

    await system.until(lambda: not system.get(Job, "demo") and not system.groups() and not system.pods("demo"))


async def test_ten_jobs_at_once_all_complete(system: RealSystem):
    names = [f"job-{n}" for n in range(10)]
    for name in names:
        await system.apply(a_job(name, a_task(replicas=3, lasts="1s")))

    await system.until(lambda: all(system.phase(name) == "Completed" for name in names))


def test_hypernodes_count_their_nodes(running: object, api: Client):
    path = "/apis/topology.volcano.sh/v1alpha1/hypernodes"
    members = {
        "exact": [{"type": "Node", "selector": {"exactMatch": {"name": f"main-{n}"}}} for n in range(3)],
        "regex": [{"type": "Node", "selector": {"regexMatch": {"pattern": "^main-[0-4]$"}}}],
        "label": [{"type": "Node", "selector": {"labelMatch": {"matchLabels": {"pool": "main"}}}}],
    }
    for name, selected in members.items():
        assert (
            api.create(
                path,
                {
                    "apiVersion": "topology.volcano.sh/v1alpha1",
                    "kind": "HyperNode",
                    "metadata": {"name": name},
                    "spec": {"tier": 1, "members": selected},
                },
            ).status
            == 201
        )

    def counts() -> dict[str, int]:
        return {
            body["metadata"]["name"]: body.get("status", {}).get("nodeCount", 0) for body in api.get(path).body["items"]
        }

    labelled = len(api.get("/api/v1/nodes", labelSelector="pool=main").body["items"])
    wait_for(lambda: counts() == {"exact": 3, "regex": 5, "label": labelled}, why=lambda: str(counts()))
    for name in members:
        api.delete(f"{path}/{name}")
