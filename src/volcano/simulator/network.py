"""An optional network model: how long a job runs where its pods are.

A job with traffic repeats steps. Each step takes a time of computation, then its pods exchange bytes: every pair of
pods of two roles so many. Pods on one node share that node's memory; traffic between two nodes of one rack takes the
rack's bandwidth, and between racks the bandwidth across. The pairs of nodes work at once, but all that a node exchanges
with others passes through its own link, which has the rack's bandwidth. A step lasts as long as the slowest of these.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from volcano.simulator.jobs import WorkloadJob


@dataclass(slots=True, frozen=True)
class TrafficPattern:
    """What a job does in a step: seconds of computation, and bytes between each pair of pods of two roles."""

    steps: int
    seconds: float
    between: Mapping[tuple[str, str], float]


@dataclass(slots=True)
class NetworkModel:
    """Bandwidths in bytes per second; `racks` says in which rack a node is."""

    same_node: float
    same_rack: float
    across: float
    racks: Mapping[str, str] = field(default_factory=dict)
    traffic: Mapping[str, TrafficPattern] = field(default_factory=dict)  # by job

    def run_time(self, job: WorkloadJob, placed: Sequence[tuple[str, str]]) -> float:
        """Seconds from start to end of a job whose pods (role, node) are placed so."""
        pattern = self.traffic.get(job.name)
        if pattern is None:
            return job.run_time
        return pattern.steps * (pattern.seconds + self.step_cost(pattern, placed))

    def step_cost(self, pattern: TrafficPattern, placed: Sequence[tuple[str, str]]) -> float:
        """The largest time that the traffic of a step takes between any two nodes, or within one."""
        by_role: dict[str, Counter[str]] = {}
        for role, node in placed:
            by_role.setdefault(role, Counter())[node] += 1
        sent: Counter[tuple[str, str]] = Counter()
        for (one, other), size in pattern.between.items():
            for here, count in by_role.get(one, Counter[str]()).items():
                for there, many in by_role.get(other, Counter[str]()).items():
                    pairs = count * many
                    if one == other:
                        pairs = count * (count - 1) // 2 if here == there else count * many if here < there else 0
                    first, second = sorted((here, there))
                    sent[first, second] += pairs * size  # type: ignore[assignment]
        links: Counter[str] = Counter()
        for (first, second), amount in sent.items():
            if first != second:
                links[first] += amount
                links[second] += amount
        pairs_cost = (amount / self._bandwidth(*nodes) for nodes, amount in sent.items())
        return max((*pairs_cost, *(amount / self.same_rack for amount in links.values())), default=0.0)

    def _bandwidth(self, one: str, other: str) -> float:
        if one == other:
            return self.same_node
        rack = self.racks.get(one)
        return self.same_rack if rack is not None and rack == self.racks.get(other) else self.across
