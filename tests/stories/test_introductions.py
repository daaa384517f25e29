"""Manifests as public introductions of Volcano print them, each from submission to its expected end, on nodes with GPUs.

What introductions print, and where it is tried on both API servers:

| what is printed | embedded | real kube-apiserver |
|---|---|---|
| every manifest of examples/introduction, from submission to its end | here | here |
| the default, the binpack and the capacity configuration | here | here |
| a queue with a guarantee and no deserved is admitted; a smaller deserved is refused | test_introduction_rules.py | test_introduction_rules.py (policies), tests/kubernetes/test_admission.py (webhook and policies) |
| its guarantee stays under reclaim, with capacity and with proportion | test_introduction_rules.py | test_introduction_rules.py |
| … under preempt, reclaim, gangpreempt and gangreclaim, flat and in hierarchies | tests/unit/scheduler/solve/test_guarantees.py | decided by the same pure function |
| `vcctl queue tree` shows the guarantee as deserved | tests/system/cli/test_queues_flows_pods.py | tests/kubernetes/test_command_line.py |
| GPUs in `requests` only, of Jobs, CronJobs and JobTemplates | test_introduction_rules.py | test_introduction_rules.py |
| VK_TASK_INDEX, VC_TASK_INDEX, VK_TASK_NUM, VC_TASK_NUM | test_introduction_rules.py | test_introduction_rules.py |
| `vcctl job view|suspend|resume|delete -n NAME` | tests/system/cli/test_jobs.py | tests/kubernetes/test_command_line.py |
| `vcctl queue create -n my-queue -w 2` | tests/system/cli/test_queues_flows_pods.py | tests/kubernetes/test_command_line.py |
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.stories.builders import DURATION
from tests.stories.hosts import GPU
from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.manifests import load_documents
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type

FOLDER = Path(__file__).parents[2] / "examples" / "introduction"
JOBS = {
    "elastic": ["intro-elastic"],
    "hierarchy": ["intro-dev-job", "intro-test-job"],
    "job": ["intro-job"],
    "mpi": ["intro-mpi"],
    "multi-queue": ["intro-serving", "intro-experiment"],
    "pytorch-ddp": ["intro-pytorch-ddp"],
    "queue": ["intro-in-queue"],
    "spark": ["intro-spark"],
}
CONFIGURATIONS = ["scheduler-binpack", "scheduler-capacity", "scheduler-default"]
SERVERS = {"mpiworker", "executor"}
"""Tasks whose pods run until the job ends."""


@pytest.fixture(autouse=True)
def _admission(request: pytest.FixtureRequest) -> None:
    if "host" in request.fixturenames:
        request.getfixturevalue("admission")


def documents(name: str) -> list[dict]:
    return load_documents((FOLDER / f"{name}.yaml").read_bytes())


def lasting(document: dict) -> dict:
    """With simulated pods: those that serve run for an hour, all others for a second."""
    for task in document["spec"].get("tasks", ()) if document["kind"] == "Job" else ():
        duration = "3600s" if task["name"] in SERVERS else "1s"
        task["template"].setdefault("metadata", {}).setdefault("annotations", {})[DURATION] = duration
    if document["kind"] == "Pod":
        document["metadata"]["annotations"][DURATION] = "1s"
    return document


async def submit(system, name: str, scheduler: str = "volcano") -> list[str]:
    """Apply a file in its order; a queue is used only once it is open. The names of its queues."""
    queues = []
    for document in documents(name):
        if document["kind"] == "Job":
            document["spec"]["schedulerName"] = scheduler
        (made,) = await system.apply(lasting(document))
        if document["kind"] == "Queue":
            queue = made["metadata"]["name"]
            queues.append(queue)
            await system.until(lambda queue=queue: system.get(Queue, queue).status.state == "Open")
    return queues


async def remove(system, queues: list[str], jobs: list[str]) -> None:
    for job in jobs:
        await system.delete(Job, job)
        await system.until(lambda job=job: system.get(Job, job) is None)
    for queue in reversed(queues):
        await system.delete(Queue, queue)
        await system.until(lambda queue=queue: system.get(Queue, queue) is None)


def test_every_manifest_is_told() -> None:
    assert {path.stem for path in FOLDER.glob("*.yaml")} == {*JOBS, *CONFIGURATIONS, "podgroup"}


@pytest.mark.parametrize("name", JOBS)
def test_its_jobs_run_to_their_end(host, name: str) -> None:
    @host
    async def story(system):
        queues = await submit(system, name)
        for job in JOBS[name]:
            await system.until(lambda job=job: system.phase(job) == "Completed", why=f"{job} is Completed")
        await remove(system, queues, JOBS[name])


@pytest.mark.hosts("embedded")
def test_all_ten_pods_of_the_elastic_job_run_where_there_is_room(host) -> None:
    @host
    async def story(system):
        await submit(system, "elastic")
        await system.until(lambda: system.job("intro-elastic").status.running == 10)


@pytest.mark.hosts("embedded")
def test_five_pods_of_the_elastic_job_run_where_there_is_room_for_six(host) -> None:
    @host.with_nodes(1, cpu="6")
    async def story(system):
        (job,) = documents("elastic")
        job["spec"]["tasks"][0]["template"]["metadata"] = {"annotations": {DURATION: "3600s"}}
        await system.apply(job)
        await system.until(lambda: system.job("intro-elastic").status.running == 6)
        assert system.phase("intro-elastic") == "Running"


def test_the_pods_of_a_podgroup_run_together(host) -> None:
    @host
    async def story(system):
        await submit(system, "podgroup")
        for name in ("intro-group-0", "intro-group-1"):
            await system.until(lambda name=name: system.get(Pod, name).status.phase == "Succeeded")
            await system.delete(Pod, name)
        await system.delete(PodGroup, "intro-group")


def test_gpus_that_are_only_requested_are_limited_and_charged(host) -> None:
    @host
    async def story(system):
        queues = await submit(system, "pytorch-ddp")
        await system.until(lambda: len(system.pods("intro-pytorch-ddp")) == 3)

        found = await system.client.list_json(resource_type(Pod), system.namespace)
        limits = sorted(
            container["resources"]["limits"][GPU] for pod in found["items"] for container in pod["spec"]["containers"]
        )
        assert limits == ["1", "2", "2"]
        await remove(system, queues, JOBS["pytorch-ddp"])


def test_the_type_of_the_mpi_job_is_the_label() -> None:
    (job,) = documents("mpi")

    assert job["metadata"]["labels"] == {"volcano.sh/job-type": "MPI"}


@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_jobs_run_under_the_configuration(host, configure, name: str) -> None:
    @host
    async def story(system):
        (configuration,) = documents(name)
        scheduler = await configure(system, configuration["data"]["volcano-scheduler.conf"])
        queues = await submit(system, "hierarchy", scheduler) + await submit(system, "pytorch-ddp", scheduler)

        jobs = [*JOBS["hierarchy"], *JOBS["pytorch-ddp"]]
        for job in jobs:
            await system.until(lambda job=job: system.phase(job) == "Completed", why=f"{job} is Completed")
        await remove(system, queues, jobs)


def test_binpack_puts_gpu_pods_on_one_node(host, configure) -> None:
    @host
    async def story(system):
        (configuration,) = documents("scheduler-binpack")
        scheduler = await configure(system, configuration["data"]["volcano-scheduler.conf"])
        queues = await submit(system, "multi-queue", scheduler)
        await system.until(lambda: system.phase("intro-serving") in ("Running", "Completed"))

        assert len({pod.spec.node_name for pod in system.pods("intro-serving")}) == 1
        await remove(system, queues, JOBS["multi-queue"])
