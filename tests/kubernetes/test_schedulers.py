"""Schedulers beside one another, each with its name, its nodes and its configuration: preemption and reclaim."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.running_server import Client
from tests.stories.builders import a_job, a_queue, a_task
from volcano.api.core import Pod
from volcano.api.scheduling import Queue

from .components import Components, wait_for
from .real_system import RealSystem

CONFIGURATION = """
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


@pytest.fixture(scope="module")
def second(running: Components, api: Client, tmp_path_factory: pytest.TempPathFactory) -> str:
    """A scheduler of another name, for the two nodes of another pool."""
    conf: Path = tmp_path_factory.mktemp("second") / "volcano-scheduler.conf"
    conf.write_text(CONFIGURATION)
    running.nodes("second", 2, cpu="4")
    running.scheduler("--scheduler-name", "second", "--node-selector", "pool:second", "--scheduler-conf", str(conf))
    for name, value in (("tests-low", 10), ("tests-high", 1000)):
        api.create("/apis/scheduling.k8s.io/v1/priorityclasses", {"metadata": {"name": name}, "value": value})
    return "second"


def job(name: str, count: int, *, cpu: str = "1", minimum: int | None = None, queue: str = "default", **spec) -> dict:
    return a_job(name, a_task(replicas=count, cpu=cpu), minimum=minimum, queue=queue, schedulerName="second", **spec)


async def test_each_scheduler_uses_its_own_nodes(system: RealSystem, second: str):
    await system.apply(job("theirs", 4))
    await system.apply(a_job("ours", a_task(replicas=4)))
    await system.until(lambda: system.phase("theirs") == system.phase("ours") == "Running")

    assert {pod.spec.node_name.partition("-")[0] for pod in system.pods("theirs")} == {"second"}
    assert {pod.spec.node_name.partition("-")[0] for pod in system.pods("ours")} == {"main"}


async def test_a_more_important_job_preempts(system: RealSystem, second: str):
    await system.apply(job("low", 8, minimum=1, priorityClassName="tests-low"))
    await system.until(lambda: system.job("low").status.running == 8)
    await system.apply(job("high", 3, priorityClassName="tests-high"))

    await system.until(lambda: system.phase("high") == "Running")

    assert system.job("low").status.running >= 1
    assert all(pod.spec.node_name for pod in system.pods("high"))


async def test_a_queue_reclaims_its_share(system: RealSystem, second: str):
    names = [f"{name}-{system.namespace}" for name in ("greedy", "modest")]
    for name in names:
        await system.apply(a_queue(name, weight=1, reclaimable=True))
    await system.apply(job("greedy", 8, minimum=1, queue=names[0]))
    await system.until(lambda: system.job("greedy").status.running == 8)
    await system.apply(job("modest", 3, queue=names[1]))

    await system.until(lambda: system.phase("modest") == "Running")

    for name in ("greedy", "modest"):
        await system.delete(type(system.job(name)), name)
    await system.until(lambda: not system.mirror.all(Pod))
    for name in names:
        await system.until(lambda name=name: (q := system.get(Queue, name)) and not q.status.running)
        await system.delete(Queue, name)


async def test_pods_of_the_default_scheduler_are_left_alone(system: RealSystem, api: Client):
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "other"},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    }
    await system.apply(pod)
    await system.apply(a_job("demo", a_task(lasts="1s")))
    await system.until(lambda: system.phase("demo") == "Completed")

    assert system.get(Pod, "other").spec.node_name == ""
    assert wait_for(lambda: api.get("/healthz").status == 200)
