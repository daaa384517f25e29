"""Volcano jobs live and die as they should: the whole system, virtual time, simulated nodes."""

from datetime import timedelta

import pytest

from volcano.api.batch import Job
from volcano.api.core import Event, Pod
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.testing.system import on_virtual_time

from .stories import MINUTE, Phases, a_command, a_job, a_queue, a_task, policy


def test_a_gang_runs_and_completes():
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        await system.apply(a_job("demo", a_task(replicas=3, lasts="30s")))
        await system.until(lambda: system.phase("demo") == "Completed")

        assert phases.names == ["Pending", "Running", "Completed"]
        status = system.job("demo").status
        assert (status.succeeded, status.pending, status.running, status.failed) == (3, 0, 0, 0)
        assert status.task_status_count["worker"].phase == {"Succeeded": 3}
        assert [pod.name for pod in system.pods("demo")] == ["demo-worker-0", "demo-worker-1", "demo-worker-2"]


def test_a_gang_that_does_not_fit_starts_nothing_and_says_why():
    @on_virtual_time(nodes=2, capacity={"cpu": "4"})
    async def story(system):
        await system.apply(a_job("demo", a_task(replicas=12)))
        await system.settle(MINUTE)

        assert system.phase("demo") == "Pending"
        assert all(not pod.spec.node_name for pod in system.pods("demo"))
        state = system.job("demo").status.state
        assert state.reason and state.message


