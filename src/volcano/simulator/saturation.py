"""Saturation: pods drawn from a trace arrive one after the other and never end; how much of a resource is given out.

This is how "Beware of Fragmentation" (USENIX ATC 2023) compares policies: what is not given out although pods wait for
it is stranded. Pods that arrive together are decided about in one cycle, in the order of their arrival.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from volcano.api import core
from volcano.api.quantity import parse_quantity
from volcano.simulator.clusters import capacity, default_queues
from volcano.simulator.draws import Draws
from volcano.simulator.engine import Engine
from volcano.simulator.jobs import WorkloadJob
from volcano.simulator.policies import SchedulingPolicy

FOREVER_SECONDS: Final = 1e9
PODS_TOGETHER: Final = 1000
MAX_SAMPLED_JOBS: Final = 1_000_000


class InvalidSaturation(ValueError):
    """Nothing can be drawn; the message says why."""


@dataclass(slots=True, frozen=True)
class SaturationCurve:
    """What of the resource was given out, and what had been asked for, as shares of the cluster."""

    arrived: tuple[float, ...]
    allocated: tuple[float, ...]

    def allocated_at(self, arrived: float) -> float:
        """When so much had arrived."""
        for asked, given in zip(self.arrived, self.allocated, strict=True):
            if asked >= arrived - 1e-9:
                return given
        return self.allocated[-1] if self.allocated else 0.0


def sampled_jobs(
    jobs: Sequence[WorkloadJob], resource: str, amount: float, seed: int, together: int = PODS_TOGETHER
) -> list[WorkloadJob]:
    """Jobs drawn with replacement until they ask for `amount` of the resource; they never end."""
    if not any(demand_of(job, resource) for job in jobs):
        raise InvalidSaturation(f"no job of the workload asks for {resource}")
    draws = Draws(seed)
    found: list[WorkloadJob] = []
    asked = 0.0
    while asked < amount - 1e-9 and len(found) < MAX_SAMPLED_JOBS:
        drawn = jobs[int(draws.share() * len(jobs))]
        asked += demand_of(drawn, resource)
        place = len(found)
        found.append(
            replace(
                drawn,
                name=f"job-{place:07d}",
                submit=float(place // together),
                run_time=FOREVER_SECONDS,
                estimate=None,
            )
        )
    return found


def demand_of(job: WorkloadJob, resource: str) -> float:
    return sum(role.count * float(parse_quantity(role.requests.get(resource, "0"))) for role in job.roles)


def saturate(
    nodes: Sequence[core.Node],
    jobs: Sequence[WorkloadJob],
    policy: SchedulingPolicy,
    resource: str,
    seed: int = 0,
    on_progress: Callable[[float], None] | None = None,
) -> SaturationCurve:
    """Submit the jobs in order and read off what is given out after each."""
    whole = capacity(nodes).get(resource, 0.0)
    if whole <= 0.0:
        raise InvalidSaturation(f"no node has {resource}")
    engine = Engine(nodes, default_queues(), policy.config, seed=seed)
    engine.submit(jobs)
    moments = sorted({job.submit for job in jobs})
    for place, moment in enumerate(moments):
        engine.run(until=moment)
        if on_progress is not None:
            on_progress((place + 1) / len(moments))
    arrived, allocated = 0.0, 0.0
    asked: list[float] = []
    given: list[float] = []
    for job in jobs:
        demand = demand_of(job, resource) / whole
        arrived += demand
        if engine.outcomes[job.name].start is not None:
            allocated += demand
        asked.append(arrived)
        given.append(allocated)
    return SaturationCurve(tuple(asked), tuple(given))
