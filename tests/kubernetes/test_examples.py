"""The examples run on a real API server, their pods as processes of this machine, with logs that kubectl can read."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from tests import needs
from volcano.api.batch import CronJob, Job
from volcano.api.core import Pod
from volcano.api.flow import JobFlow
from volcano.api.manifests import load_documents
from volcano.api.meta import Key

from .commands import kubectl
from .components import Components, components
from .control_plane import ControlPlane
from .real_system import RealSystem

EXAMPLES = Path(__file__).parents[2] / "examples"
LONG = timedelta(seconds=100)
NEEDS = {"mpi": "mpiexec"}
pytestmark = pytest.mark.timeout(180)


@pytest.fixture(scope="module")
def machine(
    running: Components, plane: ControlPlane, api, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Components]:
    """This machine as a node of the pool "main", beside the simulated ones, which are kept out."""
    folder = tmp_path_factory.mktemp("machine")
    with components(plane, api, folder) as found:
        for number in range(10):
            api.merge(f"/api/v1/nodes/main-{number}", {"spec": {"unschedulable": True}})
        agent = found.start(
            "agent", "--kubeconfig", str(plane.kubeconfig), "--data-dir", str(folder / "agent"), "--nodes", "1",
            "--node-cpu", "32", "--node-memory", "64Gi", "--node-labels", "pool=main", "--pod-network", "host",
        )  # fmt: skip
        agent.wait_for_word("the nodes are ready")
        yield found
    for number in range(10):
        api.merge(f"/api/v1/nodes/main-{number}", {"spec": {"unschedulable": False}})


def examples_of(kind: str) -> list[str]:
    return sorted(
        path.stem
        for path in EXAMPLES.glob("*.yaml")
        if any(each["kind"] == kind for each in load_documents(path.read_bytes()))
    )


JOBS, FLOWS, CRONS = (examples_of(kind) for kind in ("Job", "JobFlow", "CronJob"))


def test_no_example_is_left_out():
    """Those in Python bring a whole virtual system of their own; tests/system runs them."""
    assert {path.stem for path in EXAMPLES.glob("*.yaml")} == {*JOBS, *FLOWS, *CRONS}


@pytest.mark.parametrize("name", JOBS)
async def test_an_example_runs_to_its_end(system: RealSystem, machine: Components, name: str):
    if name in NEEDS and shutil.which(NEEDS[name]) is None:
        pytest.skip(needs.reason(f"{NEEDS[name]} is not installed", "apt-get install openmpi-bin"))
    made = await system.apply(EXAMPLES / f"{name}.yaml")
    jobs = [body["metadata"]["name"] for body in made if body["kind"] == "Job"]

    await system.until(
        lambda: all(system.phase(job) in ("Completed", "Failed", "Terminated") for job in jobs), within=LONG
    )

    logs = {pod.name: (pod.status.phase, pod.status.container_statuses) for pod in system.mirror.all(Pod)}
    assert {system.phase(job) for job in jobs} == {"Completed"}, logs


@pytest.mark.parametrize("name", FLOWS)
async def test_a_flow_runs_to_its_end(system: RealSystem, machine: Components, name: str):
    made = await system.apply(EXAMPLES / f"{name}.yaml")
    flow = next(body["metadata"]["name"] for body in made if body["kind"] == "JobFlow")
    end = system.clock.now() + LONG

    while (state := (await system.client.get(JobFlow, Key(system.namespace, flow))).status.state.phase) != "Succeed":
        assert system.clock.now() < end, (state, system.summary())
        await system.clock.sleep(timedelta(milliseconds=200))

    assert all(job.status.state.phase == "Completed" for job in system.mirror.all(Job))


@pytest.mark.parametrize("name", CRONS)
async def test_a_cronjob_makes_a_job_that_runs_to_its_end_and_keeps_as_many_as_it_should(
    system: RealSystem, machine: Components, name: str
):
    (made,) = await system.apply(EXAMPLES / f"{name}.yaml")
    cron = made["metadata"]["name"]
    # The night is far away; jobs are named by the minute, so this is at most one a minute
    await system.patch(CronJob, cron, {"spec": {"schedule": "@every 1s"}})

    await system.until(
        lambda: any(job.status.state.phase == "Completed" for job in system.mirror.all(Job)), within=LONG
    )

    await system.patch(CronJob, cron, {"spec": {"suspend": True}})
    assert all(job.labels["purpose"] == "nightly" for job in system.mirror.all(Job))
    await system.patch(CronJob, cron, {"spec": {"successfulJobsHistoryLimit": 0}})
    await system.until(lambda: not system.mirror.all(Job), within=LONG)
    await system.delete(CronJob, cron)


async def test_logs_of_a_pod_can_be_read_while_it_runs_and_after(
    system: RealSystem, machine: Components, plane: ControlPlane
):
    container = {"name": "c", "image": "any", "command": ["sh", "-c", "echo hello from $HOSTNAME; sleep 2; echo bye"]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "speaker"},
           "spec": {"schedulerName": "volcano", "restartPolicy": "Never", "containers": [container]}}  # fmt: skip
    await system.apply(pod)
    await system.until(lambda: system.get(Pod, "speaker").status.phase in ("Running", "Succeeded"))

    assert "hello from speaker" in kubectl(plane, "-n", system.namespace, "logs", "speaker")
    await system.until(lambda: system.get(Pod, "speaker").status.phase == "Succeeded")
    assert "bye" in kubectl(plane, "-n", system.namespace, "logs", "speaker")
