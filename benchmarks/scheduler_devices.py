"""A cycle with many GPUs: `python benchmarks/scheduler_devices.py [--nodes 5000] [--pods 10000] [--repeat 3]`.

Nodes of 8 GPUs, pods of mixed shapes (shares of a GPU, one, two, four and eight) in gangs of ten. The same cycle is
measured with nodeorder alone, with deviceshare, with fragmentation, and with both: processor time, best of N.

With claims (dynamic resource allocation) every node publishes its GPUs as one ResourceSlice, and pods have claims of
one, two, four or eight devices, of a model chosen by a CEL selector, with alternatives, or shared by a gang. After the
first cycle its claims count as allocated and its pods as bound, and a cycle for one more gang is measured: that is
what a change costs on a full cluster. `spinning` is what a fixed loop costs on this machine, to compare figures by.
"""

from __future__ import annotations

import argparse
import gc
import time
from typing import Any

import device_claim_cluster as claiming

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


def spinning() -> float:
    """Seconds of processor time that ten million rounds of an empty loop take here."""
    begun = time.process_time()
    for _ in range(10_000_000):
        pass
    return time.process_time() - begun


def measure_claims(nodes: int, pods: int, repeat: int) -> None:
    lists = claiming.cluster(nodes, pods)
    config = parse_config(PLAIN + "  - {name: nodeorder}\n", known_actions=ACTIONS)
    made = snapshot_from(lists)
    gc.collect()
    gc.freeze()
    for number in range(repeat):
        begun = time.process_time()
        decisions = cycle(made, config, SeededChance(0), messages=False)
        spent = time.process_time() - begun
        which = "first cycle, slices are read" if not number else "later cycle"
        print(f"{f'claims: {which}':32} {spent * 1000:8.0f} ms        {len(decisions.binds)} binds", flush=True)
    measure_one_more(lists, decisions, config, repeat)


def measure_one_more(lists: dict[str, Any], decisions: Any, config: Any, repeat: int) -> None:
    """All that was decided is done; another pod with a claim arrives."""
    nodes = {bind.uid: bind.node for bind in decisions.binds}
    given = {choice.claim.name: choice for choices in decisions.devices.values() for choice in choices}
    for pod in lists["pods"]:
        if pod["metadata"]["uid"] in nodes:
            pod["spec"]["nodeName"] = nodes[pod["metadata"]["uid"]]
            pod["status"]["phase"] = "Running"
    for claim in lists["resourceClaims"]:
        if claim["metadata"]["name"] in given:
            claim["status"] = {"allocation": given[claim["metadata"]["name"]].allocation}
    bound = {
        pod["metadata"]["annotations"]["scheduling.k8s.io/group-name"]
        for pod in lists["pods"]
        if pod["spec"].get("nodeName")
    }
    lists["pods"] = [pod for pod in lists["pods"] if pod["spec"].get("nodeName")]
    lists["podGroups"] = [group for group in lists["podGroups"] if group["metadata"]["name"] in bound]
    for plural, items in claiming.gang("one-more", claiming.KINDS[1], 1).items():
        lists[plural] += items
    later = snapshot_from(lists)
    gc.collect()
    gc.freeze()
    spent = []
    for _ in range(repeat + 1):
        begun = time.process_time()
        found = cycle(later, config, SeededChance(0), messages=False)
        spent.append(time.process_time() - begun)
    best = min(spent[1:])
    print(f"{'claims: one more pod':32} {best * 1000:8.0f} ms        {len(found.binds)} binds", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=5000)
    parser.add_argument("--pods", type=int, default=10_000)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--only", choices=("claims", "resources"))
    asked = parser.parse_args()
    print(f"{'spinning':32} {spinning() * 1000:8.0f} ms", flush=True)
    if asked.only != "resources":
        measure_claims(asked.nodes, asked.pods, asked.repeat)
        gc.unfreeze()
    if asked.only != "claims":
        measure_resources(asked)


def measure_resources(asked: argparse.Namespace) -> None:
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
