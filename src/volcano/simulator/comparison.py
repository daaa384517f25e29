"""A comparison: one workload on one cluster under each of several policies, and report.json about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from volcano.api import core
from volcano.simulator.clusters import EmptyCluster, capacity, default_queues
from volcano.simulator.engine import Engine
from volcano.simulator.figures import figures
from volcano.simulator.jobs import JobOutcome, WorkloadJob
from volcano.simulator.policies import SchedulingPolicy
from volcano.simulator.workloads.swf import UnreadableLines

Progress = Callable[[str, int], None]  # policy, jobs finished


@dataclass(slots=True)
class PolicyComparison:
    """What was run, and what became of each job under each policy."""

    nodes: Sequence[core.Node]
    jobs: Sequence[WorkloadJob]
    unreadable: UnreadableLines = field(default_factory=UnreadableLines)
    seed: int = 0
    never_runnable: dict[str, str] = field(default_factory=dict)
    outcomes: dict[str, dict[str, JobOutcome]] = field(default_factory=dict)  # by policy, by job
    doubts: dict[str, Sequence[str]] = field(default_factory=dict)

    def run(self, policies: Sequence[SchedulingPolicy], on_progress: Progress | None = None) -> None:
        empty = EmptyCluster(self.nodes)
        self.never_runnable = {job.name: why for job in self.jobs if (why := empty.why_never_runnable(job))}
        for policy in policies:
            self.outcomes[policy.name] = self._outcomes_under(policy, on_progress)
            self.doubts[policy.name] = policy.doubts

    def _outcomes_under(self, policy: SchedulingPolicy, on_progress: Progress | None) -> dict[str, JobOutcome]:
        def report(_now: float, finished: int) -> None:
            if on_progress is not None:
                on_progress(policy.name, finished)

        engine = Engine(self.nodes, default_queues(), policy.config, seed=self.seed, on_progress=report)
        engine.submit(job for job in self.jobs if job.name not in self.never_runnable)
        engine.run()
        return engine.outcomes

    def report(self) -> dict[str, Any]:
        has = capacity(self.nodes)
        return {
            "policies": {
                name: figures(outcomes.values(), has, self.never_runnable) for name, outcomes in self.outcomes.items()
            },
            "cluster": {"nodes": len(self.nodes), "capacity": dict(sorted(has.items()))},
            "seed": self.seed,
            "unreadable_lines": {"count": self.unreadable.count, "named": self.unreadable.named},
            "doubts": {name: list(doubts) for name, doubts in self.doubts.items() if doubts},
        }


def report_text(report: Mapping[str, Any]) -> str:
    """The same report gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
