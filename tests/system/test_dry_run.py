"""A dry run says what then happens: placed or not, how many, whom it would evict, the first reason."""

import random
from datetime import timedelta

import msgspec
import pytest

from tests.stories.builders import a_job, a_queue, a_task
from volcano.api.core import ConfigMap, Pod
from volcano.api.jobs.why import decode_why
from volcano.api.meta import Key
from volcano.api.scheduling import WHY_ANNOTATION
from volcano.api.scheme import resource_type
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape
from volcano.machinery.transport import Request
from volcano.testing.system import on_virtual_time

A_WHILE = timedelta(seconds=8)
PATH = "/api/v1/namespaces/volcano-system/services/volcano-scheduler/proxy/simulate"
PREEMPTING = """\
actions: "enqueue, allocate, preempt, reclaim, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
    enablePreemptable: false
  - name: conformance
- plugins:
  - name: drf
    enablePreemptable: false
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


def a_cluster(chance):
    """Nodes of several sizes, so that jobs of all sizes meet room and no room."""
    shapes = tuple(
        NodeShape(
            f"n{i}",
            {"cpu": str(chance.choice([2, 4, 8])), "memory": "64Gi", "pods": "20"},
            {"zone": chance.choice("ab")},
        )
        for i in range(chance.randint(1, 6))
    )
    return NodeSettings(shapes)


def some_job(chance, name, *, priority=""):
    task = a_task(replicas=chance.randint(1, 6), cpu=chance.choice(["500m", "1", "2", "3"]))
    if chance.random() < 0.3:
        task["template"]["spec"]["nodeSelector"] = {"zone": chance.choice("abc")}
    spec = {"priorityClassName": priority} if priority else {}
    return a_job(name, task, queue=chance.choice(["default", "q1"]), **spec)


async def ask(system, job):
    body = msgspec.json.encode({"job": job})
    request = Request("POST", PATH, headers={"content-type": "application/json"}, body=body)
    return msgspec.json.decode((await system.client.raw(request)).body)


async def prepare(system, chance):
    if chance.random() < 0.5:
        configuration = {"data": {"volcano-scheduler.conf": PREEMPTING}}
        key = Key("volcano-system", "volcano-scheduler-configmap")
        await system.client.patch(resource_type(ConfigMap), key, configuration)
    await system.apply(a_queue("q1", weight=chance.randint(1, 4)))
    for name, value in (("low", 10), ("high", 1000)):
        await system.apply(
            {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": name}, "value": value}
        )
    await system.settle(A_WHILE)
    for number in range(chance.randint(0, 4)):
        await system.apply(some_job(chance, f"old-{number}", priority="low"))
    await system.settle(A_WHILE)


QUICK = 40
"""Clusters that every run looks at; the others take minutes together."""
SEEDS = [seed if seed < QUICK else pytest.param(seed, marks=pytest.mark.slow) for seed in range(200)]


@pytest.mark.parametrize("seed", SEEDS)
def test_the_dry_run_agrees_with_what_then_happens(seed):
    chance = random.Random(seed)
    nodes = a_cluster(chance)

    @on_virtual_time(node_settings=nodes)
    async def story(system):
        await prepare(system, chance)
        before = {pod.key: pod.uid for pod in system.mirror.all(Pod) if pod.spec.node_name}
        job = some_job(chance, "asked", priority=chance.choice(["low", "high"]))
        told = await ask(system, job)
        gone = set()
        system.mirror.listen(Pod, lambda c: gone.add(c.object.uid) if c.new is None or c.new.is_deleting else None)

        await system.apply(job)
        await system.settle(A_WHILE)

        placed = sum(bool(pod.spec.node_name) for pod in system.pods("asked"))
        promised = sum("waitsFor" in pod for pod in told["pods"].values())
        assert told["asked"] == sum(task["replicas"] for task in job["spec"]["tasks"])
        if not told["evictions"]:
            assert placed == told["placed"] + (promised if placed > told["placed"] else 0)
            assert not {uid for key, uid in before.items() if uid in gone}
        else:
            evicted = {before[Key.parse(each["pod"])] for each in told["evictions"]}
            assert evicted <= gone
        if not placed and not told["evictions"]:
            (why,) = (each.get("why") for each in told["jobs"].values())
            (group,) = (each for each in system.groups() if each.name.startswith("asked-"))
            recorded = msgspec.structs.replace(decode_why(group.annotations[WHY_ANNOTATION]), text="")
            assert why and str(recorded).split(";")[0].split(":")[0] in why
