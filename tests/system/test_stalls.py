"""A machine that sleeps or stands still: afterwards every node is Ready and nothing was deleted that still runs."""

from __future__ import annotations

import os
import signal
import time
from datetime import datetime, timedelta
from typing import Any

import pytest

from tests.stories.builders import a_job, a_task
from tests.system.real_system import JOBS, processes_naming, running_up, wait_until
from volcano.api.core import Node, Pod
from volcano.api.meta import Key, Resource
from volcano.api.scheme import resource_type
from volcano.embedded.agent.node.settings import SIMULATED_CAPACITY, NodeSettings, NodeShape
from volcano.embedded.cluster.node_health import DEFAULT_GRACE_PERIOD, UNREACHABLE
from volcano.testing.system import VirtualSystem, on_virtual_time

TEN_SECONDS = timedelta(seconds=10)
BEYOND_TOLERATIONS = DEFAULT_GRACE_PERIOD + timedelta(minutes=5, seconds=20)
SHORT_STALL = DEFAULT_GRACE_PERIOD + timedelta(seconds=15)
STALL = (
    timedelta(minutes=float(os.environ["STALL_MINUTES"]))
    if "STALL_MINUTES" in os.environ
    else BEYOND_TOLERATIONS
    if os.environ.get("LONG") == "yes"
    else SHORT_STALL
)
"""Of real processes."""
AS_MACHINES = NodeSettings(tuple(NodeShape(f"machine-{n}", dict(SIMULATED_CAPACITY)) for n in range(3)))
"""Nodes with the lease times of real machines."""


async def conditions(system: VirtualSystem) -> dict[str, str]:
    nodes = (await system.client.list(Node)).items
    return {node.name: next(c.status for c in node.status.conditions if c.type == "Ready") for node in nodes}


async def identities(system: VirtualSystem) -> dict[str, str]:
    return {pod.name: pod.uid for pod in (await system.client.list(Pod)).items if not pod.is_deleting}


async def overwrite(system: VirtualSystem, kind: type[Resource], key: Key, conditions: list[dict]) -> None:
    """As node health writes about a node that is silent."""
    body = {"status": {"conditions": conditions}}
    await system.client.patch(resource_type(kind), key, body, kind="strategic", subresource="status")


def is_ready(pod: Pod) -> bool:
    return any(each.type == "Ready" and each.status == "True" for each in pod.status.conditions)


@pytest.mark.parametrize("ran_for", [0.5, 7, 33, 118], ids=lambda seconds: f"after {seconds} s")
@pytest.mark.parametrize("nodes", [AS_MACHINES, None], ids=["short leases", "long leases"])
def test_after_an_hour_in_which_nothing_ran_all_nodes_are_ready_and_all_pods_are_there(
    nodes: NodeSettings | None, ran_for: float
):
    @on_virtual_time(node_settings=nodes)
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_job("long", a_task(replicas=5, lasts="10h")))
        await system.until(lambda: system.phase("long") == "Running")
        before = await identities(system)
        await system.clock.sleep(timedelta(seconds=ran_for))

        system.clock.stall(timedelta(hours=1))
        await system.clock.sleep(TEN_SECONDS)

        assert set((await conditions(system)).values()) == {"True"}
        await system.clock.sleep(timedelta(minutes=30))
        assert set((await conditions(system)).values()) == {"True"}
        assert await identities(system) == before
        assert all(is_ready(pod) for pod in (await system.client.list(Pod)).items)


def test_an_agent_restores_the_conditions_of_its_node_and_of_its_pods():
    @on_virtual_time(node_settings=AS_MACHINES)
    async def story(system: VirtualSystem) -> None:
        await system.apply(a_job("long", a_task(replicas=3, lasts="10h")))
        await system.until(lambda: system.phase("long") == "Running")
        before = await identities(system)
        pod = (await system.client.list(Pod)).items[0]
        unknown = [{"type": kind, "status": "Unknown"} for kind in ("Ready", "MemoryPressure")]
        not_ready = [{"type": "Ready", "status": "False", "reason": "NodeNotReady"}]

        await overwrite(system, Node, Key("", pod.spec.node_name), unknown)
        await overwrite(system, Pod, pod.key, not_ready)
        await system.clock.sleep(TEN_SECONDS)

        node = await system.client.get(Node, Key("", pod.spec.node_name))
        assert {c.type: c.status for c in node.status.conditions}["Ready"] == "True"
        assert {c.type: c.status for c in node.status.conditions}["MemoryPressure"] == "False"
        assert [taint for taint in node.spec.taints if taint.key == UNREACHABLE] == []
        assert is_ready(await system.client.get(Pod, pod.key))
        assert await identities(system) == before


@pytest.mark.slow
@pytest.mark.timeout(STALL.total_seconds() + 540)
def test_real_processes_that_were_all_stopped_go_on(tmp_path):
    """As when a laptop is closed: the system, its supervisor and the pods' processes stand still, then go on.

    An hour is stalled on virtual time above; here for longer than a node may be silent, and with LONG=yes for longer
    than pods tolerate a node that cannot be reached, after which they would be deleted. STALL_MINUTES=60 is an hour.
    """
    with running_up(tmp_path, "--node-cpu", "4") as up:
        assert up.api.create(JOBS, a_sleeper()).status == 201
        up.until_phase("sleeper", "Running")
        before = {name: pod["metadata"]["uid"] for name, pod in up.pods().items()}
        stopped = sorted({up.process.pid, *processes_naming(str(up.data))})

        for process in stopped:
            os.kill(process, signal.SIGSTOP)
        try:
            stall = STALL.total_seconds()
            end = time.monotonic() + stall
            wait_until(lambda: time.monotonic() >= end, "the stall is over", deadline=stall + 60)
        finally:
            for process in stopped:
                os.kill(process, signal.SIGCONT)

        wait_until(lambda: ready_nodes(up) == {"True"}, "all nodes are ready", deadline=10)
        judged = newest_renewal(up) + DEFAULT_GRACE_PERIOD + timedelta(seconds=5)
        wait_until(lambda: newest_renewal(up) >= judged, "the leases outlive a grace period", deadline=120)
        assert ready_nodes(up) == {"True"}
        assert {name: pod["metadata"]["uid"] for name, pod in up.pods().items()} == before
        assert up.phase("sleeper") == "Running"


def newest_renewal(up: Any) -> datetime:
    leases = up.api.get("/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases").body["items"]
    return max(datetime.fromisoformat(lease["spec"]["renewTime"]) for lease in leases)


def ready_nodes(up: Any) -> set[str]:
    nodes = up.api.get("/api/v1/nodes").body["items"]
    return {c["status"] for node in nodes for c in node["status"]["conditions"] if c["type"] == "Ready"}


def a_sleeper() -> dict[str, Any]:
    container = {"name": "main", "image": "busybox", "command": ["sleep", str(int(STALL.total_seconds()) + 1000)]}
    spec = {"restartPolicy": "Never", "containers": [container]}
    return {
        "metadata": {"name": "sleeper"},
        "spec": {
            "minAvailable": 2,
            "schedulerName": "volcano",
            "tasks": [{"name": "main", "replicas": 2, "template": {"spec": spec}}],
        },
    }
