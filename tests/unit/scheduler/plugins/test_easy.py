"""easy: promises are kept, nothing that is backfilled breaks them, and other actions respect them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from volcano.api import core, scheduling
from volcano.api.meta import ObjectMeta
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.framework.config import parse_config
from volcano.scheduler.framework.decisions import Decisions
from volcano.simulator.engine import EPOCH, NAMESPACE, Engine
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.testing.clusters import CycleOutcome, cluster, gang, running, share

CONFIGURATION = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - name: easy
    arguments: {{easy.scope: {scope}, easy.reservations: {reservations}, easy.order: {order}}}
  - name: gang
    enableJobOrder: false
  - name: predicates
  - name: nodeorder
"""
LIMITED = """
  - name: capacity
    enableJobEnqueued: false
"""
"""A job that its queue's limit keeps outside the queue has no reservation, so the limit is asked for pods alone."""


@dataclass(frozen=True)
class Promise:
    made: float
    start: float


class Watched(Engine):
    """An engine that remembers every promise."""

    promises: dict[str, list[Promise]]

    def _carry_out(self, decisions: Decisions) -> None:
        for job, reservation in decisions.reservations.items():
            start = (reservation.start - EPOCH) / timedelta(seconds=1)
            self.promises.setdefault(job.removeprefix(f"{NAMESPACE}/"), []).append(Promise(self.now, start))
        super()._carry_out(decisions)


def engine(nodes: list[int], text: str, capability: dict[str, str] | None = None) -> Watched:
    watched = Watched(
        [
            core.Node(
                metadata=ObjectMeta(name=f"n{index}"),
                status=core.NodeStatus(allocatable=has, capacity=has),
            )
            for index, cpus in enumerate(nodes)
            for has in ({"cpu": str(cpus), "memory": f"{cpus * 2}Gi", "pods": "110"},)
        ],
        [
            scheduling.Queue(
                metadata=ObjectMeta(name=name),
                spec=scheduling.QueueSpec(capability=capability if name == "one" else None),
                status=scheduling.QueueStatus(state="Open"),
            )
            for name in ("one", "two")
        ],
        parse_config(text, known_actions=ACTIONS),
        priority_classes=[
            core.PriorityClass(metadata=ObjectMeta(name=name), value=value) for name, value in (("low", 1), ("high", 9))
        ],
    )
    watched.promises = {}
    return watched


@st.composite
def workloads(draw: st.DrawFn) -> list[WorkloadJob]:
    jobs, submit = [], 0
    for number in range(draw(st.integers(2, 12))):
        submit += draw(st.integers(0, 20))
        run_time = float(draw(st.integers(1, 60)))
        roles = []
        for name in ("large", "small")[: draw(st.integers(1, 2))]:
            requests = {"cpu": str(draw(st.integers(1, 2))), "memory": f"{draw(st.integers(1, 3))}Gi"}
            roles.append(Role(name, draw(st.integers(1, 4)), requests))
        jobs.append(
            WorkloadJob(
                f"job-{number:03d}",
                float(submit),
                run_time,
                tuple(roles),
                queue=draw(st.sampled_from(("one", "two"))),
                priority_class=draw(st.sampled_from(("low", "high"))),
                estimate=run_time,
            )
        )
    return jobs


def comes_before(order: str, one: WorkloadJob, other: WorkloadJob) -> bool:
    """Whatever the time at which they were submitted."""
    if order == "shortest":
        return (one.estimate or 0.0) < (other.estimate or 0.0)
    return order == "priority" and (one.priority_class, other.priority_class) == ("high", "low")


