"""Clusters to simulate, and jobs that are too large for them."""

from __future__ import annotations

import pytest

from volcano.simulator.clusters import EmptyCluster, InvalidCluster, capacity, equal_nodes
from volcano.simulator.jobs import Role, WorkloadJob


def job(count: int, cpu: str, *, min_available: int = 0) -> WorkloadJob:
    return WorkloadJob("j", 0.0, 1.0, (Role("task", count, {"cpu": cpu}),), min_available=min_available)


def test_nodes_of_one_size() -> None:
    nodes = equal_nodes(12, "2", gpus=4)

    assert [nodes[0].metadata.name, nodes[11].metadata.name] == ["node-00", "node-11"]
    assert capacity(nodes) == {"cpu": 24.0, "memory": 12 * 8 * 2.0**30, "pods": 1320.0, "nvidia.com/gpu": 48.0}


def test_a_large_node_takes_a_pod_for_each_cpu() -> None:
    assert EmptyCluster(equal_nodes(1, "256")).why_never_runnable(job(256, "1")) == ""


@pytest.mark.parametrize(("count", "cpu"), [(0, "1"), (1, "0"), (1, "many"), (10**9, "1")])
def test_a_cluster_that_cannot_be(count: int, cpu: str) -> None:
    with pytest.raises(InvalidCluster):
        equal_nodes(count, cpu)


def test_a_job_that_is_too_large_says_why() -> None:
    empty = EmptyCluster(equal_nodes(4, "2"))

    assert empty.why_never_runnable(job(8, "1")) == ""
    assert empty.why_never_runnable(job(9, "1")) == "needs 9 pods of cpu 1; the empty cluster has room for 8"
    assert empty.why_never_runnable(job(1, "3")) == "needs 1 pods of cpu 3; the empty cluster has room for 0"
    assert empty.why_never_runnable(job(9, "1", min_available=8)) == ""
