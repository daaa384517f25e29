"""The engine with the plugin easy starts every job when an independent simulation starts it."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests import needs
from tests.unit.simulator.reference import RigidJob, start_times
from volcano.api import core, scheduling
from volcano.api.meta import ObjectMeta
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.config import parse_config
from volcano.simulator.clusters import default_queues, node
from volcano.simulator.engine import Engine
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.workloads.swf import read_swf

TRACE = Path(__file__).parents[4] / "shared/traces/lublin_256.swf"
CONFIGURATION = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: easy
    arguments: {{easy.order: {order}, easy.strict: {strict}, easy.scope: cluster}}
  - name: gang
    enableJobOrder: false
  - name: predicates
"""
CLASSES = [
    core.PriorityClass(metadata=ObjectMeta(name="low"), value=1),
    core.PriorityClass(metadata=ObjectMeta(name="high"), value=100),
]
POLICIES = [(shortest, backfill) for shortest in (False, True) for backfill in (False, True)]


def engine(nodes: int, *, shortest_first: bool, backfill: bool, text: str = "") -> Engine:
    has = {"cpu": "1", "memory": "1Gi", "pods": "110"}
    text = text or CONFIGURATION.format(
        order="shortest" if shortest_first else "submit", strict="false" if backfill else "true"
    )
    return Engine(
        [
            core.Node(metadata=ObjectMeta(name=f"n{index:04d}"), status=core.NodeStatus(allocatable=has, capacity=has))
            for index in range(nodes)
        ],
        [scheduling.Queue(metadata=ObjectMeta(name="default"), status=scheduling.QueueStatus(state="Open"))],
        parse_config(text, known_actions=ACTIONS),
        priority_classes=CLASSES,
    )


def simulated(job: RigidJob) -> WorkloadJob:
    role = Role("task", job.size, {"cpu": "1"})
    return WorkloadJob(f"job-{job.number:04d}", job.submit, job.run_time, (role,), estimate=job.run_time)


@st.composite
def workloads(draw: st.DrawFn) -> list[RigidJob]:
    jobs, submit = [], 0
    for number in range(draw(st.integers(1, 25))):
        submit += draw(st.integers(0, 30))
        jobs.append(RigidJob(number, float(submit), float(draw(st.integers(1, 60))), draw(st.integers(1, 8))))
    return jobs


@pytest.mark.parametrize(("shortest_first", "backfill"), POLICIES)
@settings(max_examples=25, deadline=None)
@given(jobs=workloads())
def test_jobs_start_when_an_independent_simulation_starts_them(
    shortest_first: bool, backfill: bool, jobs: list[RigidJob]
) -> None:
    of = engine(8, shortest_first=shortest_first, backfill=backfill)

    of.submit(simulated(job) for job in jobs)
    of.run()

    expected = start_times(jobs, 8, shortest_first=shortest_first, backfill=backfill)
    assert {int(name[4:]): outcome.start for name, outcome in of.outcomes.items()} == expected


CARDS = {"volcano.sh/vgpu-number": "1", "volcano.sh/vgpu-memory": "600"}


def test_the_successor_of_an_evicted_pod_has_none_of_its_cards() -> None:
    text = PREEMPTION.replace("{name: nodeorder}", "{name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}")
    has = {"cpu": "4", "memory": "4Gi", "pods": "9", "volcano.sh/vgpu-number": "9", "volcano.sh/vgpu-memory": "1000"}
    register = {"volcano.sh/node-vgpu-register": "card,9,1000,NVIDIA-A,true,hami-core:"}
    nodes = [node("n", {**has, "volcano.sh/vgpu-cores": "100"}, {}, register)]
    of = Engine(nodes, default_queues(), parse_config(text, known_actions=ACTIONS), priority_classes=CLASSES)
    role = (Role("task", 1, {"cpu": "1", **CARDS}),)
    of.submit(
        [
            WorkloadJob("humble", 0.0, 100.0, role, priority_class="low"),
            WorkloadJob("urgent", 40.0, 10.0, role, priority_class="high"),
        ]
    )
    of.run(until=45.0)

    (waiting,) = [pod for job, pod in _pods(of) if job == "humble"]
    (running,) = [pod for job, pod in _pods(of) if job == "urgent"]
    assert "volcano.sh/vgpu-ids-new" in running.annotations
    assert not [key for key in waiting.annotations if "vgpu" in key or "bind" in key]
    of.run()
    assert of.outcomes["humble"].end == 150.0


def _pods(of: Engine) -> list[tuple[str, core.Pod]]:
    return [(name, pod) for name, live in of._jobs.items() for pod in live.pods.values()]


PREEMPTION = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins: [{name: priority}, {name: gang, enablePreemptable: false}, {name: conformance}]
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def test_an_evicted_gang_starts_again_from_the_beginning() -> None:
    of = engine(2, shortest_first=False, backfill=False, text=PREEMPTION)
    role = Role("task", 2, {"cpu": "1"})

    of.submit(
        [
            WorkloadJob("humble", 0.0, 100.0, (role,), priority_class="low"),
            WorkloadJob("urgent", 40.0, 10.0, (role,), priority_class="high"),
        ]
    )
    of.run()

    humble, urgent = of.outcomes["humble"], of.outcomes["urgent"]
    assert (urgent.start, urgent.end) == (40.0, 50.0)
    assert (humble.start, humble.last_start, humble.end) == (0.0, 50.0, 150.0)
    assert humble.attempts == 2
    assert humble.evictions >= 1
    assert humble.lost_seconds == 80.0