@pytest.mark.parametrize(
    ("action", "path"),
    [
        ("RestartJob", ["Pending", "Running", "Restarting"]),
        ("TerminateJob", ["Pending", "Running", "Terminating", "Terminated"]),
        ("AbortJob", ["Pending", "Running", "Aborting", "Aborted"]),
        ("CompleteJob", ["Pending", "Running", "Completing", "Completed"]),
    ],
)
def test_a_failed_pod_has_the_job_do_as_its_policy_says(action, path):
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        tasks = a_task("good", replicas=2), a_task("bad", lasts="20s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy(action, "PodFailed")]))
        await system.until(lambda: phases.names[: len(path)] == path, why=f"{path}, saw {phases.names}")

        status = dict(phases.seen)[path[2]]
        assert status.terminating > 0 or action == "RestartJob"
        if path[-1] in ("Terminated", "Aborted", "Completed"):
            end = dict(phases.seen)[path[-1]]
            assert (end.pending, end.running, end.terminating) == (0, 0, 0)


@pytest.mark.parametrize("event", ["PodEvicted", "*"])
def test_a_deleted_pod_restarts_the_job(event):
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        await system.apply(a_job("demo", a_task(replicas=2), policies=[policy("RestartJob", event)]))
        await system.until(lambda: system.phase("demo") == "Running")
        await system.delete(Pod, "demo-worker-0")
        await system.until(lambda: phases.names[-3:] == ["Restarting", "Pending", "Running"], why=str(phases.names))

        assert system.job("demo").status.retry_count == 1
        assert system.job("demo").status.version >= 1


def test_without_a_policy_a_deleted_pod_comes_back_and_a_failed_one_does_not():
    @on_virtual_time
    async def story(system):
        tasks = a_task("stays", replicas=1), a_task("fails", lasts="10s", exits=1)
        await system.apply(a_job("demo", *tasks, minimum=1))
        await system.until(lambda: system.job("demo").status.failed == 1)
        old = system.get(Pod, "demo-stays-0")
        await system.delete(Pod, "demo-stays-0")
        await system.until(
            lambda: (new := system.get(Pod, "demo-stays-0")) and new.uid != old.uid and new.status.phase == "Running"
        )

        assert system.get(Pod, "demo-fails-0").status.phase == "Failed"
        assert system.phase("demo") == "Running"


def test_restart_pod_restarts_only_that_pod():
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        tasks = a_task("good", replicas=2), a_task("bad", lasts="20s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy("RestartPod", "PodFailed")], maxRetry=5))
        await system.until(lambda: system.phase("demo") == "Running")
        before = {pod.name: pod.uid for pod in system.pods("demo")}
        await system.until(lambda: phases.names.count("Running") == 2)

        after = {pod.name: pod.uid for pod in system.pods("demo")}
        assert before["demo-good-0"] == after["demo-good-0"]
        assert before["demo-bad-0"] != after["demo-bad-0"]


def test_a_completed_task_completes_the_job_and_succeeded_pods_are_kept():
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        chief = a_task("chief", lasts="10s", policies=[policy("CompleteJob", "TaskCompleted")])
        await system.apply(a_job("demo", chief, a_task("ps", replicas=2)))
        await system.until(lambda: system.phase("demo") == "Completed")

        assert phases.names[-2:] == ["Completing", "Completed"]
        assert [pod.name for pod in system.pods("demo")] == ["demo-chief-0"]
        assert system.job("demo").status.retry_count == 0


def test_an_exit_code_has_its_own_policy():
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        await system.apply(a_job("demo", a_task(lasts="5s", exits=3), policies=[policy("RestartJob", exitCode=3)]))
        await system.until(lambda: "Restarting" in phases.names)


def test_a_tasks_policy_wins_over_the_jobs():
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        bad = a_task("bad", lasts="5s", exits=1, policies=[policy("RestartJob", "PodFailed")])
        await system.apply(a_job("demo", bad, policies=[policy("AbortJob", "PodFailed")]))
        await system.until(lambda: "Restarting" in phases.names)

        assert "Aborting" not in phases.names


def test_the_last_retry_keeps_what_failed():
    @on_virtual_time
    async def story(system):
        tasks = a_task("good"), a_task("bad", lasts="5s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy("RestartJob", "PodFailed")], maxRetry=2))
        await system.until(lambda: system.phase("demo") == "Failed")
        await system.until(lambda: [pod.name for pod in system.pods("demo")] == ["demo-bad-0"])

        assert system.job("demo").status.retry_count == 2
        (pod,) = system.pods("demo")
        assert (pod.status.phase, pod.is_deleting) == ("Failed", False)


def test_restarted_containers_fail_the_task():
    @on_virtual_time
    async def story(system):
        phases = Phases(system)
        looping = a_task("loop", lasts="1s", exits=1, restart="OnFailure", maxRetry=3)
        await system.apply(a_job("demo", looping, policies=[policy("TerminateJob", "TaskFailed")]))
        await system.until(lambda: phases.names[-2:] == ["Terminating", "Terminated"], within=timedelta(minutes=30))


def test_a_pod_pending_too_long_has_the_job_aborted():
    @on_virtual_time(nodes=1, capacity={"cpu": "2"})
    async def story(system):
        phases = Phases(system)
        late = policy("AbortJob", "PodPending", timeout="60s")
        await system.apply(a_job("demo", a_task(replicas=3), minimum=2, policies=[late]))
        await system.until(lambda: system.phase("demo") == "Running")
        assert "Aborting" not in phases.names
        await system.until(lambda: system.phase("demo") == "Aborted", within=timedelta(minutes=5))


@pytest.mark.parametrize("fits", [True, False], ids=["running", "pending"])
def test_suspend_and_resume(fits):
    @on_virtual_time(nodes=1, capacity={"cpu": "4" if fits else "1"})
    async def story(system):
        await system.apply(a_job("demo", a_task(replicas=2)))
        await system.until(lambda: system.phase("demo") == ("Running" if fits else "Pending"))
        await system.settle()
        await system.apply(a_command(system.job("demo"), "AbortJob"))
        await system.until(lambda: system.phase("demo") == "Aborted" and not system.pods("demo"))
        if fits:
            await system.apply(a_command(system.job("demo"), "ResumeJob"))
            await system.until(lambda: system.phase("demo") == "Running")
            assert system.job("demo").status.retry_count == 1


def test_two_of_five_successes_are_enough():
    @on_virtual_time
    async def story(system):
        tasks = a_task("quick", replicas=2, lasts="10s"), a_task("slow", replicas=3)
        await system.apply(a_job("demo", *tasks, minimum=1, minSuccess=2))
        await system.until(lambda: system.phase("demo") == "Completed", within=MINUTE)


def test_a_task_waits_for_the_one_it_depends_on():
    @on_virtual_time
    async def story(system):
        second = a_task("second", dependsOn={"name": ["first"]})
        await system.apply(a_job("demo", a_task("first"), second, minimum=1))
        await system.until(lambda: system.get(Pod, "demo-second-0"))

        first = system.get(Pod, "demo-first-0")
        assert first.status.phase == "Running"
        assert first.metadata.creation_timestamp <= system.get(Pod, "demo-second-0").metadata.creation_timestamp


def test_a_job_scales_up_down_to_zero_and_back_and_its_hosts_follow():
    @on_virtual_time
    async def story(system):
        from volcano.api.core import ConfigMap

        async def hosts():
            name = Key("default", "demo-svc")
            return (await system.client.get(ConfigMap, name)).data

        await system.apply(a_job("demo", a_task(replicas=2), minimum=1, plugins={"svc": []}))
        await system.until(lambda: system.job("demo").status.running == 2)
        for replicas in (4, 1, 0, 2):
            task = {**a_task(replicas=replicas), "minAvailable": min(1, replicas)}
            spec = (await system.client.get_json(resource_type(Job), Key("default", "demo")))["spec"]
            spec["tasks"][0] |= {"replicas": replicas, "minAvailable": task["minAvailable"]}
            spec["minAvailable"] = min(1, replicas)
            await system.patch(Job, "demo", {"spec": spec})
            await system.until(lambda n=replicas: len(system.pods("demo")) == n, why=f"{replicas} pods")
            await system.settle()
            listed = [line for line in (await hosts()).get("worker.host", "").splitlines() if line]
            assert len(listed) == replicas


@pytest.mark.parametrize("phase", ["Pending", "Running", "Completed", "Aborted"])
def test_deleting_a_job_in_any_phase_removes_all_of_it(phase):
    @on_virtual_time(nodes=1, capacity={"cpu": "4"})
    async def story(system):
        lasts = "5s" if phase == "Completed" else ""
        await system.apply(a_job("demo", a_task(replicas=2, lasts=lasts, cpu="3" if phase == "Pending" else "1")))
        await system.until(lambda: system.phase("demo") in (phase, "Running"))
        if phase == "Aborted":
            await system.apply(a_command(system.job("demo"), "AbortJob"))
        await system.until(lambda: system.phase("demo") == phase)
        await system.delete(Job, "demo")
        await system.until(lambda: not system.get(Job, "demo") and not system.groups() and not system.pods("demo"))


def test_actions_are_told_in_events():
    @on_virtual_time
    async def story(system):
        tasks = a_task("good"), a_task("bad", lasts="5s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy("TerminateJob", "PodFailed")]))
        await system.until(lambda: system.phase("demo") == "Terminated")
        await system.settle()

        events = (await system.client.list(Event, "default")).items
        assert any(e.reason == "ExecuteAction" and "TerminateJob" in e.message for e in events)


def test_a_finished_job_goes_after_its_time_to_live():
    @on_virtual_time
    async def story(system):
        await system.apply(a_job("demo", a_task(lasts="5s"), ttlSecondsAfterFinished=600))
        await system.until(lambda: system.phase("demo") == "Completed")
        done = system.clock.now()
        await system.until(lambda: not system.get(Job, "demo"), within=timedelta(minutes=20))

        assert timedelta(minutes=9) < system.clock.now() - done < timedelta(minutes=11)


def test_a_generated_claim_is_named_in_the_spec():
    @on_virtual_time
    async def story(system):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        mine = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine"}, "spec": claim}
        await system.apply(mine)
        volumes = [{"mountPath": "/data", "volumeClaim": claim}, {"mountPath": "/given", "volumeClaimName": "mine"}]
        await system.apply(a_job("demo", volumes=volumes))
        await system.until(lambda: system.job("demo").spec.volumes[0].volume_claim_name)

        made, given = (volume.volume_claim_name for volume in system.job("demo").spec.volumes)
        assert made.startswith("demo-pvc-") and given == "mine"
        assert system.job("demo").status.controlled_resources.get(f"volume-pvc-{made}") == made


def test_the_podgroup_knows_what_the_gang_needs():
    @on_virtual_time
    async def story(system):
        await system.apply(a_job("demo", a_task("a", replicas=2, cpu="2"), a_task("b", cpu="500m")))
        await system.until(lambda: system.groups())

        (group,) = system.groups()
        assert group.name == f"demo-{system.job('demo').uid}"
        assert group.spec.min_member == 3
        assert group.spec.min_task_member == {"a": 2, "b": 1}
        assert group.spec.min_resources["cpu"] in ("4500m", "4.5")


def test_queues_open_close_and_cascade():
    @on_virtual_time
    async def story(system):
        def state(name):
            found = system.get(Queue, name)
            return found.status.state if found else ""

        def command(name, action):
            queue = system.get(Queue, name)
            reference = {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "name": name, "uid": queue.uid}
            return {"apiVersion": "bus.volcano.sh/v1alpha1", "kind": "Command", "metadata": {"generateName": "c-"},
                    "target": reference, "action": action}  # fmt: skip

        await system.apply(a_queue("q1"))
        await system.until(lambda: state("q1") == "Open")
        await system.apply(a_queue("q11", parent="q1"))
        await system.until(lambda: state("q11") == "Open")
        await system.apply(command("q1", "CloseQueue"))
        await system.until(lambda: state("q1") == "Closed" and state("q11") == "Closed")
        await system.apply(command("q11", "OpenQueue"))
        await system.settle(MINUTE)
        assert state("q11") == "Closed"
        await system.apply(command("q1", "OpenQueue"))
        await system.until(lambda: state("q1") == "Open" and state("q11") == "Open")


def test_a_plain_pod_gets_a_podgroup_and_runs():
    @on_virtual_time
    async def story(system):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"},
               "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
        await system.apply(pod)
        await system.until(lambda: (found := system.get(Pod, "plain")) and found.status.phase == "Running")

        (group,) = system.mirror.all(PodGroup)
        assert group.name == f"podgroup-{system.get(Pod, 'plain').uid}"


def test_a_pod_for_the_default_scheduler_runs_too():
    @on_virtual_time
    async def story(system):
        pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "plain"},
               "spec": {"containers": [{"name": "c", "image": "i"}]}}  # fmt: skip
        await system.apply(pod)
        await system.until(lambda: (found := system.get(Pod, "plain")) and found.status.phase == "Running")

        assert not system.mirror.all(PodGroup)


def test_ten_jobs_at_once_all_complete():
    @on_virtual_time
    async def story(system):
        for number in range(10):
            await system.apply(a_job(f"j{number}", a_task(replicas=5, lasts="20s")))
        await system.until(lambda: all(system.phase(f"j{n}") == "Completed" for n in range(10)))
