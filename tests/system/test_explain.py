"""`vcctl job explain` end to end: a job waits in a running system, and the scheduler says why."""

import msgspec

from tests.stories.builders import a_job, a_task
from volcano.api.jobs.simulation import Simulation
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.cli.dry_run import PATH
from volcano.cli.explain import rendered
from volcano.cli.explanation import LATER, NEVER, JobFacts, explain
from volcano.machinery.transport import Request
from volcano.testing.system import on_virtual_time


async def explained(system, name):
    """What the command would show: the objects, and the scheduler's answer through the API's service proxy."""
    job = msgspec.json.decode(msgspec.json.encode(system.job(name)))
    groups = await system.client.list_json(resource_type(PodGroup), "default")
    group = next(g for g in groups["items"] if g["metadata"]["ownerReferences"][0]["name"] == name)
    question = {"podGroup": f"default/{group['metadata']['name']}", "job": job}
    request = Request("POST", PATH, headers={"content-type": "application/json"}, body=msgspec.json.encode(question))
    simulation = msgspec.json.decode((await system.client.raw(request)).body, type=Simulation)
    return explain(JobFacts(job, group, simulation=simulation))


def test_a_pod_larger_than_every_node_never_runs():
    @on_virtual_time(nodes=3)
    async def story(system):
        await system.apply(a_job("large", a_task(replicas=2, cpu="1000")))
        await system.until(lambda: system.job("large").status.state.reason)

        found = await explained(system, "large")

        assert found.verdict == NEVER
        assert "3 nodes → 0 have 1k cpu" in rendered(found)


def test_a_job_behind_another_runs_later():
    @on_virtual_time(nodes=1, capacity={"cpu": "4", "memory": "8Gi", "pods": "10"})
    async def story(system):
        await system.apply(a_job("first", a_task(replicas=3, cpu="1")))
        await system.until(lambda: system.phase("first") == "Running")
        await system.apply(a_job("second", a_task(replicas=2, cpu="1")))
        await system.until(lambda: system.job("second").status.state.reason)

        found = await explained(system, "second")

        assert found.verdict == LATER
        (task,) = found.tasks
        assert (task.fits_now, task.holds, task.needed) == (1, 4, 2)
