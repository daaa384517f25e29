"""Pods drawn from a trace arrive and never end; what is given out depends on how they are placed."""

from __future__ import annotations

import pytest

from volcano.simulator.clusters import node
from volcano.simulator.jobs import Role, WorkloadJob
from volcano.simulator.policies import read_policy, shipped_policy
from volcano.simulator.saturation import InvalidSaturation, demand_of, sampled_jobs, saturate
from volcano.simulator.workloads.openb import CARD_CORES, CARD_MEMORY, CARD_REGISTER, CARDS, GPU

SHARING = """
actions: "enqueue, allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates}
  - {name: deviceshare, arguments: {deviceshare.VGPUEnable: true}}
"""


def share(name: str, milli: int, cpu: str = "1") -> WorkloadJob:
    requests = {"cpu": cpu, "memory": "1Gi", GPU: f"{milli}m", CARDS: "1", CARD_MEMORY: str(milli)}
    return WorkloadJob(name, 0.0, 10.0, (Role("pod", 1, requests),))


def a_node(name: str, cards: int):
    has = {"cpu": "64", "memory": "64Gi", "pods": "110", GPU: str(cards)}
    has |= {CARDS: str(cards * 100), CARD_MEMORY: str(cards * 1000), CARD_CORES: str(cards * 100)}
    entries = (f"{name}-{card},100,1000,NVIDIA-A,true,hami-core" for card in range(cards))
    return node(name, has, {}, {CARD_REGISTER: ":".join(entries) + ":"})


def test_jobs_are_drawn_by_seed_until_they_ask_for_enough_and_never_end() -> None:
    jobs = [share("a", 500), share("b", 1000)]
    drawn = sampled_jobs(jobs, GPU, 10.0, seed=3, together=4)

    assert 10.0 <= sum(demand_of(job, GPU) for job in drawn) < 11.0
    assert [job.name for job in drawn] == sorted(job.name for job in drawn)
    assert [job.submit for job in drawn[:5]] == [0.0, 0.0, 0.0, 0.0, 1.0]
    assert (
        drawn == sampled_jobs(jobs, GPU, 10.0, seed=3, together=4) != sampled_jobs(jobs, GPU, 10.0, seed=4, together=4)
    )


def test_a_workload_or_a_cluster_without_the_resource_is_refused() -> None:
    job = WorkloadJob("plain", 0.0, 1.0, (Role("pod", 1, {"cpu": "1"}),))
    with pytest.raises(InvalidSaturation, match="asks for nvidia"):
        sampled_jobs([job], GPU, 1.0, 0)
    with pytest.raises(InvalidSaturation, match="no node has nvidia"):
        saturate([node("n", {"cpu": "1"})], [job], shipped_policy("volcano-default"), GPU)


def test_shares_are_given_card_by_card_and_what_fits_no_card_waits() -> None:
    """Two cards take a share of 0.7 each; the third finds 0.6 of a GPU free, but on no single card."""
    jobs = sampled_jobs([share("a", 700)], GPU, 2.1, 0, together=2)
    curve = saturate([a_node("n", 2)], jobs, read_policy("sharing", SHARING), GPU)

    assert (curve.allocated_at(0.7), curve.allocated_at(1.05)) == pytest.approx((0.7, 0.7))
    assert curve.arrived[-1] == pytest.approx(1.05)


def test_fragmentation_gives_out_more_than_chance() -> None:
    nodes = [a_node(f"n{place}", 2 + place % 3) for place in range(9)]
    jobs = [share("a", 300), share("b", 700), share("c", 500), share("d", 1000)]
    given = {}
    for name, text in {"random": SHARING, "fragmentation": SHARING + "  - {name: fragmentation}\n"}.items():
        curves = [
            saturate(nodes, sampled_jobs(jobs, GPU, 27 * 1.3, seed, 5), read_policy(name, text), GPU, seed)
            for seed in (1, 2, 3)
        ]
        given[name] = sum(curve.allocated_at(1.0) for curve in curves) / 3

    assert given["fragmentation"] > given["random"] + 0.02
