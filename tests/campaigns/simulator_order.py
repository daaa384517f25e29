"""`python -m tests.campaigns.simulator_order`: jobs start on a real `volcano up` in the order that the simulator says.

Each of the generated scenarios runs in real time, scaled down to some seconds, on a system of its own with simulated
nodes; some of them run at once.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from tests.system.order_scenarios import POLICIES, clear_scenario, cluster_for, manifest, simulated_starts, unlike
from tests.system.real_system import JOBS, PODS, Up
from volcano.simulator.policies import SHIPPED

WAIT_SECONDS = 900.0
LOOK_SECONDS = 0.1
JOB_NAME_LABEL = "volcano.sh/job-name"
BEGUN = ("Running", "Succeeded")


@dataclass
class OrderOutcome:
    seed: int
    policy: str
    simulated: dict[str, float]
    found: dict[str, float]
    wrong: list[str]

    @property
    def latest(self) -> float:
        """How many seconds later than in the simulator a job started at most."""
        return max(self.found[name] - start for name, start in self.simulated.items() if name in self.found)


def run_scenarios(folder: Path, seeds: Iterable[int], *, at_once: int, gap: float) -> list[OrderOutcome]:
    drawn = [(seed, clear_scenario(seed, _policy(seed), gap)) for seed in seeds]
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(lambda each: _run_scenario(folder / f"scenario-{each[0]}", *each, gap), drawn))


def _policy(seed: int) -> str:
    return POLICIES[seed % len(POLICIES)]


def _run_scenario(folder: Path, seed: int, jobs: list[dict[str, Any]], gap: float) -> OrderOutcome:
    folder.mkdir()
    policy = _policy(seed)
    configuration = folder / "volcano-scheduler.conf"
    configuration.write_text(SHIPPED[policy].text)
    nodes, cpus = cluster_for(policy)
    options = ["--ephemeral", "--simulated-nodes", str(nodes), "--node-cpu", str(cpus)]
    up = Up(folder, *options, "--scheduler-conf", str(configuration))
    try:
        up.start()
        found = _starts(up, jobs)
    finally:
        up.clean_up()
    simulated = simulated_starts(jobs, policy, (nodes, cpus))
    return OrderOutcome(seed, policy, simulated, found, unlike(simulated, found, gap / 2))


def _starts(up: Up, jobs: list[dict[str, Any]]) -> dict[str, float]:
    """When all pods of each job were first seen to run, in seconds after the beginning."""
    api, waiting, starts = up.api, list(jobs), dict[str, float]()
    begun: dict[str, set[str]] = {job["name"]: set() for job in jobs}
    began = time.monotonic()
    while len(starts) < len(jobs) and time.monotonic() < began + WAIT_SECONDS:
        passed = time.monotonic() - began
        while waiting and waiting[0]["submit"] <= passed:
            assert api.create(JOBS, manifest(waiting.pop(0))).status == 201
        for pod in api.get(PODS).body["items"]:
            if pod["status"].get("phase") in BEGUN:
                begun[pod["metadata"]["labels"][JOB_NAME_LABEL]].add(pod["metadata"]["name"])
        for job in jobs:
            if job["name"] not in starts and len(begun[job["name"]]) == job["pods"]:
                starts[job["name"]] = time.monotonic() - began
        time.sleep(LOOK_SECONDS)
    return starts


@click.command()
@click.option("--scenarios", type=int, default=20, show_default=True)
@click.option("--at-once", type=int, default=4, show_default=True)
@click.option("--gap", type=float, default=2.0, show_default=True,
              help="Least seconds between two events of a scenario; a busy machine needs more.")  # fmt: skip
def main(scenarios: int, at_once: int, gap: float) -> None:
    folder = Path(tempfile.mkdtemp(prefix="volcano-order-"))
    folder.chmod(0o755)
    try:
        outcomes = run_scenarios(folder, range(scenarios), at_once=at_once, gap=gap)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for outcome in outcomes:
        order = " ".join(name for _, name in sorted((at, name) for name, at in outcome.found.items()))
        click.echo(f"{outcome.seed:3} {outcome.policy:16} {order}; at most {outcome.latest:.2f} s later")
        for line in outcome.wrong:
            click.echo(f"    OTHER ORDER {line}")
    same = sum(not outcome.wrong for outcome in outcomes)
    click.echo(f"the same order in {same} of {len(outcomes)} scenarios")
    raise SystemExit(same < len(outcomes))


if __name__ == "__main__":
    main()
