"""What the enabled plugins promise, over random clusters."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from volcano.scheduler.core.snapshot import Snapshot
from volcano.scheduler.framework.config import SchedulerConfig
from volcano.scheduler.framework.opening import open_session
from volcano.scheduler.framework.statement import Statement
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import EPSILON, SeededChance, Status, StoppedTimer
from volcano.scheduler.model.resources import Resources
from volcano.scheduler.plugins import PLUGINS
from volcano.scheduler.solve.node_ranking import NodeRankings
from volcano.testing.clusters import Cluster, GangShape, MachineShape, Share, cluster, configuration

REQUESTS = ("cpu=1", "cpu=2, memory=1Gi", "cpu=500m, memory=2Gi", "cpu=1, nvidia.com/gpu=1", "")
CONFIGS = (
    "priority, gang, conformance; drf, predicates, proportion, nodeorder, binpack",
    "priority, gang, conformance; overcommit, drf, predicates, proportion, nodeorder",
    "priority, gang; predicates, capacity, nodeorder, binpack",
    "gang; predicates, nodeorder",
    "priority, gang; predicates, drf, network-topology-aware, resource-strategy-fit, task-topology, numa-aware, deviceshare",
)
ACTIONS = "enqueue, allocate, preempt, reclaim, backfill"

machines = st.builds(
    MachineShape,
    has=st.sampled_from(
        ["cpu=4, memory=8Gi", "cpu=8, memory=4Gi", "cpu=2, memory=2Gi", "cpu=8, memory=16Gi, nvidia.com/gpu=2"]
    ),
    pods=st.sampled_from([3, 110]),
    unschedulable=st.sampled_from([False, False, False, True]),
    labels=st.sampled_from([{"zone": "a"}, {"zone": "b"}]),
)


@st.composite
def shares(draw: Any) -> Share:
    guaranteed = draw(st.booleans())
    return Share(
        weight=draw(st.integers(1, 4)),
        capability=draw(st.sampled_from(["", "cpu=6", "cpu=10, memory=8Gi"])),
        deserved=draw(st.sampled_from(["", "cpu=4, memory=4Gi"])),
        guarantee="cpu=1" if guaranteed else "",
        priority=draw(st.integers(0, 1)),
        state=draw(st.sampled_from(["Open", "Open", "Open", "Closed"])),
    )


@st.composite
def gangs(draw: Any, nodes: list[str], queues: list[str]) -> GangShape:
    size = draw(st.integers(1, 5))
    is_running = draw(st.booleans())
    spread = st.lists(st.sampled_from(nodes), min_size=size, max_size=size)
    return GangShape(
        size,
        draw(st.sampled_from(REQUESTS)),
        min=draw(st.integers(0, size)),
        queue=draw(st.sampled_from(queues)),
        priority=draw(st.sampled_from([0, 10, 100])),
        on=draw(spread) if is_running else (),
        phase="" if is_running else draw(st.sampled_from(["Pending", "Inqueue"])),
        pod_annotations=draw(st.sampled_from([{}, {"volcano.sh/preemptable": "false"}])),
        spec=draw(st.sampled_from([{}, {"nodeSelector": {"zone": "a"}}])),
    )


@st.composite
def clusters(draw: Any) -> Cluster:
    nodes = {f"n{i}": draw(machines) for i in range(draw(st.integers(1, 4)))}
    queues = {f"q{i}": draw(shares()) for i in range(draw(st.integers(1, 3)))}
    jobs = {f"j{i}": draw(gangs(list(nodes), list(queues))) for i in range(draw(st.integers(1, 6)))}
    return cluster(nodes=nodes, jobs=jobs, queues=queues)


def configured(plugins: str, actions: str = ACTIONS) -> SchedulerConfig:
    return configuration(actions, plugins)


many = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
configs = st.sampled_from(CONFIGS)


def portrait(snapshot: Snapshot) -> Any:
    """Everything a session may change, in comparable form."""
    tasks = {uid: (task.status, task.node, task.evicted) for uid, task in snapshot.tasks.items()}
    jobs = {
        id: (job.phase, str(job.allocated), str(job.held), tuple(job.counts.by_status), sorted(job.tasks))
        for id, job in snapshot.jobs.items()
    }
    table = snapshot.table
    return tasks, jobs, table._block.tolist(), table._pods_present.tolist(), [sorted(n.tasks) for n in table.nodes]


@many
@given(clusters(), configs, st.integers(0, 9))
def test_equal_input_and_seed_give_equal_decisions_and_the_snapshot_is_left_as_it_was(
    case: Cluster, plugins: str, seed: int
) -> None:
    config, snapshot = configured(plugins), case.snapshot()
    before = portrait(snapshot)

    first = cycle(snapshot, config, SeededChance(seed))
    second = cycle(snapshot, config, SeededChance(seed))
    anew = cycle(case.snapshot(), config, SeededChance(seed))

    assert portrait(snapshot) == before
    for other in (second, anew):
        assert (first.binds, first.evictions, first.pipelined) == (other.binds, other.evictions, other.pipelined)
        assert first.why == other.why


@many
@given(clusters(), configs, st.integers(0, 9))
def test_no_node_is_given_more_than_it_has(case: Cluster, plugins: str, seed: int) -> None:
    snapshot = case.snapshot()
    table = snapshot.table
    over = {node.name for node in table.nodes if (table.idle[:, node.row] < -EPSILON).any()}  # from the beginning

    decisions = cycle(snapshot, configured(plugins), SeededChance(seed))

    idle = table.idle.copy()
    for bind in decisions.binds:
        idle[:, table.index[bind.node]] -= table.vector(snapshot.tasks[bind.uid].request)
    assert all((idle[:, node.row] > -EPSILON).all() for node in table.nodes if node.name not in over)


@many
@given(clusters(), configs, st.integers(0, 9))
def test_no_gang_is_half_placed(case: Cluster, plugins: str, seed: int) -> None:
    snapshot = case.snapshot()

    decisions = cycle(snapshot, configured(plugins), SeededChance(seed))

    for job in {bind.job for bind in decisions.binds}:
        counts = decisions.status_counts[job]
        running = sum(counts.get(name, 0) for name in ("Binding", "Bound", "Running", "Succeeded"))
        needs_no_room = sum(task.best_effort for task in snapshot.jobs[job].tasks.values())
        assert running + needs_no_room >= snapshot.jobs[job].min_available


@many
@given(clusters(), st.sampled_from(CONFIGS[:3]), st.integers(0, 9))
def test_no_queue_is_taken_beyond_its_capability(case: Cluster, plugins: str, seed: int) -> None:
    snapshot = case.snapshot()

    decisions = cycle(snapshot, configured(plugins), SeededChance(seed))

    held: dict[str, Resources] = {}
    for job in snapshot.jobs.values():
        held.setdefault(job.queue, Resources()).add(job.allocated)
    for bind in decisions.binds:
        task, queue = snapshot.tasks[bind.uid], snapshot.queues[snapshot.jobs[bind.job].queue]
        held[queue.name].add(task.request)
        for name, limit in queue.capability.amounts.items() if queue.capability else ():
            if limit > 0 and task.request[name] > 0:
                assert held[queue.name][name] <= limit + EPSILON


@many
@given(clusters(), st.integers(0, 9))
def test_a_guarantee_is_never_taken(case: Cluster, seed: int) -> None:
    snapshot = case.snapshot()

    decisions = cycle(snapshot, configured(CONFIGS[2], "enqueue, allocate, reclaim"), SeededChance(seed))

    held: dict[str, Resources] = {}
    for job in snapshot.jobs.values():
        held.setdefault(job.queue, Resources()).add(job.allocated)
    for eviction in decisions.evictions:
        queue = snapshot.queues[snapshot.jobs[eviction.job].queue]
        held[queue.name].subtract(snapshot.tasks[eviction.uid].request)
        assert queue.guarantee is None or queue.guarantee.fits(held[queue.name])


@many
@given(clusters(), configs, st.integers(0, 9))
def test_nobody_is_evicted_for_a_task_that_does_not_then_fit(case: Cluster, plugins: str, seed: int) -> None:
    decisions = cycle(case.snapshot(), configured(plugins), SeededChance(seed))

    placed = {*decisions.pipelined, *(bind.task for bind in decisions.binds)}
    kept = [eviction for eviction in decisions.evictions if eviction.task not in decisions.dropped]
    assert all(eviction.preemptor in placed for eviction in kept)


@many
@given(clusters(), configs, st.data())
def test_rolling_back_a_statement_restores_the_session_exactly(case: Cluster, plugins: str, data: Any) -> None:
    snapshot = case.snapshot()
    session, _ = open_session(
        snapshot, configured(plugins), known=PLUGINS, chance=SeededChance(0), timer=StoppedTimer()
    )
    statement = Statement(session)
    before = portrait(snapshot)[:2], session.table.idle.tolist(), session.table.future_idle.tolist()

    for task in list(snapshot.tasks.values()):
        node = session.table.nodes[data.draw(st.integers(0, len(session.table) - 1))]
        if task.status == Status.PENDING and data.draw(st.booleans()):
            (statement.allocate if data.draw(st.booleans()) else statement.pipeline)(task, node)
        elif task.status == Status.RUNNING and data.draw(st.booleans()):
            statement.evict(task, "test")
    statement.roll_back()

    assert (portrait(snapshot)[:2], session.table.idle.tolist(), session.table.future_idle.tolist()) == before


@many
@given(clusters(), configs, st.integers(1, 30))
def test_a_contest_ranks_nodes_exactly_as_asking_anew_for_every_task_does(
    case: Cluster, plugins: str, steps: int
) -> None:
    snapshot = case.snapshot()
    session, _ = open_session(
        snapshot, configured(plugins), known=PLUGINS, chance=SeededChance(0), timer=StoppedTimer()
    )
    rankings, statement = NodeRankings(session), Statement(session)
    waiting = [task for task in snapshot.tasks.values() if task.status == Status.PENDING and not task.best_effort]

    for number, task in enumerate(waiting[:steps]):
        ranking = rankings.of(task)
        if ranking is None:
            continue
        ranking.refresh(task, len(waiting) - number)
        room, filtered = session.nodes.room(task), session.nodes.filtered(task)
        scored = session.nodes.scored(task)
        now = filtered.ok & room.idle
        assert np.array_equal(ranking._fit == 2, now)
        assert np.array_equal((scored.node + scored.own)[now], (ranking._node + ranking._own)[now])
        found = ranking.choose(task, session.chance)
        if found is None:
            continue
        row, has_room = found
        node = session.table.nodes[row]
        if not has_room:
            statement.pipeline(task, node)
        elif statement.allocate(task, node) is None:
            ranking.advance(row)
