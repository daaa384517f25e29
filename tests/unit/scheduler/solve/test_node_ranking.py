"""Nodes ranked once for a shape and kept current: the same decisions as asking anew for every task."""

from __future__ import annotations

from typing import Any
from unittest.mock import patch

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.solve import node_ranking
from volcano.scheduler.solve.node_ranking import NodeRankings
from volcano.testing.clusters import Cluster, GangShape, MachineShape, Share, cluster, configuration

CONFIGS = (
    "priority, gang, conformance; overcommit, drf, predicates, proportion, nodeorder, binpack",
    "priority, gang; drf, predicates, proportion, nodeorder",
    "gang; predicates, binpack",
    "priority, gang; drf, predicates, capacity, nodeorder",
)
KINDS = ("cpu=4, memory=8Gi", "cpu=16, memory=16Gi", "cpu=8, memory=32Gi, nvidia.com/gpu=4", "cpu=6, memory=0")
REQUESTS = ("cpu=1, memory=1Gi", "cpu=500m, memory=2Gi", "cpu=2, memory=1Gi, nvidia.com/gpu=1")


@st.composite
def clusters(draw: Any) -> Cluster:
    """Many nodes of few kinds, so that ties are common, and gangs of few shapes that take turns on them."""
    kinds = draw(st.lists(st.sampled_from(KINDS), min_size=1, max_size=3))
    nodes = {f"n{at:02d}": MachineShape(has=draw(st.sampled_from(kinds))) for at in range(draw(st.integers(2, 24)))}
    queues = {f"q{at}": Share(weight=draw(st.integers(1, 3))) for at in range(draw(st.integers(1, 3)))}
    jobs = {}
    for at in range(draw(st.integers(1, 12))):
        size = draw(st.integers(1, 12))
        on = draw(st.lists(st.sampled_from(list(nodes)), min_size=size, max_size=size)) if size < 3 else ()
        request, queue = draw(st.sampled_from(REQUESTS)), draw(st.sampled_from(list(queues)))
        jobs[f"j{at}"] = GangShape(size, request, min=draw(st.integers(1, size)), queue=queue, on=on)
    return cluster(nodes=nodes, jobs=jobs, queues=queues)


def decided(case: Cluster, plugins: str, seed: int) -> Decisions:
    return cycle(case.snapshot(), configuration("enqueue, allocate, backfill", plugins), SeededChance(seed))


@settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(clusters(), st.sampled_from(CONFIGS), st.integers(0, 3), st.sampled_from([4, 64, 4096]))
def test_gangs_are_placed_by_rankings_where_asking_anew_for_every_task_places_them(
    case: Cluster, plugins: str, seed: int, imagined: int
) -> None:
    with patch.object(NodeRankings, "of", lambda self, task: None):
        expected = decided(case, plugins, seed)

    with patch.object(node_ranking, "MAX_IMAGINED_ROWS", imagined):
        found = decided(case, plugins, seed)

    assert found.binds == expected.binds
    assert found.pipelined == expected.pipelined
    assert found.groups == expected.groups
    assert found.why == expected.why