@pytest.mark.parametrize(
    ("scope", "reservations", "order"),
    [
        ("queue", 1, "submit"),
        ("queue", 2, "submit"),
        ("cluster", 1, "submit"),
        ("cluster", 3, "submit"),
        ("queue", 1, "shortest"),
        ("cluster", 2, "priority"),
    ],
)
@settings(max_examples=5, deadline=None)
@given(jobs=workloads(), nodes=st.lists(st.integers(2, 4), min_size=2, max_size=5))
def test_with_exact_estimates_no_job_starts_later_than_it_was_promised(
    scope: str, reservations: int, order: str, jobs: list[WorkloadJob], nodes: list[int]
) -> None:
    """A promise ends only when a job that comes first by the configured order is submitted after it."""
    of = engine(nodes, CONFIGURATION.format(scope=scope, reservations=reservations, order=order))

    of.submit(jobs)
    of.run()

    for job in jobs:
        started = of.outcomes[job.name].start
        first = [
            each.submit
            for each in jobs
            if comes_before(order, each, job) and (scope == "cluster" or each.queue == job.queue)
        ]
        for promise in of.promises.get(job.name, []):
            if not any(submit > promise.made for submit in first):
                assert started is not None, job.name
                assert started <= promise.start + 0.001, (job.name, started, promise)


@pytest.mark.parametrize(("scope", "reservations"), [("queue", 1), ("cluster", 2)])
@settings(max_examples=5, deadline=None)
@given(jobs=workloads(), nodes=st.lists(st.integers(2, 4), min_size=2, max_size=5), cpus=st.integers(2, 8))
def test_promises_are_kept_where_a_queue_is_limited(
    scope: str, reservations: int, jobs: list[WorkloadJob], nodes: list[int], cpus: int
) -> None:
    text = CONFIGURATION.format(scope=scope, reservations=reservations, order="submit") + LIMITED
    of = engine(nodes, text, {"cpu": str(cpus)})

    of.submit(jobs)
    of.run()

    for job in jobs:
        for promise in of.promises.get(job.name, []):
            started = of.outcomes[job.name].start
            assert started is not None and started <= promise.start + 0.001, (job.name, started, promise)


def test_a_job_that_is_backfilled_does_not_use_up_the_capability_of_a_promised_one() -> None:
    """Two CPUs of a node are free all the time, but the queue may hold four, and the promised job needs them all."""
    text = CONFIGURATION.format(scope="queue", reservations=1, order="submit") + LIMITED
    of = engine([4, 4], text, {"cpu": "4"})
    of.submit(
        [
            WorkloadJob("runs", 0.0, 100.0, (Role("task", 1, {"cpu": "2"}),), queue="one", estimate=100.0),
            WorkloadJob("waits", 1.0, 10.0, (Role("task", 4, {"cpu": "1"}),), queue="one", estimate=10.0),
            WorkloadJob("late", 2.0, 200.0, (Role("task", 1, {"cpu": "1"}),), queue="one", estimate=200.0),
            WorkloadJob("short", 3.0, 50.0, (Role("task", 1, {"cpu": "1"}),), queue="one", estimate=50.0),
            WorkloadJob("elsewhere", 3.0, 200.0, (Role("task", 1, {"cpu": "1"}),), queue="two", estimate=200.0),
        ]
    )

    of.run()

    starts = {name: of.outcomes[name].start for name in ("waits", "late", "short", "elsewhere")}
    assert starts == {"waits": 100.0, "late": 110.0, "short": 3.0, "elsewhere": 3.0}


def test_a_job_that_never_fits_keeps_nobody_from_a_promise() -> None:
    of = engine([2, 2], CONFIGURATION.format(scope="cluster", reservations=1, order="submit"))
    of.submit(
        [
            WorkloadJob("runs", 0.0, 100.0, (Role("task", 1, {"cpu": "2"}),), queue="one", estimate=100.0),
            WorkloadJob("too-large", 1.0, 10.0, (Role("task", 3, {"cpu": "2"}),), queue="one", estimate=10.0),
            WorkloadJob("waits", 2.0, 10.0, (Role("task", 2, {"cpu": "2"}),), queue="one", estimate=10.0),
            WorkloadJob("would-delay", 3.0, 200.0, (Role("task", 1, {"cpu": "2"}),), queue="one", estimate=200.0),
        ]
    )

    of.run()

    assert {promise.start for promise in of.promises["waits"]} == {100.0}
    assert of.outcomes["waits"].start == 100.0
    assert of.outcomes["would-delay"].start == 110.0
    assert of.outcomes["too-large"].start is None


