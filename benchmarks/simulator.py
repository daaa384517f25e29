"""Speed of the simulator on traces: `python benchmarks/simulator.py [--whole] [--traces FOLDER]`.

Prints processor seconds, cycles and peak memory for the first 1,000 jobs of lublin_256.swf with fcfs, and for the pods
of the openb trace; with --whole also for all 10,000 jobs of lublin_256.swf.
"""

from __future__ import annotations

import argparse
import resource
import time
from collections.abc import Sequence
from pathlib import Path

from volcano.api import core
from volcano.simulator.clusters import default_queues, equal_nodes
from volcano.simulator.engine import Engine
from volcano.simulator.jobs import WorkloadJob
from volcano.simulator.policies import shipped_policy
from volcano.simulator.workloads.openb import read_openb_nodes, read_openb_pods
from volcano.simulator.workloads.swf import read_swf

TRACES = Path(__file__).parents[2] / "shared/traces"


def measure(title: str, nodes: Sequence[core.Node], jobs: Sequence[WorkloadJob], policy: str) -> None:
    engine = Engine(nodes, default_queues(), shipped_policy(policy).config)
    engine.submit(jobs)
    began = time.process_time()
    engine.run()
    seconds = time.process_time() - began
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{title}, {policy}: {seconds:.1f} s of processor time, {engine.cycles} cycles, at most {memory:.0f} MiB")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--whole", action="store_true", help="also the whole trace of 10,000 jobs")
    parser.add_argument("--traces", type=Path, default=TRACES, help="the folder with the traces")
    asked = parser.parse_args()
    if not asked.traces.is_dir():
        print(f"nothing is measured: the traces are not in {asked.traces}")
        return
    lublin, processors = asked.traces / "lublin_256.swf", equal_nodes(256, "1")
    measure("1,000 jobs", processors, read_swf(lublin, count=1000).jobs, "fcfs")
    pods = read_openb_pods(asked.traces / "openb_pod_list_default.csv").jobs
    nodes = read_openb_nodes(asked.traces / "openb_node_list_gpu_node.csv")
    measure(f"{len(pods):,} pods on {len(nodes):,} nodes", nodes, pods, "volcano-default")
    if asked.whole:
        measure("10,000 jobs", processors, read_swf(lublin).jobs, "fcfs")


if __name__ == "__main__":
    main()
