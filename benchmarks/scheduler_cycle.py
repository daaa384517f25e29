"""Cycle times on large scenarios: `python benchmarks/scheduler_cycle.py [--repeat N] [--cpu] [NAME…]`.

Scenarios are made by bigscenario.py of the recordings (VOLCANO_BIGSCENARIO, or beside the checkout). For each the best
of N cycles is printed, and how many times faster that is than Volcano's own core on a machine of this kind. With
`--cpu` it is processor time, to compare two versions alternately on a machine that is busy.
"""

from __future__ import annotations

import argparse
import gc
import importlib.util
import os
import resource
import time
from pathlib import Path
from typing import Any

import msgspec

from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.config import parse_config
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.service.replay import scenario_snapshot

NAMES = ("alloc-1000n-100x10", "alloc-5000n-1000x10", "alloc-5000n-100x100", "preempt-1000n", "reclaim-1000n")
VOLCANO = {
    "alloc-1000n-100x10": 4.3,
    "alloc-5000n-1000x10": 75.0,
    "alloc-5000n-100x100": 62.0,
    "preempt-1000n": 0.59,
    "reclaim-1000n": 0.31,
}
BESIDE = Path(__file__).parents[2] / "shared/bench/bigscenario.py"


class Watch:
    def __init__(self, *, cpu: bool) -> None:
        self.read = time.process_time if cpu else time.perf_counter


def scenario(name: str) -> dict[str, Any]:
    path = Path(os.environ.get("VOLCANO_BIGSCENARIO", BESIDE))
    spec = importlib.util.spec_from_file_location("bigscenario", path)
    assert spec is not None and spec.loader is not None, f"{path} is not there"
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(module.make(name)))
    return made


def measure(name: str, repeat: int, watch: Watch) -> None:
    given = scenario(name)
    config = parse_config(given["schedulerConf"], known_actions=ACTIONS)
    begun = watch.read()
    snapshot = scenario_snapshot(given)
    built = watch.read() - begun
    gc.collect()
    best: dict[str, float] = {}
    for _ in range(repeat):
        begun = watch.read()
        decisions = cycle(snapshot, config, SeededChance(0), watch)
        whole = watch.read() - begun
        if not best or decisions.seconds["cycle"] < best["cycle"]:
            best = {**decisions.seconds, "whole": whole}
    parts = "  ".join(f"{action} {best[action] * 1000:.0f}" for action in ("open", *config.actions))
    faster = f"{VOLCANO[name] / best['cycle']:5.0f}x" if name in VOLCANO else ""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    print(f"{name:22} {best['cycle'] * 1000:8.1f} ms {faster}  ({parts})", end="")
    print(f"  whole {best['whole'] * 1000:.0f}  build {built * 1000:.0f}  peak {peak} MB", end="")
    print(f"  {len(decisions.binds)} binds, {len(decisions.evictions)} evictions")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="processor time instead of time by the clock")
    parser.add_argument("names", nargs="*", default=NAMES)
    arguments = parser.parse_args()
    for name in arguments.names:
        measure(name, arguments.repeat, Watch(cpu=arguments.cpu))


if __name__ == "__main__":
    main()
