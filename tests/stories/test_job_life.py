"""A job from its creation to its end: phases, counts, what belongs to it, and what is removed with it."""

from __future__ import annotations

from datetime import timedelta

import pytest

from tests.stories.builders import MINUTE, Phases, a_command, a_job, a_task, policy
from volcano.api.batch import Job
from volcano.api.core import ConfigMap, Event, Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheme import resource_type

SECOND = timedelta(seconds=1)


def test_a_gang_runs_and_completes(host):
    @host
    async def story(system):
        phases = Phases(system)
        await system.apply(a_job("demo", a_task(replicas=3, lasts="2s")))
        await system.until(lambda: system.phase("demo") == "Completed")

        assert phases.names == ["Pending", "Running", "Completed"]
        status = system.job("demo").status
        assert (status.succeeded, status.pending, status.running, status.failed) == (3, 0, 0, 0)
        assert status.task_status_count["worker"].phase == {"Succeeded": 3}
        assert [pod.name for pod in system.pods("demo")] == ["demo-worker-0", "demo-worker-1", "demo-worker-2"]


def test_a_gang_that_does_not_fit_starts_nothing_and_says_why(host):
    @host
    async def story(system):
        await system.apply(a_job("demo", a_task(), a_task("large", cpu="1000")))
        await system.until(lambda: system.job("demo").status.state.reason)

        assert system.phase("demo") == "Pending"
        assert all(not pod.spec.node_name for pod in system.pods("demo"))
        assert system.job("demo").status.state.message


@pytest.mark.hosts("embedded")
def test_a_gang_that_does_not_fit_is_still_whole_a_minute_later(host):
    @host.with_nodes(2, cpu="4")
    async def story(system):
        await system.apply(a_job("demo", a_task(replicas=12)))
        await system.settle(MINUTE)

        assert system.phase("demo") == "Pending"
        assert all(not pod.spec.node_name for pod in system.pods("demo"))


def test_a_running_job_is_suspended_and_resumed(host):
    @host
    async def story(system):
        await system.apply(a_job("demo", a_task(replicas=2)))
        await system.until(lambda: system.phase("demo") == "Running")
        await system.apply(a_command(system.job("demo"), "AbortJob"))
        await system.until(lambda: system.phase("demo") == "Aborted" and not system.pods("demo"))
        await system.apply(a_command(system.job("demo"), "ResumeJob"))
        await system.until(lambda: system.phase("demo") == "Running" and len(system.pods("demo")) == 2)

        assert system.job("demo").status.retry_count == 1


def test_a_pending_job_is_suspended(host):
    @host
    async def story(system):
        await system.apply(a_job("demo", a_task(replicas=2, cpu="1000")))
        await system.until(lambda: system.phase("demo") == "Pending")
        await system.apply(a_command(system.job("demo"), "AbortJob"))
        await system.until(lambda: system.phase("demo") == "Aborted" and not system.pods("demo"))


def test_two_of_five_successes_are_enough(host):
    @host
    async def story(system):
        tasks = a_task("quick", replicas=2, lasts="1s"), a_task("slow", replicas=3)
        await system.apply(a_job("demo", *tasks, minimum=1, minSuccess=2))
        await system.until(lambda: system.phase("demo") == "Completed", within=MINUTE)


def test_a_task_waits_for_the_one_it_depends_on(host):
    @host
    async def story(system):
        second = a_task("second", dependsOn={"name": ["first"]})
        await system.apply(a_job("demo", a_task("first", minAvailable=1), second, minimum=1))
        await system.until(lambda: system.get(Pod, "demo-second-0"))

        first = system.get(Pod, "demo-first-0")
        assert first.status.phase == "Running"
        assert first.metadata.creation_timestamp <= system.get(Pod, "demo-second-0").metadata.creation_timestamp


def test_a_job_scales_up_down_to_zero_and_back_and_its_hosts_follow(host):
    @host
    async def story(system):
        key = Key(system.namespace, "demo")

        async def hosts():
            data = (await system.client.get(ConfigMap, Key(system.namespace, "demo-svc"))).data
            return [line for line in data.get("worker.host", "").splitlines() if line]

        await system.apply(a_job("demo", a_task(replicas=2), minimum=1, plugins={"svc": []}))
        await system.until(lambda: system.job("demo").status.running == 2)
        for replicas in (4, 1, 0, 2):
            spec = (await system.client.get_json(resource_type(Job), key))["spec"]
            spec["tasks"][0] |= {"replicas": replicas, "minAvailable": min(1, replicas)}
            spec["minAvailable"] = min(1, replicas)
            await system.patch(Job, "demo", {"spec": spec})
            await system.until(lambda n=replicas: len(system.pods("demo")) == n, why=f"{replicas} pods")
            await system.until_answer(hosts, lambda listed, n=replicas: len(listed) == n)


