"""A cycle with many GPUs: `python benchmarks/scheduler_devices.py [--nodes 5000] [--pods 10000] [--repeat 3]`.

Nodes of 8 GPUs, pods of mixed shapes (shares of a GPU, one, two, four and eight) in gangs of ten. The same cycle is
measured with nodeorder alone, with deviceshare, with fragmentation, and with both: processor time, best of N.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import Any

from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.framework.config import parse_config
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance

GPUS = 8
GANG = 10
SHAPES = (  # cpus, GPUs, thousandths of each
    ("2", 1, 300),
    ("4", 1, 470),
    ("3", 1, 810),
    ("8", 1, 1000),
    ("11", 1, 1000),
    ("20", 2, 1000),
    ("48", 4, 1000),
    ("90", 8, 1000),
)
WEIGHTS = (4, 4, 4, 8, 8, 2, 1, 1)
PLAIN = """
actions: "allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
"""
SHARING = """\
  - name: deviceshare
    arguments: {deviceshare.VGPUEnable: true, deviceshare.SchedulePolicy: binpack, deviceshare.ScheduleWeight: 1}
"""
CONFIGURATIONS = {
    "plain (nodeorder)": (PLAIN + "  - {name: nodeorder}\n", "whole"),
    "fragmentation, whole GPUs": (PLAIN + "  - {name: fragmentation}\n", "whole"),
    "plain (nodeorder), shares": (PLAIN + "  - {name: nodeorder}\n", "shares"),
    "deviceshare": (PLAIN + SHARING, "shares"),
    "deviceshare and fragmentation": (PLAIN + SHARING + "  - {name: fragmentation}\n", "shares"),
}


def a_node(name: str, kind: str) -> dict[str, Any]:
    has = {"cpu": "96", "memory": "384Gi", "pods": "110"}
    annotations = {}
    if kind == "whole":
        has["nvidia.com/gpu"] = str(GPUS)
    else:
        has |= {"volcano.sh/vgpu-number": "800", "volcano.sh/vgpu-memory": "8000", "volcano.sh/vgpu-cores": "800"}
        cards = (f"{name}-{card},100,1000,NVIDIA-A100,true,hami-core" for card in range(GPUS))
        annotations["volcano.sh/node-vgpu-register"] = ":".join(cards) + ":"
    return {"metadata": {"name": name, "annotations": annotations}, "status": {"allocatable": has, "capacity": has}}


def a_pod(name: str, group: str, shape: tuple[str, int, int], kind: str) -> dict[str, Any]:
    cpu, count, milli = shape
    asked = {"volcano.sh/vgpu-number": str(count), "volcano.sh/vgpu-memory": str(milli)}
    if kind == "whole":
        asked = {"nvidia.com/gpu": str(count)}
    container = {"resources": {"requests": {"cpu": cpu, "memory": "8Gi", **asked}, "limits": asked}}
    meta = {"name": name, "namespace": "ns", "uid": name, "annotations": {"scheduling.k8s.io/group-name": group}}
    return {"metadata": meta, "spec": {"containers": [container]}, "status": {"phase": "Pending"}}


def snapshot(nodes: int, pods: int, kind: str) -> Any:
    shapes = [shape for shape, weight in zip(SHAPES, WEIGHTS, strict=True) for _ in range(weight)]
    groups = [f"g{number:05d}" for number in range(pods // GANG)]
    lists = {
        "queues": [{"metadata": {"name": "q"}, "spec": {"weight": 1}, "status": {"state": "Open"}}],
        "podGroups": [
            {
                "metadata": {"name": group, "namespace": "ns"},
                "spec": {"queue": "q", "minMember": GANG},
                "status": {"phase": "Inqueue"},
            }
            for group in groups
        ],
        "nodes": [a_node(f"node-{number:05d}", kind) for number in range(nodes)],
        "pods": [
            a_pod(f"{group}-{index}", group, shapes[number * 7 % len(shapes)], kind)
            for number, group in enumerate(groups)
            for index in range(GANG)
        ],
    }
    return snapshot_from(lists)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    asked = parser.parse_args()
    made: dict[str, Any] = {}
    plain: dict[str, float] = {}
    for name, (text, kind) in CONFIGURATIONS.items():
        if kind not in made:
            made = {kind: snapshot(asked.nodes, asked.pods, kind)}
        config = parse_config(text, known_actions=ACTIONS)
        gc.collect()
        best = float("inf")
        for _ in range(asked.repeat):
            begun = time.process_time()
            decisions = cycle(made[kind], config, SeededChance(0), messages=False)
            best = min(best, time.process_time() - begun)
        base = plain.setdefault(kind, best)
        print(f"{name:32} {best * 1000:8.0f} ms  {best / base:4.1f}x  {len(decisions.binds)} binds", flush=True)


if __name__ == "__main__":
    main()
