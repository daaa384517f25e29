"""Fair share by weight: two queues of weight 3 and 1 on the same nodes.

The first has more work than fits and borrows what the second does not use. The second arrives; what the first holds
beyond its share is reclaimed until they stand 3:1. When the first runs out of work, the second may have it all.

    python examples/fair_share.py

The whole system runs here, on simulated nodes and virtual time.
"""

from __future__ import annotations

import tempfile
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

from volcano.api.batch import Job
from volcano.app.system import SystemSettings
from volcano.machinery.clock import run_virtually
from volcano.testing.system import VirtualSystem, virtual_system

NODES, NODE_CPU = 4, 8
JOBS = 40  # of each queue: more than the nodes have room for
WEIGHTS = {"research": 3, "teaching": 1}
ARRIVES, LEAVES, ENDS = timedelta(seconds=60), timedelta(seconds=180), timedelta(seconds=260)
LOOK = timedelta(seconds=10)

CONFIGURATION = """\
actions: "enqueue, reclaim, allocate, backfill"
tiers:
- plugins:
  - name: priority
  - name: gang
  - name: conformance
- plugins:
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


@dataclass(frozen=True)
class Share:
    """The CPUs that each queue uses at a moment."""

    at: timedelta
    cpus: dict[str, int]
    event: str = ""


def a_queue(name: str, weight: int) -> dict[str, Any]:
    spec = {"weight": weight, "reclaimable": True}
    return {"apiVersion": "scheduling.volcano.sh/v1beta1", "kind": "Queue", "metadata": {"name": name}, "spec": spec}


def a_job(queue: str, number: int) -> dict[str, Any]:
    container = {"name": "main", "image": "worker", "resources": {"requests": {"cpu": "1"}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [{"name": "worker", "replicas": 1, "template": template}]
    spec = {"minAvailable": 1, "schedulerName": "volcano", "queue": queue, "tasks": tasks}
    metadata = {"name": f"{queue}-{number}"}
    return {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "metadata": metadata, "spec": spec}


def experiment() -> list[Share]:
    """The shares every ten seconds or so, from the first job's arrival on."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "volcano-scheduler.conf"
        path.write_text(CONFIGURATION)
        return run_virtually(_experiment(str(path)))


async def _experiment(configuration: str) -> list[Share]:
    settings = SystemSettings(scheduler_conf=configuration)
    async with virtual_system(nodes=NODES, capacity={"cpu": str(NODE_CPU)}, settings=settings) as system:
        first, second = WEIGHTS
        for name, weight in WEIGHTS.items():
            await system.apply(a_queue(name, weight))
        news: dict[timedelta, tuple[str, Callable[[], Awaitable[None]]]] = {
            timedelta(0): (f"{first} submits {JOBS} jobs of one CPU", lambda: _submit(system, first)),
            ARRIVES: (f"{second} submits {JOBS} too", lambda: _submit(system, second)),
            LEAVES: (f"{first} deletes its jobs", lambda: _withdraw(system, first)),
        }
        began, shares = system.clock.now(), list[Share]()
        while (at := system.clock.now() - began) < ENDS:
            due = min((moment for moment in news if moment <= at), default=None)
            event, happen = news.pop(due) if due is not None else ("", None)
            shares.append(Share(at, {name: _used(system, name) for name in WEIGHTS}, event))
            if happen is not None:
                await happen()
            await system.clock.sleep(LOOK)
        return shares


async def _submit(system: VirtualSystem, queue: str) -> None:
    for number in range(JOBS):
        await system.apply(a_job(queue, number))


async def _withdraw(system: VirtualSystem, queue: str) -> None:
    for number in range(JOBS):
        await system.delete(Job, f"{queue}-{number}")


def _used(system: VirtualSystem, queue: str) -> int:
    pods = (pod for number in range(JOBS) for pod in system.pods(f"{queue}-{number}"))
    return sum(pod.status.phase == "Running" and not pod.is_deleting for pod in pods)


def main() -> None:
    queues = ", ".join(f"{name} (weight {weight})" for name, weight in WEIGHTS.items())
    print(f"{NODES} nodes of {NODE_CPU} CPUs; queues {queues}\n")
    print(f"{'time':>5}  " + "  ".join(f"{name:>8}" for name in WEIGHTS))
    for share in experiment():
        first, second = share.cpus.values()
        bar = "█" * first + "░" * second + "·" * (NODES * NODE_CPU - first - second)
        print(f"{share.at.total_seconds():4.0f}s  {first:>8}  {second:>8}  {bar}  {share.event}".rstrip())


if __name__ == "__main__":
    main()
