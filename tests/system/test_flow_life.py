"""Flows and CronJobs on the whole system, in virtual time: the examples as they are, and a flow of a hundred steps."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

from volcano.api.batch import CronJob, Job
from volcano.api.core import Pod
from volcano.api.flow import JobFlow
from volcano.api.manifests import load_documents
from volcano.api.meta import Key
from volcano.testing.system import VirtualSystem, on_virtual_time

EXAMPLES = Path(__file__).parents[2] / "examples"


async def flow_phase(system: VirtualSystem, name: str) -> str:
    return (await system.client.get(JobFlow, Key("default", name))).status.state.phase


async def until_flow(system: VirtualSystem, name: str, phase: str, within: timedelta = timedelta(minutes=10)) -> None:
    end = system.clock.now() + within
    while (found := await flow_phase(system, name)) != phase:
        assert system.clock.now() < end, f"{name} is {found}\n{system.summary()}"
        await system.clock.sleep(timedelta(seconds=1))


def test_the_diamond_runs_in_order():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(EXAMPLES / "jobflow-diamond.yaml")
        await until_flow(system, "diamond", "Succeed")

        made = {job.name: job.metadata.creation_timestamp for job in system.mirror.all(Job)}
        assert set(made) == {"diamond-fetch", "diamond-count", "diamond-sort", "diamond-report"}
        assert made["diamond-fetch"] < made["diamond-count"] == made["diamond-sort"] < made["diamond-report"]


def test_the_patched_step_runs_as_patched():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(EXAMPLES / "jobflow-patch.yaml")
        await until_flow(system, "patched", "Succeed")

        job = system.job("patched-greet")
        assert job.spec.tasks[0].replicas == 3
        assert job.spec.min_available == 3
        assert job.spec.tasks[0].template["spec"]["containers"][0]["env"] == [{"name": "WORD", "value": "good evening"}]
        assert len(system.pods("patched-greet")) == 3


def test_the_nightly_cronjob_runs_at_half_past_two_in_berlin():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        await system.apply(EXAMPLES / "cronjob-nightly.yaml")
        await system.clock.sleep(timedelta(hours=1, minutes=31))
        (job,) = system.mirror.all(Job)
        assert job.annotations["volcano.sh/cronjob-scheduled-timestamp"] == "2026-01-01T02:30:00+01:00"

        await system.until(lambda: system.phase(job.name) == "Completed", within=timedelta(minutes=30))
        await system.settle()
        cron = await system.client.get(CronJob, Key("default", "nightly"))
        assert cron.status.active == []
        assert cron.status.last_successful_time is not None


def test_a_minutely_cronjob_keeps_three_jobs_and_all_others_are_gone():
    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        (manifest,) = load_documents((EXAMPLES / "cronjob-nightly.yaml").read_bytes())
        manifest["spec"] |= {"schedule": "* * * * *"}
        template = manifest["spec"]["jobTemplate"]["spec"]["tasks"][0]["template"]
        template["metadata"]["annotations"]["simulation.volcano.sh/duration"] = "10s"
        await system.apply(manifest)
        await system.clock.sleep(timedelta(minutes=6, seconds=30))

        jobs = system.mirror.all(Job)
        stamps = [job.annotations["volcano.sh/cronjob-scheduled-timestamp"] for job in jobs]
        assert stamps == [f"2026-01-01T01:0{minute}:00+01:00" for minute in (4, 5, 6)]
        assert len(system.mirror.all(Pod)) == 6


def test_a_flow_of_a_hundred_steps_succeeds():
    def template(name: str) -> dict:
        annotations = {"simulation.volcano.sh/duration": "3s"}
        container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "100m"}}}
        pod = {"metadata": {"annotations": annotations}, "spec": {"restartPolicy": "Never", "containers": [container]}}
        return {
            "apiVersion": "flow.volcano.sh/v1alpha1",
            "kind": "JobTemplate",
            "metadata": {"name": name},
            "spec": {
                "schedulerName": "volcano",
                "minAvailable": 1,
                "tasks": [{"name": "t", "replicas": 1, "template": pod}],
            },
        }

    @on_virtual_time
    async def story(system: VirtualSystem) -> None:
        for index in range(100):
            await system.apply(template(f"s{index}"))
        flows = [
            {
                "name": f"s{index}",
                **(
                    {"dependsOn": {"targets": sorted({f"s{index // 2}", f"s{index - 1 - index % 7}"} - {f"s{index}"})}}
                    if index > 7
                    else {}
                ),
            }
            for index in range(100)
        ]
        await system.apply(
            {
                "apiVersion": "flow.volcano.sh/v1alpha1",
                "kind": "JobFlow",
                "metadata": {"name": "long"},
                "spec": {"flows": flows},
            }
        )
        await until_flow(system, "long", "Succeed", within=timedelta(hours=1))

        assert len(system.mirror.all(Job)) == 100
