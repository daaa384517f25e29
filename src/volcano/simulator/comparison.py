"""A comparison: one workload on one cluster under each of several policies, and report.json about it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from volcano.api import core, scheduling, topology
from volcano.simulator.clusters import EmptyCluster, capacity, default_queues
from volcano.simulator.engine import Engine
from volcano.simulator.figures import MAX_NAMED_JOBS, figures
from volcano.simulator.jobs import JobOutcome, WorkloadJob
from volcano.simulator.network import NetworkModel
from volcano.simulator.node_changes import NodeChange
from volcano.simulator.policies import SchedulingPolicy
from volcano.simulator.repetitions import Repetitions
from volcano.simulator.timelines import Timelines
from volcano.simulator.workloads.swf import UnreadableLines

Progress = Callable[[str, int], None]  # policy, jobs finished


@dataclass(slots=True)
class PolicyRun:
    """What became of each job under one policy, and the cluster meanwhile."""

    outcomes: dict[str, JobOutcome]
    timelines: Timelines
    now: float  # when the run ended
    repetitions: Repetitions = field(default_factory=Repetitions)


@dataclass(slots=True)
class PolicyComparison:
    """What was run, and what became of each job under each policy."""

    nodes: Sequence[core.Node]
    jobs: Sequence[WorkloadJob]
    unreadable: UnreadableLines = field(default_factory=UnreadableLines)
    seed: int = 0
    queues: Sequence[scheduling.Queue] = field(default_factory=default_queues)
    priority_classes: Sequence[core.PriorityClass] = ()
    hypernodes: Sequence[topology.HyperNode] = ()
    changes: Sequence[NodeChange] = ()
    network: NetworkModel | None = None
    until: float | None = None
    running: Sequence[tuple[WorkloadJob, Mapping[str, Sequence[str]]]] = ()  # as it begins: jobs, nodes by role
    never_runnable: dict[str, str] = field(default_factory=dict)
    runs: dict[str, PolicyRun] = field(default_factory=dict)  # by policy
    doubts: dict[str, Sequence[str]] = field(default_factory=dict)

    def run(self, policies: Sequence[SchedulingPolicy], on_progress: Progress | None = None) -> None:
        added = [change.node for change in self.changes if change.is_there]
        empty = EmptyCluster([*self.nodes, *added])
        self.never_runnable = {job.name: why for job in self.jobs if (why := empty.why_never_runnable(job))}
        for policy in policies:
            self.runs[policy.name] = self._run_under(policy, on_progress)
            self.doubts[policy.name] = policy.doubts

    def _run_under(self, policy: SchedulingPolicy, on_progress: Progress | None) -> PolicyRun:
        def report(_now: float, finished: int) -> None:
            if on_progress is not None:
                on_progress(policy.name, finished)

        engine = Engine(
            self.nodes,
            self.queues,
            policy.config,
            priority_classes=self.priority_classes,
            hypernodes=self.hypernodes,
            network=self.network,
            seed=self.seed,
            on_progress=report,
        )
        engine.expect_changes(self.changes)
        for job, placed in self.running:
            engine.begin_running(job, placed)
        engine.submit(job for job in self.jobs if job.name not in self.never_runnable)
        engine.run(self.until)
        return PolicyRun(engine.outcomes, engine.recorder.timelines, engine.now, engine.repetitions)

    def report(self) -> dict[str, Any]:
        return {
            "policies": {
                name: {
                    **figures(run.outcomes.values(), run.timelines, self.queues, self.never_runnable, run.now),
                    "policy_cycles": {
                        "instants": run.repetitions.instants,
                        "jobs": {job: of.why for job, of in list(run.repetitions.jobs.items())[:MAX_NAMED_JOBS]},
                    },
                }
                for name, run in self.runs.items()
            },
            "cluster": {"nodes": len(self.nodes), "capacity": dict(sorted(capacity(self.nodes).items()))},
            "seed": self.seed,
            "unreadable_lines": {"count": self.unreadable.count, "named": self.unreadable.named},
            "doubts": {name: list(doubts) for name, doubts in self.doubts.items() if doubts},
        }


def report_text(report: Mapping[str, Any]) -> str:
    """The same report gives the same bytes."""
    return msgspec.json.format(msgspec.json.encode(report), indent=2).decode() + "\n"
