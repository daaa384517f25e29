"""From the acknowledged create of a pod whose PodGroup is Inqueue to its acknowledged bind, in an idle embedded system.

python benchmarks/scheduler_latency.py [--nodes 1000] [--pods 200]
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import time
from datetime import timedelta
from typing import Any

from volcano.api.core import Pod
from volcano.api.meta import Key
from volcano.api.scheduling import PodGroup
from volcano.api.scheme import resource_type
from volcano.app.admission_plug import VolcanoAdmission
from volcano.app.system import System
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.node.settings import simulated_nodes
from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock

PODS, GROUPS = resource_type(Pod), resource_type(PodGroup)


async def main(nodes: int, pods: int) -> None:
    clock, store = SystemClock(), MemoryStore()
    server = ApiServer(store, clock=clock, admission=VolcanoAdmission(store))
    await server.start()
    shapes = simulated_nodes(nodes)
    system = System(server, clock, agents=[lambda client: Agent(client, clock, shapes, SimulatedRuntime(clock))])
    running = asyncio.ensure_future(system.run())
    await system.ready()
    client = system.client("benchmark")
    took = [await one(client, clock, number) for number in range(pods)]
    took.sort()
    p99 = took[int(len(took) * 0.99)]
    print(
        f"{nodes} nodes, {pods} pods one after another: create acknowledged to bind acknowledged: "
        f"median {statistics.median(took) * 1000:.1f} ms, 99 % {p99 * 1000:.1f} ms, worst {took[-1] * 1000:.1f} ms"
    )
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await server.close()


async def one(client: Client, clock: SystemClock, number: int) -> float:
    name = f"probe-{number}"
    group: dict[str, Any] = {"metadata": {"name": name, "namespace": "default"}, "spec": {"minMember": 1}}
    await client.create(GROUPS, group | {"status": {"phase": "Inqueue"}})
    await clock.sleep(timedelta(milliseconds=250))
    body = {
        "metadata": {"name": name, "namespace": "default", "annotations": {"scheduling.k8s.io/group-name": name}},
        "spec": {"schedulerName": "volcano", "containers": [{"name": "c", "image": "i"}]},
    }
    async with client.watch(PODS, "default", fieldSelector=f"metadata.name={name}") as events:
        await client.create(PODS, body)
        begun = time.perf_counter()
        async for event in events:
            if b'"nodeName"' in bytes(event.object):
                break
        took = time.perf_counter() - begun
    await client.delete(PODS, Key("default", name), {"gracePeriodSeconds": 0})
    await client.delete(GROUPS, Key("default", name))
    return took


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=1000)
    parser.add_argument("--pods", type=int, default=200)
    given = parser.parse_args()
    asyncio.run(main(given.nodes, given.pods))
