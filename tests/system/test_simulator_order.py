"""The same jobs start in the same order in the simulator and in the whole system, for generated scenarios.

The system runs on virtual time with simulated nodes: API server, admission, controllers, scheduler and agent. In real
time `python -m tests.campaigns.simulator_order` does the same with `volcano up`.
"""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from tests.system.order_scenarios import CPUS, NODES, POLICIES, manifest, simulated_starts, unlike
from volcano.app.system import SystemSettings
from volcano.machinery.clock import run_virtually
from volcano.simulator.draws import Draws
from volcano.simulator.policies import SHIPPED
from volcano.testing.system import VirtualSystem, virtual_system

AT_ONCE = 3.0
"""Seconds within which starts count as one: the system needs some steps from a job's end to the next one's start."""


def scenario(seed: int) -> list[dict[str, Any]]:
    """Eight jobs, each submitted at a time of its own; no end falls on a submission."""
    draws, submit, jobs = Draws(seed), 0.0, []
    for number in range(8):
        submit += 7.0 * (1 + int(draws.share() * 6))
        run_time = 20.0 + 10.0 * int(draws.share() * 12) + 0.5 * number
        pods = 1 + int(draws.share() * 9)
        jobs.append({"name": f"job-{number}", "submit": submit, "run_time": run_time, "pods": pods})
    return jobs


async def system_starts(jobs: list[dict[str, Any]], configuration: Path) -> dict[str, float]:
    settings = SystemSettings(scheduler_conf=str(configuration))
    async with virtual_system(nodes=NODES, capacity={"cpu": str(CPUS)}, settings=settings) as system:
        began, starts = system.clock.now(), dict[str, float]()
        waiting, end = list(jobs), began + timedelta(hours=1)
        while len(starts) < len(jobs) and system.clock.now() < end:
            passed = (system.clock.now() - began).total_seconds()
            while waiting and waiting[0]["submit"] <= passed:
                await system.apply(manifest(waiting.pop(0)))
            for job in jobs:
                if job["name"] not in starts and _runs(system, job):
                    starts[job["name"]] = passed
            await system.clock.sleep(timedelta(milliseconds=250))
        return starts


def _runs(system: VirtualSystem, job: dict[str, Any]) -> bool:
    return sum(pod.status.phase in ("Running", "Succeeded") for pod in system.pods(job["name"])) == job["pods"]


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.slow] if seed >= 2 else []) for seed in range(20)]
)
def test_jobs_start_in_the_same_order_as_in_the_system(seed: int, tmp_path: Path) -> None:
    jobs, policy = scenario(seed), POLICIES[seed % len(POLICIES)]
    configuration = tmp_path / "volcano-scheduler.conf"
    configuration.write_text(SHIPPED[policy].text)

    simulated = simulated_starts(jobs, policy)
    found = run_virtually(system_starts(jobs, configuration))

    assert unlike(simulated, found, AT_ONCE) == [], policy
