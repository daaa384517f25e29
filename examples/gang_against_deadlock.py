"""Gang against deadlock: jobs of 2 parameter servers and 4 workers on a machine with room for one and a half of them.

A job trains only while all six pods run together. Scheduled whole or not at all, any number of jobs finish one after
the other; scheduled pod by pod, they hold what the others wait for and none ever starts.

    python examples/gang_against_deadlock.py

The whole system runs here, on a simulated node and virtual time: hours pass in seconds, always in the same way.
"""

from __future__ import annotations

import logging
import tempfile
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

from volcano.api.batch import Job
from volcano.api.bus import Command
from volcano.api.core import Node
from volcano.api.scheme import resource_type
from volcano.app.system import SystemSettings
from volcano.machinery.clock import run_virtually
from volcano.testing.system import VirtualSystem, virtual_system

POD_CPU, JOB_PODS, MACHINE_CPU = 1, 6, 9
TRAINING = timedelta(minutes=5)
PATIENCE = timedelta(minutes=20)
LOOK = timedelta(seconds=10)
COMMANDS = resource_type(Command)

CONFIGURATION = """\
actions: "allocate, backfill"
tiers:
- plugins:
  - name: priority
{gang}  - name: conformance
- plugins:
  - name: drf
  - name: predicates
  - name: proportion
  - name: nodeorder
"""


@dataclass(frozen=True)
class Outcome:
    """How it ended: jobs that finished, pods that run for nothing, and when the last job finished."""

    finished: int
    stuck_pods: int
    took: timedelta


def a_job(name: str) -> dict[str, Any]:
    container = {"name": "main", "image": "trainer", "resources": {"requests": {"cpu": str(POD_CPU)}}}
    template = {"spec": {"restartPolicy": "Never", "containers": [container]}}
    tasks = [{"name": role, "replicas": count, "template": template} for role, count in (("ps", 2), ("worker", 4))]
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"minAvailable": JOB_PODS, "schedulerName": "volcano", "tasks": tasks},
    }


def experiment(jobs: int, *, gang: bool) -> Outcome:
    """All jobs wait when the machine opens; when none has finished for twenty minutes, none will."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "volcano-scheduler.conf"
        path.write_text(CONFIGURATION.format(gang="  - name: gang\n" if gang else ""))
        return run_virtually(_experiment(jobs, str(path)))


async def _experiment(jobs: int, configuration: str) -> Outcome:
    settings = SystemSettings(scheduler_conf=configuration)
    async with virtual_system(nodes=1, capacity={"cpu": str(MACHINE_CPU)}, settings=settings) as system:
        names = [f"train-{number}" for number in range(jobs)]
        await system.patch(Node, "sim-0", {"spec": {"unschedulable": True}})
        for name in names:
            await system.apply(a_job(name))
        await system.until(lambda: all(len(system.pods(name)) == JOB_PODS for name in names))
        await system.patch(Node, "sim-0", {"spec": {"unschedulable": None}})
        return await _watch(system, names)


async def _watch(system: VirtualSystem, names: list[str]) -> Outcome:
    began = progress = system.clock.now()
    together: dict[str, datetime] = {}
    finished: list[str] = []
    while len(finished) < len(names) and (now := system.clock.now()) - progress < PATIENCE:
        for name in names:
            if _running(system, name) == JOB_PODS and now - together.setdefault(name, now) >= TRAINING:
                await _end_training(system, system.job(name))
        await system.clock.sleep(LOOK)
        done = [name for name in names if system.phase(name) == "Completed"]
        finished, progress = done, (system.clock.now() if len(done) > len(finished) else progress)
    stuck = sum(_running(system, name) for name in names if name not in finished)
    return Outcome(len(finished), stuck, progress - began)


def _running(system: VirtualSystem, name: str) -> int:
    return sum(pod.status.phase == "Running" for pod in system.pods(name))


async def _end_training(system: VirtualSystem, job: Job) -> None:
    """Simulated pods do not talk to one another; this is what their training would have come to."""
    target = {"apiVersion": "batch.volcano.sh/v1alpha1", "kind": "Job", "name": job.name, "uid": job.uid}
    metadata = {"generateName": f"{job.name}-", "namespace": job.namespace}
    await system.client.create(COMMANDS, {"metadata": metadata, "target": target, "action": "CompleteJob"})


def main() -> None:
    logging.getLogger("volcano").setLevel(logging.ERROR)  # it warns, rightly, of what half of this does on purpose
    print(f"a machine of {MACHINE_CPU} CPUs; jobs of 2 ps + 4 workers, {POD_CPU} CPU each, that train for {TRAINING}\n")
    print(f"{'jobs':>4}  {'gang':<4}  {'finished':>8}  {'after':>8}  outcome")
    for gang in (True, False):
        for jobs in (1, 2, 5):
            outcome = experiment(jobs, gang=gang)
            whole = outcome.finished == jobs
            took = f"{outcome.took.total_seconds() / 60:.0f} min" if whole else "never"
            said = "all finish" if whole else f"deadlock: {outcome.stuck_pods} pods run, each waits for others"
            print(f"{jobs:>4}  {'on' if gang else 'off':<4}  {outcome.finished:>8}  {took:>8}  {said}", flush=True)


if __name__ == "__main__":
    main()
