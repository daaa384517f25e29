"""Manifests as public introductions of Volcano print them, each from submission to its expected end, on nodes with GPUs."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kubernetes.components import apply, discover, path_of, wait_for
from tests.running_server import Client
from tests.stories.builders import DURATION, a_job
from tests.stories.hosts import GPU, KubernetesHost
from volcano.admission.policies import policy_manifests
from volcano.api.batch import Job
from volcano.api.core import ConfigMap, Pod
from volcano.api.manifests import load_documents
from volcano.api.meta import Key
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


@pytest.fixture(scope="module")
def policies(api: Client) -> Iterator[None]:
    """Admission by policies on the real API server; they fill in the limit of a GPU that is only requested."""
    bodies = policy_manifests()
    apply(api, bodies)
    wait_for(lambda: made_by_trial(api).get("schedulerName"), why="the policies are in force")
    yield
    plurals = discover(api)
    for body in bodies:
        api.delete(f"{path_of(body, plurals)}/{body['metadata']['name']}")
    wait_for(lambda: not made_by_trial(api).get("schedulerName"), why="the policies are gone")


def made_by_trial(api: Client) -> dict:
    """The spec of a Job that is created as a dry run."""
    path = "/apis/batch.volcano.sh/v1alpha1/namespaces/default/jobs"
    body = a_job("trial")
    del body["spec"]["schedulerName"]
    return api.create(path, body, query={"dryRun": "All"}).body.get("spec", {})


@pytest.fixture(autouse=True)
def _admission(request: pytest.FixtureRequest) -> None:
    if "host" in request.fixturenames and isinstance(request.getfixturevalue("host"), KubernetesHost):
        request.getfixturevalue("policies")


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


async def submit(system, name: str) -> list[str]:
    """Apply a file in its order; a queue is used only once it is open. The names of its queues."""
    queues = []
    for document in documents(name):
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


@pytest.mark.hosts("embedded")
def test_gpus_that_are_only_requested_are_limited_and_charged(host) -> None:
    @host
    async def story(system):
        await submit(system, "pytorch-ddp")
        await system.until(lambda: len(system.pods("intro-pytorch-ddp")) == 3)

        limits = sorted(
            container["resources"]["limits"][GPU]
            for pod in await pods_json(system)
            for container in pod["spec"]["containers"]
        )
        assert limits == ["1", "2", "2"]


async def pods_json(system) -> list[dict]:
    found = await system.client.list_json(resource_type(Pod), "default")
    return found["items"]


def test_the_type_of_the_mpi_job_is_the_label() -> None:
    (job,) = documents("mpi")

    assert job["metadata"]["labels"] == {"volcano.sh/job-type": "MPI"}


@pytest.mark.hosts("embedded")
@pytest.mark.parametrize("name", CONFIGURATIONS)
def test_jobs_run_under_the_configuration(host, name: str) -> None:
    @host
    async def story(system):
        (configuration,) = documents(name)
        key = Key("volcano-system", "volcano-scheduler-configmap")
        await system.client.patch(resource_type(ConfigMap), key, {"data": configuration["data"]})
        await submit(system, "hierarchy")
        await submit(system, "pytorch-ddp")

        for job in ("intro-dev-job", "intro-test-job", "intro-pytorch-ddp"):
            await system.until(lambda job=job: system.phase(job) == "Completed", why=f"{job} is Completed")


@pytest.mark.hosts("embedded")
def test_binpack_puts_gpu_pods_on_one_node(host) -> None:
    @host
    async def story(system):
        (configuration,) = documents("scheduler-binpack")
        key = Key("volcano-system", "volcano-scheduler-configmap")
        await system.client.patch(resource_type(ConfigMap), key, {"data": configuration["data"]})
        await system.settle()
        await submit(system, "multi-queue")
        await system.until(lambda: system.phase("intro-serving") == "Running")

        assert len({pod.spec.node_name for pod in system.pods("intro-serving")}) == 1
