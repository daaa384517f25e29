"""Jobs become pods: from submit to all pods created and to all Running, in the embedded system with simulated nodes.

python benchmarks/jobs_to_pods.py [--store memory|sqlite|both] [--shapes 1x1000,100x10,1000x1] [--nodes 100]
                                  [--profile FILE]

CPU time is that of the whole process, from the first submit until everything that follows from it is written; the
calibration is that of a fixed piece of work in the same minute. Writes are counted at the API server's door, by who
sends them; Events are counted apart.
"""

from __future__ import annotations

import argparse
import asyncio
import cProfile
import os
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

import uvloop

from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.scheme import resource_type
from volcano.app.admission_plug import VolcanoAdmission
from volcano.app.component import THREAD_SWITCH_INTERVAL
from volcano.app.system import System
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.node.settings import simulated_nodes
from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.garbage_collection import survivors_frozen
from volcano.machinery.transport import Request, Response
from volcano.machinery.world import Change

JOBS = resource_type(Job)
SUBMITTERS = 16


def a_job(name: str, pods: int) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": pods, "template": template}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"minAvailable": pods, "tasks": [task]}}


class Door:
    """The API server's request function, counting what is written by whom."""

    def __init__(self, server: ApiServer) -> None:
        self._handle = server.handle
        self.writes: Counter[str] = Counter()
        self.detail: Counter[str] = Counter()
        self.events = 0
        self.leases = 0
        server.handle = self  # type: ignore[method-assign, assignment]

    async def __call__(self, request: Request) -> Response:
        if request.method != "GET":
            if "/events" in request.path:
                self.events += 1
            elif request.path.endswith("/leases"):
                self.leases += 1
            elif "/leases/" not in request.path:
                self.writes[request.user.name.removeprefix("system:") if request.user else ""] += 1
                self.detail[_shape(request)] += 1
        return await self._handle(request)


def _shape(request: Request) -> str:
    """Who, method and kind, without names."""
    parts = request.path.split("/namespaces/default/")[-1].split("/")
    who = request.user.name.removeprefix("system:") if request.user else ""
    return f"{who} {request.method} {'/'.join((parts[0] or parts[-2], *parts[2:]))}"


class Progress:
    """How many pods there are, and how many of them run."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.created: set[str] = set()
        self.running: set[str] = set()
        self.all_created, self.all_running = asyncio.Event(), asyncio.Event()

    def changed(self, change: Change[Pod]) -> None:
        pod = change.object
        self.created.add(pod.name)
        if pod.status.phase == "Running":
            self.running.add(pod.name)
        if len(self.created) >= self.total:
            self.all_created.set()
        if len(self.running) >= self.total:
            self.all_running.set()


async def measure(store: Store, jobs: int, pods: int, nodes: int, profile: str) -> dict[str, float]:
    clock = SystemClock()
    server = ApiServer(store, clock=clock, admission=VolcanoAdmission(store))
    door = Door(server)
    await server.start()
    shapes = simulated_nodes(nodes, capacity={"cpu": "16", "memory": "64Gi", "pods": "110"})
    system = System(server, clock, agents=[lambda client: Agent(client, clock, shapes, SimulatedRuntime(clock))])
    running = asyncio.ensure_future(system.run())
    await system.ready()
    await settled(door)  # the nodes' Leases
    total = jobs * pods
    progress = Progress(total)
    system.controllers.mirror.listen(Pod, progress.changed)
    door.writes.clear()
    door.detail.clear()
    door.events = 0
    names = iter(range(jobs))
    client = system.client("bench")

    async def submit() -> None:
        for number in names:
            await client.create(JOBS, a_job(f"job-{number}", pods))

    profiler = cProfile.Profile() if profile else None
    if profiler is not None:
        profiler.enable()
    cpu, began = time.process_time(), time.perf_counter()
    await asyncio.gather(*(submit() for _ in range(SUBMITTERS)))
    submitted = time.perf_counter() - began
    async with asyncio.timeout(600):
        await progress.all_created.wait()
        created = time.perf_counter() - began
        await progress.all_running.wait()
    ran = time.perf_counter() - began
    await settled(door)
    cpu = time.process_time() - cpu
    if profiler is not None:
        profiler.disable()
        profiler.dump_stats(profile)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    await server.close()
    if profile or "BENCH_DETAIL" in os.environ:
        for what, count in door.detail.most_common(25):
            print(f"  {count:6} {what}")
    controllers = door.writes["vc-controller-manager"] / total
    return {
        "submitted": submitted, "created": created, "running": ran, "cpu": cpu, "controllers": controllers,
        "writes": sum(door.writes.values()) / total, "events": door.events / total,
    }  # fmt: skip


async def settled(door: Door) -> None:
    """Statuses and Events that follow are written too before the count is taken."""
    before, now = -1, 0
    while before != now:
        before = now
        await asyncio.sleep(2)
        now = sum(door.writes.values()) + door.events + door.leases


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--store", choices=["memory", "sqlite", "both"], default="both")
    parser.add_argument("--shapes", default="1x1000,100x10,1000x1")
    parser.add_argument("--nodes", type=int, default=100, help="simulated nodes")
    parser.add_argument("--profile", default="", help="write a cProfile of the last measurement")
    options = parser.parse_args()
    sys.setswitchinterval(THREAD_SWITCH_INTERVAL.total_seconds())
    print(f"{os.cpu_count()} CPUs, load {os.getloadavg()[0]:.1f}, {options.nodes} simulated nodes")
    print("| store | jobs x pods | submitted | all created | pods/s | all running | CPU "
          "| CPU/pod | calibration | writes/pod by controllers | by all | events/pod |")  # fmt: skip
    print("|---|---|---|---|---|---|---|---|---|---|---|---|")
    for kind in ("memory", "sqlite") if options.store == "both" else (options.store,):
        for shape in options.shapes.split(","):
            jobs, pods = (int(part) for part in shape.split("x"))
            with tempfile.TemporaryDirectory() as folder:
                store: Store = MemoryStore() if kind == "memory" else SqliteStore(Path(folder) / "store.db")
                with survivors_frozen():  # as in `volcano up`
                    found = uvloop.run(measure(store, jobs, pods, options.nodes, options.profile))
            rate, each = jobs * pods / found["created"], found["cpu"] / jobs / pods * 1000
            print(
                f"| {kind} | {jobs} x {pods} | {found['submitted']:.2f} s | {found['created']:.2f} s | {rate:.0f} "
                f"| {found['running']:.2f} s | {found['cpu']:.1f} s | {each:.2f} ms | {calibration():.3f} s "
                f"| {found['controllers']:.2f} | {found['writes']:.2f} | {found['events']:.2f} |",
                flush=True,
            )


def calibration() -> float:
    """CPU seconds of a fixed piece of work: absolute figures of two runs compare only as far as these do."""
    began = time.process_time()
    for _ in range(3_000_000):
        pass
    return time.process_time() - began


if __name__ == "__main__":
    main()
