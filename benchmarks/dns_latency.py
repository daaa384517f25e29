"""How long a pod waits for the address of a service: UDP queries from a pod to the cluster's DNS server, one at a time.

python benchmarks/dns_latency.py [--queries 5000] [--services 100]        as root, with network namespaces
"""

from __future__ import annotations

import argparse
import asyncio
import shutil
import sys
import tempfile
from pathlib import Path

from volcano.api.core import Pod, Service
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape
from volcano.embedded.agent.runtime.process_runtime import ProcessRuntime
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import InProcess, User

PODS, SERVICES = resource_type(Pod), resource_type(Service)
ASK = """
import socket, struct, sys, time
queries, services = int(sys.argv[1]), int(sys.argv[2])
server = next(line.split()[1] for line in open("/etc/resolv.conf") if line.startswith("nameserver"))
talk = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
talk.settimeout(5)
talk.connect((server, 53))
seconds = []
for number in range(queries):
    labels = f"service-{number % services}.default.svc.cluster.local".split(".")
    name = b"".join(bytes([len(label)]) + label.encode() for label in labels) + bytes(1)
    query = struct.pack(">HHHHHH", number % 65536, 0x0100, 1, 0, 0, 0) + name + struct.pack(">HH", 1, 1)
    began = time.perf_counter()
    talk.send(query)
    answer = talk.recv(4096)
    seconds.append(time.perf_counter() - began)
    assert answer[:2] == query[:2] and answer[3] & 15 == 0 and answer[7] == 1, answer
seconds.sort()
share = lambda part: seconds[min(len(seconds) - 1, int(len(seconds) * part))] * 1000
print(f"{queries} queries: p50 {share(0.5):.2f} ms, p99 {share(0.99):.2f} ms, longest {seconds[-1] * 1000:.2f} ms")
"""


async def measure(queries: int, services: int) -> None:
    clock, folder = SystemClock(), Path(tempfile.mkdtemp(prefix="volcano-bench-"))
    server = ApiServer(MemoryStore(), clock=clock)
    await server.start()
    client = Client(InProcess(server.handle, User("admin", ("system:masters",))))
    runtime = ProcessRuntime(client, clock, ProcessSettings(folder, pod_network="isolated", name_servers=list))
    shape = NodeShape("bench", {"cpu": "4", "memory": "8Gi", "pods": "10"})
    agent = Agent(client, clock, NodeSettings((shape,)), runtime)
    running = asyncio.create_task(agent.run())
    await agent.ready()
    for number in range(services):
        spec = {"selector": {"app": "x"}, "ports": [{"port": 80}]}
        await client.create(SERVICES, {"metadata": {"name": f"service-{number}", "namespace": "default"}, "spec": spec})
    command = [sys.executable, "-I", "-c", ASK, str(queries), str(services)]
    container = {"name": "main", "image": "host", "command": command}
    body = {
        "metadata": {"name": "asks", "namespace": "default"},
        "spec": {"nodeName": "bench", "restartPolicy": "Never", "containers": [container]},
    }
    await client.create(PODS, body)
    phase = ""
    while phase not in ("Succeeded", "Failed"):
        await asyncio.sleep(0.1)
        phase = (await client.get_json(PODS, Key("default", "asks")))["status"].get("phase", "")
    known = agent.find("default", "asks")
    assert known is not None
    for line in runtime.log_file(ContainerAttempt(known.pod, "main", 0)).read_text().splitlines():
        print(line.split(" ", 3)[3])
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    shutil.rmtree(folder, ignore_errors=True)
    assert phase == "Succeeded"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queries", type=int, default=5000)
    parser.add_argument("--services", type=int, default=100)
    given = parser.parse_args()
    asyncio.run(measure(given.queries, given.services))


if __name__ == "__main__":
    main()
