"""What introductions of Volcano rely on beside their manifests: guarantees without deserved, GPUs by request, variables.

The table in test_introductions.py lists what is tried where.
"""

from __future__ import annotations

import pytest

from tests.stories.builders import a_job, a_queue, a_task
from tests.stories.hosts import GPU, EmbeddedHost
from volcano.api.batch import CronJob, Job
from volcano.api.core import Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheduling import Queue
from volcano.api.scheme import find_resource_type, resource_type

pytestmark = pytest.mark.usefixtures("admission")

CONFIGURATION = """
actions: "enqueue, allocate, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: {plugin}
  - name: nodeorder
"""
MULTI_TENANT = {"weight": 1, "capability": {"cpu": "8"}, "reclaimable": True, "priority": 10}
"""The usual queue of a team, as printed; its guarantee is added by each story."""


def guaranteeing(name: str, cpu: str, **spec) -> dict:
    return a_queue(name, **MULTI_TENANT, guarantee={"resource": {"cpu": cpu}}, **spec)


def test_a_guarantee_needs_no_deserved_and_a_smaller_deserved_is_refused(host) -> None:
    @host
    async def story(system):
        name = f"team-{system.namespace}"
        await system.apply(guaranteeing(name, "4"))
        await system.until(lambda: system.get(Queue, name).status.state == "Open")

        with pytest.raises(ApiError, match="deserved") as refused:
            await system.apply(guaranteeing(f"{name}-less", "4", deserved={"cpu": "2"}))

        assert "guarantee" in refused.value.message
        await system.delete(Queue, name)


@pytest.mark.parametrize("plugin", ["capacity", "proportion"])
def test_a_guarantee_without_deserved_stays_with_its_queue_under_reclaim(host, configure, plugin: str) -> None:
    @(host.with_nodes(2, cpu="4") if isinstance(host, EmbeddedHost) else host)
    async def story(system):
        scheduler = await configure(system, CONFIGURATION.format(plugin=plugin), pool="told")
        keeper, claimant = f"keeper-{system.namespace}", f"claimant-{system.namespace}"
        await system.apply(guaranteeing(keeper, "4"))
        await system.apply(
            a_queue(claimant, weight=7, priority=20, reclaimable=True, deserved={"cpu": "8", "memory": "8Gi"})
        )
        for queue in (keeper, claimant):
            await system.until(lambda queue=queue: system.get(Queue, queue).status.state == "Open")
        await system.apply(long_job("holds", 8, keeper, scheduler, minimum=1))
        await system.until(lambda: system.job("holds").status.running == 8, why="the keeper has all nodes")

        await system.apply(long_job("claims", 4, claimant, scheduler))
        await system.until(lambda: system.phase("claims") == "Running", why="the claimant takes the other half")
        await system.apply(long_job("claims-more", 1, claimant, scheduler))
        await system.until(lambda: system.job("claims-more").status.state.reason, why="a cycle has decided about it")

        assert system.phase("claims-more") == "Pending"
        assert system.job("holds").status.running == 4
        await remove(system, ["claims-more", "claims", "holds"], [keeper, claimant])


def long_job(name: str, count: int, queue: str, scheduler: str, *, minimum: int | None = None) -> dict:
    return a_job(
        name, a_task(replicas=count, lasts="3600s"), minimum=minimum, queue=queue, schedulerName=scheduler
    )  # fmt: skip


async def remove(system, jobs: list[str], queues: list[str]) -> None:
    for job in jobs:
        await system.delete(Job, job)
        await system.until(lambda job=job: system.get(Job, job) is None)
    for queue in queues:
        await system.delete(Queue, queue)


def requesting(count: str) -> dict:
    """A task that asks for GPUs in requests only."""
    task = a_task(lasts="1s")
    task["template"]["spec"]["containers"][0]["resources"]["requests"][GPU] = count
    return task


def limit_of(task: dict) -> str:
    return task["template"]["spec"]["containers"][0]["resources"]["limits"][GPU]


def test_gpus_of_a_job_that_are_only_requested_become_its_limit(host) -> None:
    @host
    async def story(system):
        (made,) = await system.apply(a_job("gpus", requesting("2")))

        assert limit_of(made["spec"]["tasks"][0]) == "2"
        await system.until(lambda: system.phase("gpus") == "Completed")


def test_gpus_of_cron_jobs_and_templates_that_are_only_requested_become_the_limit(host) -> None:
    @host
    async def story(system):
        spec = a_job("any", requesting("3"))["spec"]
        cron = {
            "apiVersion": "batch.volcano.sh/v1alpha1", "kind": "CronJob", "metadata": {"name": "cron"},
            "spec": {"schedule": "0 3 * * *", "jobTemplate": {"spec": spec}},
        }  # fmt: skip
        template = {
            "apiVersion": "flow.volcano.sh/v1alpha1", "kind": "JobTemplate", "metadata": {"name": "template"},
            "spec": spec,
        }  # fmt: skip

        (made_cron,), (made_template,) = await system.apply(cron), await system.apply(template)

        assert limit_of(made_cron["spec"]["jobTemplate"]["spec"]["tasks"][0]) == "3"
        assert limit_of(made_template["spec"]["tasks"][0]) == "3"
        await system.delete(CronJob, "cron")
        kind = find_resource_type("flow.volcano.sh", "JobTemplate")
        await system.client.delete(kind, Key(system.namespace, "template"))


def test_containers_know_their_index_and_number_by_both_names(host) -> None:
    @host
    async def story(system):
        await system.apply(a_job("indexed", a_task(replicas=3, lasts="1s"), plugins={"env": []}))
        await system.until(lambda: system.phase("indexed") == "Completed")

        found = await system.client.list_json(resource_type(Pod), system.namespace)
        seen = set()
        for pod in found["items"]:
            variables = {each["name"]: each.get("value") for each in pod["spec"]["containers"][0]["env"]}
            assert variables["VK_TASK_NUM"] == variables["VC_TASK_NUM"] == "3"
            assert variables["VK_TASK_INDEX"] == variables["VC_TASK_INDEX"]
            seen.add(variables["VC_TASK_INDEX"])
        assert seen == {"0", "1", "2"}
