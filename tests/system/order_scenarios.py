"""Generated scenarios of gangs, when the simulator starts each job, and the same jobs as Volcano Jobs."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

from volcano.simulator.draws import Draws
from volcano.simulator.policies import shipped_policy
from volcano.simulator.scenarios.scenario import comparison_of, scenario_from

NODES, CPUS = 3, 4
POLICIES = ("fcfs", "volcano-default", "fcfs-easy", "sjf")
STRICT = ("fcfs", "sjf")
MAX_DRAWS = 400
JOBS_OF_A_SCENARIO, MAX_REFUSED = 8, 20


def cluster_for(policy: str) -> tuple[int, int]:
    """Nodes and cpus of each, for scenarios in real time."""
    return (NODES, CPUS) if policy in STRICT else (1, NODES * CPUS)


def simulated_starts(
    jobs: list[dict[str, Any]], policy: str, cluster: tuple[int, int] = (NODES, CPUS)
) -> dict[str, float]:
    workload = [
        {
            "name": job["name"],
            "submit": job["submit"],
            "runTime": job["run_time"],
            "estimate": "exact",
            "pods": job["pods"],
            "cpu": job.get("cpu", 1),
        }
        for job in jobs
    ]
    found = scenario_from(
        {"cluster": {"nodes": [{"count": cluster[0], "cpu": cluster[1]}]}, "workload": workload}, Path()
    )
    comparison = comparison_of(found)
    comparison.run([shipped_policy(policy)])
    return {name: outcome.start or 0.0 for name, outcome in comparison.runs[policy].outcomes.items()}


def manifest(job: dict[str, Any]) -> dict[str, Any]:
    container = {"name": "main", "image": "x", "resources": {"requests": {"cpu": str(job.get("cpu", 1))}}}
    metadata = {"annotations": {"simulation.volcano.sh/duration": f"{job['run_time']}s"}}
    template = {"metadata": metadata, "spec": {"containers": [container], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch.volcano.sh/v1alpha1",
        "kind": "Job",
        "metadata": {"name": job["name"]},
        "spec": {
            "minAvailable": job["pods"],
            "runningEstimate": f"{job['run_time']}s",
            "tasks": [{"name": "task", "replicas": job["pods"], "template": template}],
        },
    }


def clear_scenario(seed: int, policy: str, gap: float) -> list[dict[str, Any]]:
    """Eight jobs over some seconds, of which no submission, start or end comes within `gap` seconds of another one.

    A system that needs a part of a second for each step then has no reason to start them in another order. The pods of
    a gang end one after the other there, and a policy without a strict order gives what the first of them held to a
    smaller job; the simulator ends them all at once. So only strict policies get gangs. The others get one large node,
    because which of two equal nodes is taken is left to chance.
    """
    draws, jobs, refused = Draws(seed), list[dict[str, Any]](), 0
    for _ in range(MAX_DRAWS):
        submit = round((jobs[-1]["submit"] if jobs else 0.0) + gap * (1.0 + 3.0 * draws.share()), 2)
        run_time, size = round(gap * (5.0 + 20.0 * draws.share()), 2), draws.share()
        shape = {"pods": 2 + int(size * 8)} if policy in STRICT else {"pods": 1, "cpu": 1 + int(size * 9)}
        job = {"name": f"job-{len(jobs)}", "submit": submit, "run_time": run_time, **shape}
        refused += 1
        if _least_gap([*jobs, job], policy) >= gap:
            jobs.append(job)
            refused = 0
        elif refused > MAX_REFUSED and jobs:
            jobs.pop()
            refused = 0
        if len(jobs) == JOBS_OF_A_SCENARIO:
            return jobs
    raise AssertionError(f"with {MAX_DRAWS} drawn jobs there is no scenario with events {gap} s apart")


def _least_gap(jobs: list[dict[str, Any]], policy: str) -> float:
    starts = simulated_starts(jobs, policy, cluster_for(policy))
    moments = {job["submit"] for job in jobs} | set(starts.values())
    moments |= {starts[job["name"]] + job["run_time"] for job in jobs}
    return min(after - before for before, after in pairwise(sorted(moments)))


def unlike(simulated: dict[str, float], found: dict[str, float], at_once: float) -> list[str]:
    """Pairs of jobs that the system started in another order; starts within `at_once` seconds count as one."""
    wrong = [f"{name} never started" for name in simulated.keys() - found.keys()]
    for one, start in simulated.items():
        for other, later in simulated.items():
            if start + at_once < later and {one, other} <= found.keys() and found[one] >= found[other]:
                wrong.append(f"{one} starts at {start:.1f} s and {other} at {later:.1f} s; in the system at "
                             f"{found[one]:.1f} s and {found[other]:.1f} s")  # fmt: skip
    return wrong