def test_a_gang_of_large_and_small_tasks_starts_as_it_was_planned() -> None:
    """Spread over the nodes as their scores ask for, the small tasks would leave no room for the large ones."""
    of = engine([3, 4, 3], CONFIGURATION.format(scope="queue", reservations=1, order="submit"))
    large, small = {"cpu": "1", "memory": "3Gi"}, {"cpu": "1", "memory": "1Gi"}
    of.submit(
        [
            WorkloadJob("runs", 0.0, 40.0, (Role("task", 2, large),), queue="one", estimate=40.0),
            WorkloadJob("ends", 0.0, 20.0, (Role("task", 2, large),), queue="two", estimate=20.0),
            WorkloadJob(
                "waits", 1.0, 9.0, (Role("small", 2, small), Role("large", 4, large)), queue="one", estimate=9.0
            ),
        ]
    )

    of.run()

    assert {promise.start for promise in of.promises["waits"]} == {20.0}
    assert of.outcomes["waits"].start == 20.0


def test_a_promise_is_written_with_its_nodes_and_what_must_end_before() -> None:
    of = engine([2, 2], CONFIGURATION.format(scope="cluster", reservations=1, order="submit"))
    seen = []
    pair = Role("task", 2, {"cpu": "2", "memory": "1Gi"})
    of.submit(
        [
            WorkloadJob(
                "runs", 0.0, 100.0, (Role("task", 1, {"cpu": "2", "memory": "1Gi"}),), queue="one", estimate=100.0
            ),
            WorkloadJob("waits", 1.0, 10.0, (pair,), queue="one", estimate=10.0),
        ]
    )

    carry_out = of._carry_out
    of._carry_out = lambda decisions: (seen.append(decisions.reservations), carry_out(decisions))[1]  # type: ignore[method-assign]
    of.run()

    promised = [each[f"{NAMESPACE}/waits"] for each in seen if f"{NAMESPACE}/waits" in each]
    assert {each.start for each in promised} == {EPOCH + timedelta(seconds=100)}
    assert promised[0].nodes == ("n0", "n1")
    assert promised[0].after == (f"{NAMESPACE}/runs",)
    assert of.outcomes["waits"].start == 100.0


PREEMPTION = """
actions: "enqueue, allocate, preempt"
tiers:
- plugins:
  - name: easy
    arguments: {easy.scope: cluster}
  - name: gang
    enableJobOrder: false
    enablePreemptable: false
  - name: priority
    enableJobOrder: false
- plugins: [{name: predicates}]
"""


def test_preemption_takes_no_room_that_is_reserved() -> None:
    """The second job could evict the running one and would then run beyond the start of the first."""
    of = engine([2], PREEMPTION)
    whole = Role("task", 1, {"cpu": "2", "memory": "1Gi"})

    of.submit(
        [
            WorkloadJob("runs", 0.0, 100.0, (whole,), queue="one", estimate=100.0, priority_class="low"),
            WorkloadJob("first", 1.0, 10.0, (whole,), queue="one", estimate=10.0, priority_class="low"),
            WorkloadJob("second", 2.0, 500.0, (whole,), queue="one", estimate=500.0, priority_class="high"),
        ]
    )
    of.run(until=99.0)

    assert of.outcomes["runs"].evictions == 0
    assert of.outcomes["second"].start is None


# -- one cycle, told in a few words -----------------------------------------------------------------------------------
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
HOUR = {"volcano.sh/running-estimate": "1h"}
LONG = {"volcano.sh/running-estimate": "9h"}
BEGUN = {"startTime": "2026-01-01T12:00:00Z"}


def promised(outcome: CycleOutcome, name: str) -> timedelta | None:
    reservation = outcome.decisions.reservations.get(f"default/{name}")
    return None if reservation is None else reservation.start - NOON


