"""Volcano jobs live and die as they should on a real API server, with components that have the chart's rights only."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.system.stories import Phases, a_command, a_job, a_queue, a_task, policy
from volcano.api.batch import Job
from volcano.api.core import ConfigMap, Event, Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type

from .real_system import RealSystem

SECOND = timedelta(seconds=1)


async def test_a_gang_runs_and_completes(system: RealSystem):
    phases = Phases(system)
    await system.apply(a_job("demo", a_task(replicas=3, lasts="2s")))
    await system.until(lambda: system.phase("demo") == "Completed")

    assert phases.names == ["Pending", "Running", "Completed"]
    status = system.job("demo").status
    assert (status.succeeded, status.pending, status.running, status.failed) == (3, 0, 0, 0)
    assert [pod.name for pod in system.pods("demo")] == ["demo-worker-0", "demo-worker-1", "demo-worker-2"]


async def test_a_gang_that_does_not_fit_starts_nothing_and_says_why(system: RealSystem):
    await system.apply(a_job("demo", a_task(replicas=12, cpu="30")))
    await system.until(lambda: system.job("demo").status.state.reason)

    assert system.phase("demo") == "Pending"
    assert all(not pod.spec.node_name for pod in system.pods("demo"))
    assert system.job("demo").status.state.message


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ("RestartJob", ["Pending", "Running", "Restarting"]),
        ("TerminateJob", ["Pending", "Running", "Terminating", "Terminated"]),
        ("AbortJob", ["Pending", "Running", "Aborting", "Aborted"]),
        ("CompleteJob", ["Pending", "Running", "Completing", "Completed"]),
    ],
)
async def test_a_failed_pod_has_the_job_do_as_its_policy_says(system: RealSystem, action: str, path: list[str]):
    phases = Phases(system)
    tasks = a_task("good", replicas=2), a_task("bad", lasts="2s", exits=1)
    await system.apply(a_job("demo", *tasks, policies=[policy(action, "PodFailed")]))
    await system.until(lambda: phases.names[: len(path)] == path, why=f"{path}, saw {phases.names}")


async def test_a_deleted_pod_restarts_the_job(system: RealSystem):
    phases = Phases(system)
    await system.apply(a_job("demo", a_task(replicas=2), policies=[policy("RestartJob", "PodEvicted")]))
    await system.until(lambda: system.phase("demo") == "Running")
    await system.delete(Pod, "demo-worker-0")
    await system.until(lambda: phases.names[-3:] == ["Restarting", "Pending", "Running"], why=str(phases.names))

    assert system.job("demo").status.retry_count == 1


async def test_a_job_is_suspended_and_resumed(system: RealSystem):
    await system.apply(a_job("demo", a_task(replicas=2)))
    await system.until(lambda: system.phase("demo") == "Running")
    await system.apply(a_command(system.job("demo"), "AbortJob"))
    await system.until(lambda: system.phase("demo") == "Aborted" and not system.pods("demo"))
    await system.apply(a_command(system.job("demo"), "ResumeJob"))

    await system.until(lambda: system.phase("demo") == "Running" and len(system.pods("demo")) == 2)


async def test_a_finished_job_goes_after_its_time_to_live(system: RealSystem):
    await system.apply(a_job("demo", a_task(lasts="1s"), ttlSecondsAfterFinished=3))
    await system.until(lambda: system.phase("demo") == "Completed")

    await system.until(lambda: not system.get(Job, "demo") and not system.pods("demo"))


async def test_a_job_scales_and_its_hosts_follow(system: RealSystem):
    await system.apply(a_job("demo", a_task(replicas=2), minimum=1, plugins={"svc": []}))
    await system.until(lambda: system.job("demo").status.running == 2)
    spec = (await system.client.get_json(resource_type(Job), Key(system.namespace, "demo")))["spec"]
    spec["tasks"][0]["replicas"] = 4
    await system.patch(Job, "demo", {"spec": spec})
    await system.until(lambda: system.job("demo").status.running == 4)

    hosts = await system.client.get(ConfigMap, Key(system.namespace, "demo-svc"))
    assert len(hosts.data["worker.host"].split()) == 4


async def test_deleting_a_job_removes_all_of_it(system: RealSystem):
    await system.apply(a_job("demo", a_task(replicas=2), plugins={"svc": [], "ssh": [], "env": []}))
    await system.until(lambda: system.phase("demo") == "Running")
    await system.delete(Job, "demo")

    await system.until(lambda: not system.pods("demo") and not system.groups())


async def test_a_generated_claim_is_named_in_the_spec(system: RealSystem):
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
    await system.apply(a_job("demo", volumes=[{"mountPath": "/data", "volumeClaim": claim}]))
    await system.until(lambda: system.job("demo").spec.volumes[0].volume_claim_name)

    assert system.job("demo").spec.volumes[0].volume_claim_name.startswith("demo-pvc-")


async def test_queues_open_close_and_cascade(system: RealSystem):
    name = f"q-{system.namespace}"

    def state(queue: str) -> str:
        found = system.get(Queue, queue)
        return found.status.state if found else ""

    def command(queue: str, action: str) -> dict:
        target = system.get(Queue, queue)
        reference = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": queue, "uid": target.uid}
        return {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"generateName": "c-"},
                "target": reference, "action": action}  # fmt: skip

    await system.apply(a_queue(name))
    await system.until(lambda: state(name) == "Open")
    await system.apply(a_queue(f"{name}-child", parent=name))
    await system.until(lambda: state(f"{name}-child") == "Open")
    await system.apply(command(name, "CloseQueue"))
    await system.until(lambda: state(name) == "Closed" and state(f"{name}-child") == "Closed")
    await system.apply(command(name, "OpenQueue"))
    await system.until(lambda: state(name) == "Open" and state(f"{name}-child") == "Open")

    for queue in (f"{name}-child", name):
        await system.delete(Queue, queue)


async def test_a_plain_pod_gets_a_podgroup_and_runs(system: RealSystem):
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"},
           "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
    await system.apply(pod)
    await system.until(lambda: (found := system.get(Pod, "plain")) and found.status.phase == "Running")

    await system.until(lambda: system.mirror.all(PodGroup))
    (group,) = system.mirror.all(PodGroup)
    assert group.name == f"podgroup-{system.get(Pod, 'plain').uid}"


@pytest.mark.parametrize("kind", ["Deployment", "StatefulSet", "Job"])
async def test_pods_of_kubernetes_own_workloads_are_gangs_too(system: RealSystem, kind: str):
    labels = {"app": "w"}
    pod = {
        "metadata": {"labels": labels},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]},
    }
    spec = {"selector": {"matchLabels": labels}, "replicas": 2, "template": pod}
    if kind == "StatefulSet":
        spec |= {"podManagementPolicy": "Parallel", "serviceName": "w"}
    if kind == "Job":
        pod["spec"]["restartPolicy"] = "Never"
        spec = {"parallelism": 2, "completions": 2, "template": pod}
    annotations = {"scheduling.volcano.sh/group-min-member": "2"}
    version = "batch/v1" if kind == "Job" else "apps/v1"
    await system.apply(
        {"apiVersion": version, "kind": kind, "metadata": {"name": "w", "annotations": annotations}, "spec": spec}
    )

    await system.until(lambda: [p.status.phase for p in system.mirror.all(Pod)] == ["Running", "Running"])

    groups = {group.name for group in system.mirror.all(PodGroup)}
    assert len(groups) == 1 or kind == "Deployment"


async def test_what_happens_is_told_in_events(system: RealSystem):
    tasks = a_task("good"), a_task("bad", lasts="1s", exits=1)
    await system.apply(a_job("demo", *tasks, policies=[policy("TerminateJob", "PodFailed")]))
    await system.until(lambda: system.phase("demo") == "Terminated")
    end = system.clock.now() + 20 * SECOND
    while True:
        events = (await system.client.list(Event, system.namespace)).items
        if any(e.reason == "ExecuteAction" for e in events) and any(e.reason == "Scheduled" for e in events):
            break
        assert system.clock.now() < end, [(e.reason, e.message) for e in events]
        await system.clock.sleep(SECOND / 5)


async def test_the_definitions_refuse_what_makes_no_sense(system: RealSystem):
    bad = a_job("demo", a_task(replicas=2))
    bad["spec"]["minAvailable"] = "many"

    with pytest.raises(ApiError) as refusal:
        await system.apply(bad)

    assert refusal.value.status_code == 422
