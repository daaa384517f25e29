"""Short pods (`true`) through one agent and an API server in memory: pods per second, and where the CPU time goes.

python benchmarks/agent_pods.py [--pods 1000] [--network host|isolated]
"""

from __future__ import annotations

import argparse
import asyncio
import os
import shutil
import tempfile
import time
from pathlib import Path

from volcano.api.core import Pod
from volcano.api.kubelet import AgentPod
from volcano.api.scheme import resource_type
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape
from volcano.embedded.agent.runtime.process_runtime import ProcessRuntime
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import InProcess, User
from volcano.machinery.world import Change

PODS = resource_type(Pod)


def cpu_seconds(process: int) -> tuple[float, float]:
    """Of the process itself, and of its children that have ended."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    own, children = sum(map(int, fields[11:13])), sum(map(int, fields[13:15]))
    return own / os.sysconf("SC_CLK_TCK"), children / os.sysconf("SC_CLK_TCK")


async def measure(count: int, network: str) -> None:
    clock, folder = SystemClock(), Path(tempfile.mkdtemp(prefix="volcano-bench-"))
    server = ApiServer(MemoryStore(), clock=clock)
    await server.start()
    client = Client(InProcess(server.handle, User("admin", ("system:masters",))))
    runtime = ProcessRuntime(client, clock, ProcessSettings(folder, pod_network=network))  # type: ignore[arg-type]
    shape = NodeShape("bench", {"cpu": "64", "memory": "64Gi", "pods": str(count)})
    agent = Agent(client, clock, NodeSettings((shape,)), runtime)
    running = asyncio.create_task(agent.run())
    await agent.ready()
    left, all_done = {f"pod-{number}" for number in range(count)}, asyncio.Event()

    def changed(change: Change[AgentPod]) -> None:
        if change.object.is_finished:
            left.discard(change.object.name)
        if not left:
            all_done.set()

    agent.mirror.listen(AgentPod, changed)
    supervisor = runtime._supervisor.pid
    agent_before, supervisor_before, began = cpu_seconds(os.getpid()), cpu_seconds(supervisor), time.perf_counter()
    for name in sorted(left):
        container = {"name": "main", "image": "host", "command": ["true"]}
        spec = {"nodeName": "bench", "restartPolicy": "Never", "containers": [container]}
        await client.create(PODS, {"metadata": {"name": name, "namespace": "default"}, "spec": spec})
    await all_done.wait()
    seconds = time.perf_counter() - began
    agent_cpu = cpu_seconds(os.getpid())[0] - agent_before[0]
    own, children = (after - before for after, before in zip(cpu_seconds(supervisor), supervisor_before, strict=True))
    print(f"{count} pods, {network} network: {seconds:.1f} s, {count / seconds:.0f} pods/s")
    print(f"CPU per pod: agent and API server {agent_cpu / count * 1e3:.1f} ms, supervisor {own / count * 1e3:.1f} ms, "
          f"pods and their holders {children / count * 1e3:.1f} ms")  # fmt: skip
    print(f"supervisor: {resident(supervisor)} MB, {len(os.listdir(f'/proc/{supervisor}/fd'))} descriptors")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    shutil.rmtree(folder, ignore_errors=True)


def resident(process: int) -> int:
    for line in Path(f"/proc/{process}/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1]) // 1024
    return 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--network", choices=["host", "isolated"], default="isolated")
    options = parser.parse_args()
    asyncio.run(measure(options.pods, options.network))
