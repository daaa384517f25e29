"""Small pieces of work whose cost `make bench-check` compares between two commits: `check_cases.py NAME`, or `--list`.

They use only what has kept its name and meaning, since they also run on the sources of an earlier release. Each builds
what it needs first and then measures the CPU time of the work itself; the last line printed is JSON.
"""

from __future__ import annotations

import asyncio
import gc
import json
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

NODES = 100


def cycle() -> float:
    """One cycle: 1,000 pods in gangs of ten on 1,000 nodes."""
    return _cycle('actions: "enqueue, allocate, backfill"', running=0)


def preempt() -> float:
    """One cycle in which 200 pods of a higher priority displace others on full nodes."""
    return _cycle('actions: "enqueue, allocate, preempt"', running=4)


def _cycle(actions: str, running: int) -> float:
    from volcano.scheduler.actions import ACTIONS
    from volcano.scheduler.core.assemble import snapshot_from
    from volcano.scheduler.framework.config import parse_config
    from volcano.scheduler.loop import cycle as run_cycle
    from volcano.scheduler.model import SeededChance

    names = ("gang", "priority", "drf", "predicates", "nodeorder", "binpack", "proportion")
    plugins = "".join(f"  - {{name: {name}}}\n" for name in names)
    config = parse_config(f"{actions}\ntiers:\n- plugins:\n{plugins}", known_actions=ACTIONS)
    snapshot = snapshot_from(_lists(nodes=1000, gangs=20 if running else 100, running=running))
    return _fastest(lambda: run_cycle(snapshot, config, SeededChance(0)), 3)


def _lists(*, nodes: int, gangs: int, running: int) -> dict[str, Any]:
    has = {"cpu": "16", "memory": "64Gi", "pods": "110"}

    def group(name: str, phase: str, priority: str) -> dict[str, Any]:
        spec = {"queue": "q", "minMember": 10 if phase != "Running" else 1, "priorityClassName": priority}
        return {"metadata": {"name": name, "namespace": "ns"}, "spec": spec, "status": {"phase": phase}}

    def pod(name: str, group: str, node: str, priority: int) -> dict[str, Any]:
        container = {"name": "c", "resources": {"requests": {"cpu": "4", "memory": "8Gi"}}}
        meta = {"name": name, "namespace": "ns", "uid": name, "annotations": {"scheduling.k8s.io/group-name": group}}
        spec = {"containers": [container], "nodeName": node, "priority": priority}
        return {"metadata": meta, "spec": spec, "status": {"phase": "Running" if node else "Pending"}}

    classes = [{"metadata": {"name": name}, "value": value} for name, value in (("low", 1), ("high", 100))]
    waiting = [f"g{number:04}" for number in range(gangs)]
    pods = [pod(f"{name}-{index}", name, "", 100) for name in waiting for index in range(10)]
    groups = [group(name, "Inqueue", "high") for name in waiting]
    for number in range(nodes if running else 0):
        groups.append(group(f"r{number:04}", "Running", "low"))
        pods += [pod(f"r{number:04}-{index}", f"r{number:04}", f"n{number:04}", 1) for index in range(running)]
    return {
        "queues": [{"metadata": {"name": "q"}, "spec": {"weight": 1}, "status": {"state": "Open"}}],
        "priorityClasses": classes,
        "podGroups": groups,
        "pods": pods,
        "nodes": [
            {"metadata": {"name": f"n{number:04}"}, "status": {"allocatable": has, "capacity": has}}
            for number in range(nodes)
        ],
    }


def many_jobs() -> float:
    """A hundred jobs of one pod, from submit to Running, in the embedded system on SQLite."""
    return asyncio.run(_jobs(100, 1))


def large_job() -> float:
    """One job of 300 pods, likewise."""
    return asyncio.run(_jobs(1, 300))


async def _jobs(jobs: int, pods: int) -> float:
    from volcano.api.batch import Job
    from volcano.api.core import Pod
    from volcano.api.meta import Key
    from volcano.api.scheduling import Queue
    from volcano.api.scheme import resource_type
    from volcano.app.admission_plug import VolcanoAdmission
    from volcano.app.system import System
    from volcano.embedded.agent.agent import Agent
    from volcano.embedded.agent.node.settings import simulated_nodes
    from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
    from volcano.embedded.apiserver.server import ApiServer
    from volcano.embedded.apiserver.store.sqlite_store import SqliteStore
    from volcano.machinery.clock import SystemClock

    clock = SystemClock()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        store = SqliteStore(Path(folder) / "store.db")
        server = ApiServer(store, clock=clock, admission=VolcanoAdmission(store))
        await server.start()
        shapes = simulated_nodes(NODES, capacity={"cpu": "16", "memory": "64Gi", "pods": "110"})
        system = System(server, clock, agents=[lambda client: Agent(client, clock, shapes, SimulatedRuntime(clock))])
        running = asyncio.ensure_future(system.run())
        await system.ready()
        started: set[str] = set()
        all_started = asyncio.Event()

        def changed(change: Any) -> None:
            if change.object.status.phase == "Running":
                started.add(change.object.name)
            if len(started) >= jobs * pods:
                all_started.set()

        system.controllers.mirror.listen(Pod, changed)
        client = system.client("bench")
        while (await client.get(Queue, Key("", "default"))).status.state != "Open":  # jobs are refused before  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        begun = time.process_time()
        await asyncio.gather(*(client.create(resource_type(Job), _job(number, pods)) for number in range(jobs)))
        async with asyncio.timeout(250):
            await all_started.wait()
        took = time.process_time() - begun
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await server.close()
    return took


def _job(number: int, pods: int) -> dict[str, Any]:
    container = {"name": "main", "image": "any", "resources": {"requests": {"cpu": "100m", "memory": "64Mi"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    task = {"name": "worker", "replicas": pods, "template": template}
    meta = {"name": f"job-{number}", "namespace": "default"}
    return {"metadata": meta, "spec": {"minAvailable": pods, "tasks": [task]}}


def start() -> float:
    """What `vcctl --help` and `volcano --help` import, in a process of its own."""
    begun = time.process_time()
    import volcano.app.main
    import volcano.cli.programs  # noqa: F401

    return time.process_time() - begun


def _fastest(work: Callable[[], Any], repeat: int) -> float:
    taken = []
    for _ in range(repeat):
        gc.collect()
        begun = time.process_time()
        work()
        taken.append(time.process_time() - begun)
    return min(taken)


CASES: dict[str, Callable[[], float]] = {
    "cycle": cycle,
    "preempt": preempt,
    "many-jobs": many_jobs,
    "large-job": large_job,
    "start": start,
}


def main() -> None:
    if sys.argv[1:] == ["--list"]:
        print("\n".join(CASES))
        return
    if len(sys.argv) != 2 or sys.argv[1] not in CASES:
        raise SystemExit(f"usage: check_cases.py --list | {' | '.join(CASES)}")
    print(json.dumps({"case": sys.argv[1], "cpuSeconds": CASES[sys.argv[1]]()}))


if __name__ == "__main__":
    main()
