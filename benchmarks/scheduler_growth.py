"""What a cycle costs as a cluster grows: `python benchmarks/scheduler_growth.py [--repeat N] [--quick]`.

Each cluster is full of running gangs of ten. Then single pods come, one before each cycle; the median of the processor
times of these cycles is printed, with the exponent by which it grows (1: twice the size, twice the cost; 0: none).
Last is 10,000 nodes with 100,000 pods. `--quick` leaves out what has more than 10,000 pods.
"""

from __future__ import annotations

import argparse
import gc
import math
import resource
import statistics
import time
from dataclasses import dataclass, replace
from typing import Any

from volcano.api import core, scheduling
from volcano.api.decode import decode_object
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.core.snapshot import Snapshot, put_group, put_pod
from volcano.scheduler.framework.config import parse_config
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance

CONFIG = """
actions: "enqueue, allocate, backfill"
tiers:
- plugins: [{name: priority}, {name: gang}, {name: conformance}]
- plugins:
  - {name: overcommit}
  - {name: drf}
  - {name: predicates}
  - {name: proportion}
  - {name: nodeorder}
  - {name: binpack}
"""
GANG = 10
CREATED = "2026-01-01T00:00:00Z"


@dataclass(frozen=True)
class Size:
    nodes: int = 1_000
    pods: int = 10_000
    queues: int = 1


@dataclass(frozen=True)
class Cost:
    cycle: float  # seconds of processor time
    build: float
    bytes_a_pod: float


def a_node(number: int) -> dict[str, Any]:
    has = {"cpu": "128", "memory": "512Gi", "pods": "256"}
    ready = [{"type": "Ready", "status": "True"}]
    name = f"n{number:05d}"
    return {
        "metadata": {"name": name, "uid": name, "labels": {"kubernetes.io/hostname": name}},
        "status": {"allocatable": has, "capacity": has, "conditions": ready},
    }


def a_group(name: str, queue: str, phase: str) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "namespace": "ns", "uid": f"pg-{name}", "creationTimestamp": CREATED},
        "spec": {"minMember": 1, "queue": queue},
        "status": {"phase": phase},
    }


def a_pod(group: str, number: int, node: str = "") -> dict[str, Any]:
    name = f"{group}-{number}"
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1", "memory": "2Gi"}}}
    spec: dict[str, Any] = {"schedulerName": "volcano", "containers": [container]}
    if node:
        spec["nodeName"] = node
    return {
        "metadata": {
            "name": name,
            "namespace": "ns",
            "uid": name,
            "creationTimestamp": CREATED,
            "annotations": {"scheduling.k8s.io/group-name": group, "volcano.sh/task-spec": "w"},
        },
        "spec": spec,
        "status": {"phase": "Running" if node else "Pending"},
    }


def filled(size: Size) -> Snapshot:
    gangs = size.pods // GANG
    return snapshot_from(
        {
            "nodes": [a_node(number) for number in range(size.nodes)],
            "queues": [
                {"metadata": {"name": f"q{number}"}, "spec": {"weight": 1}, "status": {"state": "Open"}}
                for number in range(size.queues)
            ],
            "podGroups": [a_group(f"runs-{gang}", f"q{gang % size.queues}", "Running") for gang in range(gangs)],
            "pods": [
                a_pod(f"runs-{gang}", number, f"n{(gang * GANG + number) % size.nodes:05d}")
                for gang in range(gangs)
                for number in range(GANG)
            ],
        }
    )


def measure(size: Size, repeat: int) -> Cost:
    config = parse_config(CONFIG, known_actions=ACTIONS)
    gc.collect()
    before, begun = memory(), time.process_time()
    snapshot = filled(size)
    build = time.process_time() - begun
    gc.collect()
    held = memory() - before
    times = []
    for number in range(repeat + 1):  # the first cycle has everything to decide
        name = f"comes-{number}"
        put_group(snapshot, decode_object(scheduling.PodGroup, a_group(name, "q0", "Inqueue")))
        put_pod(snapshot, decode_object(core.Pod, a_pod(name, 0)))
        begun = time.process_time()
        decisions = cycle(snapshot, config, SeededChance(0))
        times.append(time.process_time() - begun)
        assert [bind.job for bind in decisions.binds] == [f"ns/{name}"], "the new pod should be placed, and no other"
        put_pod(snapshot, decode_object(core.Pod, a_pod(name, 0, decisions.binds[0].node)))
    return Cost(statistics.median(times[1:]), build, held / size.pods)


def memory() -> int:
    """Bytes of this process that are in memory now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def exponent(points: list[tuple[int, float]]) -> float:
    """The slope of the line through the logarithms of sizes and costs."""
    xs, ys = [math.log(size) for size, _ in points], [math.log(cost) for _, cost in points]
    return statistics.linear_regression(xs, ys).slope


def series(field: str, sizes: list[int], repeat: int) -> None:
    points = []
    for number in sizes:
        cost = measure(replace(Size(), **{field: number}), repeat)
        points.append((number, cost.cycle))
        print(f"{field:6} {number:>7,} {cost.cycle * 1000:8.2f} ms", flush=True)
    print(f"{field:6} exponent {exponent(points):5.2f}", flush=True)


def spinning() -> float:
    """Seconds of processor time that ten million rounds of an empty loop take here."""
    begun = time.process_time()
    for _ in range(10_000_000):
        pass
    return time.process_time() - begun


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--quick", action="store_true")
    arguments = parser.parse_args()
    print(f"spinning {spinning() * 1000:.0f} ms")
    series("nodes", [100, 1_000, 10_000], arguments.repeat)
    series("pods", [1_000, 10_000] if arguments.quick else [1_000, 10_000, 100_000], arguments.repeat)
    series("queues", [1, 10, 100, 1_000], arguments.repeat)
    if not arguments.quick:
        cost = measure(Size(10_000, 100_000), arguments.repeat)
        print(f"10,000 nodes, 100,000 pods: one more pod {cost.cycle * 1000:.1f} ms, ", end="")
        print(f"built in {cost.build:.1f} s, {cost.bytes_a_pod / 1024:.1f} KiB a pod")


if __name__ == "__main__":
    main()