OPPOSED = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - {name: easy, arguments: {easy.order: submit, easy.strict: true}}
  - {name: priority, enableJobOrder: false}
  - {name: gang, enableJobOrder: false, enablePreemptable: false}
  - {name: conformance}
- plugins: [{name: predicates}, {name: nodeorder}]
"""


def test_a_policy_that_evicts_what_it_starts_is_named_and_the_simulation_ends() -> None:
    of = engine(2, shortest_first=False, backfill=False, text=OPPOSED)
    role = Role("task", 2, {"cpu": "1"})

    of.submit(
        [
            WorkloadJob("first", 0.0, 100.0, (role,), estimate=100.0, priority_class="low"),
            WorkloadJob("urgent", 40.0, 10.0, (role,), estimate=10.0, priority_class="high"),
        ]
    )
    of.run()

    assert of.repetitions.instants >= 1
    assert list(of.repetitions.jobs) == ["first"]
    assert "as soon as it had started, first at 40 s" in of.repetitions.jobs["first"].why
    assert of.cluster.cycles < 100
    assert {name: outcome.end is not None for name, outcome in of.outcomes.items()} == {"first": True, "urgent": True}


def test_work_that_pods_share_goes_on_as_fast_as_there_are_pods() -> None:
    of = engine(4, shortest_first=False, backfill=False, text=PREEMPTION)
    roles = (Role("driver", 1, {"cpu": "1"}), Role("executor", 3, {"cpu": "1"}))

    of.submit(
        [
            WorkloadJob("early", 0.0, 10.0, (Role("task", 2, {"cpu": "1"}),), preemptable=False),
            WorkloadJob("shared", 1.0, 30.0, roles, min_available=1, workers="executor"),
        ]
    )
    of.run()

    shared = of.outcomes["shared"]
    assert shared.start == 1.0
    assert shared.end == pytest.approx(10.0 + 30.0 - 9.0 / 3.0)  # one of three executors ran for nine seconds
    assert of.outcomes["early"].evictions == 0


def test_without_any_pod_that_works_a_job_does_not_end() -> None:
    of = engine(1, shortest_first=False, backfill=False, text=PREEMPTION)
    roles = (Role("driver", 1, {"cpu": "1"}), Role("executor", 3, {"cpu": "1"}))

    of.submit([WorkloadJob("shared", 0.0, 30.0, roles, min_available=1, workers="executor")])
    of.run()

    assert (of.outcomes["shared"].start, of.outcomes["shared"].end) == (0.0, None)


def test_shared_work_starts_from_the_beginning_when_the_gang_is_broken() -> None:
    of = engine(2, shortest_first=False, backfill=False, text=PREEMPTION)
    roles = (Role("driver", 1, {"cpu": "1"}), Role("executor", 1, {"cpu": "1"}))

    of.submit(
        [
            WorkloadJob("shared", 0.0, 100.0, roles, priority_class="low", workers="executor"),
            WorkloadJob("urgent", 40.0, 10.0, (Role("task", 2, {"cpu": "1"}),), priority_class="high"),
        ]
    )
    of.run()

    assert of.outcomes["shared"].end == 150.0


@pytest.mark.slow
@pytest.mark.skipif(not TRACE.exists(), reason="the trace is not here (../shared/traces)")
@pytest.mark.parametrize(("shortest_first", "backfill"), POLICIES)
def test_a_real_trace_gives_the_published_figures(shortest_first: bool, backfill: bool) -> None:
    trace = read_swf(TRACE, count=300)
    jobs = [RigidJob(int(j.name[4:]), j.submit, j.run_time, j.roles[0].count) for j in trace.jobs]
    of = engine(256, shortest_first=shortest_first, backfill=backfill)

    of.submit(trace.jobs)
    of.run()

    expected = start_times(jobs, 256, shortest_first=shortest_first, backfill=backfill)
    assert {int(name[4:]): outcome.start for name, outcome in of.outcomes.items()} == expected


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.skipif(not TRACE.exists(), reason="the trace is not here (../shared/traces)")
@needs.MANY_MINUTES
@pytest.mark.parametrize("first", [3000, 7500])
@pytest.mark.parametrize("shortest_first", [False, True])
def test_other_slices_of_the_trace_start_as_an_independent_backfill_starts_them(
    first: int, shortest_first: bool
) -> None:
    trace = read_swf(TRACE, first=first, count=1000, exact=True)
    jobs = [RigidJob(int(j.name[4:]), j.submit, j.run_time, j.roles[0].count) for j in trace.jobs]
    of = engine(256, shortest_first=shortest_first, backfill=True)

    of.submit(trace.jobs)
    of.run()

    expected = start_times(jobs, 256, shortest_first=shortest_first, backfill=True)
    assert {int(name[4:]): outcome.start for name, outcome in of.outcomes.items()} == expected