def test_reclaiming_takes_no_room_that_is_reserved() -> None:
    """The job of the other queue could evict what runs and would then run beyond the start of the first."""
    jobs = {
        "runs": running(["n1", "n1"], "cpu=2", min=0, queue="one", annotations=HOUR, status=BEGUN),
        "first": gang(1, "cpu=4", queue="one", phase="Inqueue", created="2026-01-01T00:00:01Z", annotations=HOUR),
        "second": gang(1, "cpu=2", queue="two", phase="Inqueue", created="2026-01-01T00:00:02Z", annotations=LONG),
    }
    of = cluster(nodes={"n1": "cpu=4"}, queues={"one": share(), "two": share()}, jobs=jobs, now=NOON)
    switches = {"gang": {"enablePreemptable": False, "enableReclaimable": False, "enableJobOrder": False}}

    without = of.schedule("allocate, reclaim", "gang, conformance, predicates", switches=switches)
    with_easy = of.schedule("allocate, reclaim", "easy, gang, conformance, predicates", switches=switches)

    assert len(without.evicts) == 1
    assert promised(with_easy, "first") == timedelta(hours=1)
    assert with_easy.evicts == []


def test_an_elastic_job_does_not_grow_into_room_that_is_reserved() -> None:
    jobs = {
        "runs": running(["n1"], "cpu=4", annotations=HOUR, status=BEGUN),
        "first": gang(2, "cpu=4", phase="Inqueue", created="2026-01-01T00:00:01Z", annotations=HOUR),
        "elastic": running(["n3"], "cpu=1", size=9, created="2026-01-01T00:00:02Z", annotations=LONG, status=BEGUN),
    }
    of = cluster(nodes={"n1": "cpu=4", "n2": "cpu=4", "n3": "cpu=4"}, jobs=jobs, now=NOON)
    switches = {"gang": {"enableJobOrder": False}}

    outcome = of.schedule("allocate", "easy, gang, predicates", switches=switches)

    assert promised(outcome, "first") == timedelta(hours=1)
    assert set(outcome.binds.values()) == {"n3"}
    assert len(outcome.binds) == 3


def test_a_reservation_waits_until_the_capability_of_the_queue_has_room() -> None:
    """There is room on the second node at once, but the queue may hold only one node's worth."""
    jobs = {
        "runs": running(["n1"], "cpu=4", queue="small", annotations=HOUR, status=BEGUN),
        "first": gang(1, "cpu=4", queue="small", phase="Inqueue", annotations=HOUR),
    }
    of = cluster(nodes={"n1": "cpu=4", "n2": "cpu=4"}, queues={"small": share(capability="cpu=4")}, jobs=jobs, now=NOON)

    outcome = of.schedule("allocate", "easy, gang, predicates, capacity")

    assert outcome.binds == {}
    assert promised(outcome, "first") == timedelta(hours=1)


def test_a_reservation_is_in_one_hypernode() -> None:
    """One node of each rack is free now; a whole rack only when the job of the second has ended."""
    jobs = {
        "long": running(["a1"], "cpu=4", annotations=LONG, status=BEGUN),
        "short": running(["b1"], "cpu=4", annotations=HOUR, status=BEGUN),
        "first": gang(
            2, "cpu=4", phase="Inqueue", annotations=HOUR, topology={"mode": "hard", "highestTierAllowed": 1}
        ),
    }
    racks = [
        {
            "metadata": {"name": f"rack-{rack}"},
            "spec": {
                "tier": 1,
                "members": [
                    {"type": "Node", "selector": {"exactMatch": {"name": f"{rack}{number}"}}} for number in (1, 2)
                ],
            },
        }
        for rack in ("a", "b")
    ]
    of = cluster(
        nodes=dict.fromkeys(("a1", "a2", "b1", "b2"), "cpu=4"), jobs=jobs, objects={"hyperNodes": racks}, now=NOON
    )

    outcome = of.schedule("allocate", "easy, gang, predicates, network-topology-aware")

    assert outcome.binds == {}
    assert promised(outcome, "first") == timedelta(hours=1)
    assert outcome.decisions.reservations["default/first"].nodes == ("b1", "b2")