@pytest.mark.parametrize("phase", ["Pending", "Running", "Completed", "Aborted"])
def test_deleting_a_job_in_any_phase_removes_all_of_it(host, phase):
    @host
    async def story(system):
        lasts = "1s" if phase == "Completed" else ""
        task = a_task(replicas=2, lasts=lasts, cpu="1000" if phase == "Pending" else "1")
        await system.apply(a_job("demo", task, plugins={"svc": [], "ssh": [], "env": []}))
        await system.until(lambda: system.phase("demo") in (phase, "Running"))
        if phase == "Aborted":
            await system.apply(a_command(system.job("demo"), "AbortJob"))
        await system.until(lambda: system.phase("demo") == phase)
        await system.delete(Job, "demo")
        await system.until(lambda: not system.get(Job, "demo") and not system.groups() and not system.pods("demo"))


def test_a_finished_job_goes_after_its_time_to_live(host):
    @host
    async def story(system):
        await system.apply(a_job("demo", a_task(lasts="1s"), ttlSecondsAfterFinished=3))
        await system.until(lambda: system.phase("demo") == "Completed")
        await system.until(lambda: not system.get(Job, "demo") and not system.pods("demo"))


@pytest.mark.hosts("embedded")
def test_a_finished_job_goes_no_earlier_than_its_time_to_live(host):
    @host
    async def story(system):
        await system.apply(a_job("demo", a_task(lasts="5s"), ttlSecondsAfterFinished=600))
        await system.until(lambda: system.phase("demo") == "Completed")
        done = system.clock.now()
        await system.until(lambda: not system.get(Job, "demo"), within=timedelta(minutes=20))

        assert timedelta(minutes=9) < system.clock.now() - done < timedelta(minutes=11)


def test_a_generated_claim_is_named_in_the_spec(host):
    @host
    async def story(system):
        claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}
        mine = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "mine"}, "spec": claim}
        await system.apply(mine)
        volumes = [{"mountPath": "/data", "volumeClaim": claim}, {"mountPath": "/given", "volumeClaimName": "mine"}]
        await system.apply(a_job("demo", volumes=volumes))
        await system.until(lambda: system.job("demo").spec.volumes[0].volume_claim_name)

        made, given = (volume.volume_claim_name for volume in system.job("demo").spec.volumes)
        assert made.startswith("demo-pvc-") and given == "mine"
        await system.until(lambda: system.job("demo").status.controlled_resources.get(f"volume-pvc-{made}") == made)


def test_the_podgroup_knows_what_the_gang_needs(host):
    @host
    async def story(system):
        await system.apply(a_job("demo", a_task("a", replicas=2, cpu="2"), a_task("b", cpu="500m")))
        await system.until(lambda: system.groups())

        (group,) = system.groups()
        assert group.name == f"demo-{system.job('demo').uid}"
        assert group.spec.min_member == 3
        assert group.spec.min_task_member == {"a": 2, "b": 1}
        assert group.spec.min_resources["cpu"] in ("4500m", "4.5")


def test_events_record_placements_and_actions(host):
    @host
    async def story(system):
        tasks = a_task("good"), a_task("bad", lasts="1s", exits=1)
        await system.apply(a_job("demo", *tasks, policies=[policy("TerminateJob", "PodFailed")]))
        await system.until(lambda: system.phase("demo") == "Terminated")

        async def events():
            return (await system.client.list(Event, system.namespace)).items

        def has_both(found):
            acted = any(e.reason == "ExecuteAction" and "TerminateJob" in e.message for e in found)
            return acted and any(e.reason == "Scheduled" for e in found)

        await system.until_answer(events, has_both)


def test_ten_jobs_at_once_all_complete(host):
    @host
    async def story(system):
        names = [f"job-{n}" for n in range(10)]
        for name in names:
            await system.apply(a_job(name, a_task(replicas=5, lasts="1s", cpu="500m")))
        await system.until(lambda: all(system.phase(name) == "Completed" for name in names))


@pytest.mark.hosts("kubernetes")  # the embedded system has admission in front, which refuses it first
def test_the_definitions_refuse_a_number_that_is_a_word(host):
    @host
    async def story(system):
        bad = a_job("demo", a_task(replicas=2))
        bad["spec"]["minAvailable"] = "many"

        with pytest.raises(ApiError) as refusal:
            await system.apply(bad)

        assert refusal.value.status_code == 422
