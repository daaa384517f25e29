"""The engine with shortcuts decides the same as the engine that shows every job to every cycle."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api import core, scheduling
from volcano.api.meta import ObjectMeta
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.config import SchedulerConfig, parse_config
from volcano.simulator.clusters import equal_nodes
from volcano.simulator.engine import Engine
from volcano.simulator.jobs import JobOutcome, Role, WorkloadJob
from volcano.simulator.policies import SHIPPED, shipped_policy
from volcano.simulator.shortcuts import has_strict_order, needs_no_idle_cycles

STRICT_PER_QUEUE = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: priority
  - name: easy
    arguments: {easy.strict: true, easy.scope: queue, easy.reservations: 2}
  - name: gang
  - name: predicates
  - name: nodeorder
"""
PREEMPTION = """
actions: "enqueue, allocate, preempt, backfill"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""
CONFIGURATIONS = {
    **{name: shipped_policy(name).config for name in SHIPPED},
    "strict-per-queue": parse_config(STRICT_PER_QUEUE, known_actions=ACTIONS),
    "preemption": parse_config(PREEMPTION, known_actions=ACTIONS),
}


@st.composite
def workloads(draw: st.DrawFn) -> list[WorkloadJob]:
    jobs, submit = [], 0.0
    for number in range(draw(st.integers(1, 30))):
        submit += draw(st.sampled_from([0.0, 0.0, 1.0, 5.0, 40.0]))
        run_time = float(draw(st.integers(0, 40)))
        pods = draw(st.integers(1, 6))
        jobs.append(
            WorkloadJob(
                f"job-{number:02d}",
                submit,
                run_time,
                (Role("task", pods, {"cpu": draw(st.sampled_from(["1", "2", "500m"]))}),),
                estimate=draw(st.sampled_from([None, run_time, run_time * 2, 1.0])),
                queue=draw(st.sampled_from(["default", "default", "other"])),
                priority_class=draw(st.sampled_from(["", "low", "high"])),
                min_available=draw(st.integers(1, pods)),
            )
        )
    return jobs


def outcomes(config: SchedulerConfig, jobs: list[WorkloadJob], *, shortcuts: bool) -> dict[str, JobOutcome]:
    open_status = scheduling.QueueStatus(state="Open")
    engine = Engine(
        equal_nodes(3, "4"),
        [scheduling.Queue(metadata=ObjectMeta(name=name), status=open_status) for name in ("default", "other")],
        config,
        priority_classes=[
            core.PriorityClass(metadata=ObjectMeta(name="low"), value=1),
            core.PriorityClass(metadata=ObjectMeta(name="high"), value=100),
        ],
        shortcuts=shortcuts,
    )
    engine.submit(jobs)
    engine.run()
    return engine.outcomes


@pytest.mark.parametrize("name", CONFIGURATIONS)
@settings(max_examples=12, deadline=None)
@given(jobs=workloads())
def test_shortcuts_change_no_decision(name: str, jobs: list[WorkloadJob]) -> None:
    config = CONFIGURATIONS[name]

    found = outcomes(config, jobs, shortcuts=True)

    assert found == outcomes(config, jobs, shortcuts=False)


def test_only_configurations_that_are_known_to_permit_it_take_shortcuts() -> None:
    def config(text: str) -> SchedulerConfig:
        return parse_config(text, known_actions=ACTIONS)

    assert has_strict_order(CONFIGURATIONS["fcfs"])
    assert has_strict_order(CONFIGURATIONS["sjf"])
    assert not has_strict_order(CONFIGURATIONS["fcfs-easy"])
    assert not has_strict_order(CONFIGURATIONS["volcano-default"])
    assert not has_strict_order(config(STRICT_PER_QUEUE.replace("easy.reservations: 2", "easy.unheard-of: 2")))
    assert not has_strict_order(config(STRICT_PER_QUEUE.replace("name: nodeorder", "name: drf")))
    assert needs_no_idle_cycles(CONFIGURATIONS["volcano-default"])
    assert not needs_no_idle_cycles(config('actions: "allocate, shuffle"\ntiers: [{plugins: [{name: gang}]}]'))
    assert not needs_no_idle_cycles(config('actions: "allocate"\ntiers: [{plugins: [{name: tdm}]}]'))
