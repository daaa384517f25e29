"""network-topology-aware: which domains are tried, and how they and their nodes are scored."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Domain, Task
from volcano.scheduler.plugins.network_topology_aware.gradients import widest_first
from volcano.testing.clusters import Cluster, GangShape, cluster, gang, running

PLUGIN = "network-topology-aware"
NODES = {
    "s3": ["a1", "a2"],
    "s4": ["b1", "b2"],
    "s5": ["c1", "c2"],
    "s6": ["d1", "d2"],
}
TREE = {
    **NODES,
    "s1": [*NODES["s3"], *NODES["s4"]],
    "s2": [*NODES["s5"], *NODES["s6"]],
    "s0": [name for names in NODES.values() for name in names],
}
TIERS = {"1": list(NODES), "2": ["s1", "s2"], "3": ["s0"]}
EXTRA = {"hyperNodeRealNodes": TREE, "hyperNodesByTier": TIERS}
HARD = {"mode": "hard", "highestTierAllowed": 3}


def given(jobs: dict[str, GangShape], has: str = "cpu=4, memory=8Gi", more: tuple[str, ...] = ()) -> Cluster:
    return cluster(nodes=dict.fromkeys((*TREE["s0"], *more), has), jobs=jobs, extra=EXTRA)


def asking(of: Cluster, plugins: str = f"gang, {PLUGIN}", **arguments: Any) -> Session:
    return of.session(plugins, arguments={PLUGIN: arguments})


def task_of(session: Session, name: str) -> Task:
    return next(task for task in session.snapshot.tasks.values() if task.name == name)


def scores(session: Session, task: Task, among: list[str] | None = None) -> dict[str, float]:
    nodes = session.table.nodes
    chosen = np.array([among is None or node.name in among for node in nodes])
    total = session.nodes.scored(task).total(chosen, task)
    return {node.name: float(total[node.row]) for node in nodes if chosen[node.row]}


def gradients(session: Session, job: str, purpose: str = "Allocate", within: str = "<cluster-top-hypernode>") -> Any:
    found = session.ask.domain_gradients(session.jobs[f"default/{job}"], session.domains.by_name[within], purpose)
    return [sorted(domain.name for domain in tier) for tier in found]


# -- nodes -------------------------------------------------------------------------------------------------------------
def test_nodes_score_by_how_close_they_are_to_where_the_job_already_is() -> None:
    session = asking(given({"j": gang(2, topology=HARD)}))
    task = task_of(session, "j-0")
    task.allocated_domain = "s3"

    found = scores(session, task, ["a1", "b1", "c1"])

    assert found == {"a1": 100.0, "b1": pytest.approx(66.666, abs=0.01), "c1": pytest.approx(33.333, abs=0.01)}


def test_without_a_place_yet_all_nodes_are_equal() -> None:
    session = asking(given({"j": gang(2, topology=HARD)}))

    assert set(scores(session, task_of(session, "j-0")).values()) == {0.0}


def test_the_weight_multiplies_and_a_node_outside_all_domains_scores_nothing() -> None:
    session = asking(given({"j": gang(2, topology=HARD)}, more=("alone",)), weight=2)
    task = task_of(session, "j-0")
    task.allocated_domain = "s3"

    assert scores(session, task, ["a1", "alone"]) == {"a1": 200.0, "alone": 0.0}


def test_of_equally_close_nodes_those_beside_more_siblings_win() -> None:
    job = gang(4, min=1, topology=HARD, on=["a1", "a2", "b1"], phase="Running")
    session = asking(given({"j": job}))
    task = task_of(session, "j-3")
    task.allocated_domain = "s1"

    found = scores(session, task, ["a1", "b1", "c1"])

    assert [round(found[name], 2) for name in ("a1", "b1", "c1")] == [116.67, 91.67, 33.33]


def test_siblings_placed_in_this_session_count_until_they_are_lifted_again() -> None:
    job = gang(3, min=1, topology=HARD, on=["a1"], phase="Running")
    session = asking(given({"j": job}))
    task, sibling = task_of(session, "j-2"), task_of(session, "j-1")
    task.allocated_domain = "s1"
    before = scores(session, task, ["a1", "b1"])

    session.moves.place(sibling, session.table.nodes[session.table.index["b1"]], sibling.status.ALLOCATED)
    beside = scores(session, task, ["a1", "b1"])
    session.moves.lift(sibling)

    assert before["a1"] > before["b1"]
    assert beside["a1"] == beside["b1"]
    assert scores(session, task, ["a1", "b1"]) == before


def test_other_pods_go_where_it_is_busy() -> None:
    jobs = {"old": running(["a1"], each="cpu=2"), "new": gang(1, each="cpu=1")}
    session = asking(given(jobs))

    found = scores(session, task_of(session, "new-0"))

    assert found["a1"] == found["a2"] > found["b1"] > found["c1"] == found["d1"]


def test_higher_tiers_count_less_and_not_at_all_without_fading_in() -> None:
    jobs = {"old": running(["a1"], each="cpu=2"), "new": gang(1, each="cpu=2")}
    arguments = {"hypernode.binpack.normal-pod.fading": 0, "hypernode.binpack.memory": 0}
    session = asking(given(jobs), **arguments)

    found = scores(session, task_of(session, "new-0"))

    assert (found["a1"], found["b1"], found["c1"]) == (50.0, 25.0, 25.0)


def test_other_pods_are_left_alone_when_asked_to() -> None:
    session = asking(given({"new": gang(1)}), **{"hypernode.binpack.normal-pod.enable": False})

    assert set(scores(session, task_of(session, "new-0")).values()) == {0.0}


def test_what_is_placed_makes_a_domain_busier_at_once() -> None:
    session = asking(given({"new": gang(2)}))
    first, second = task_of(session, "new-0"), task_of(session, "new-1")
    before = scores(session, second)

    session.moves.place(first, session.table.nodes[session.table.index["d1"]], first.status.ALLOCATED)

    assert len(set(before.values())) == 1
    after = scores(session, second)
    assert after["d1"] == after["d2"] > after["c1"] > after["a1"]


# -- domains -----------------------------------------------------------------------------------------------------------
def test_lower_tiers_are_tried_first_and_only_up_to_the_one_allowed() -> None:
    session = asking(given({"j": gang(2, topology={"mode": "hard", "highestTierAllowed": 2})}))

    assert gradients(session, "j") == [["s3", "s4", "s5", "s6"], ["s1", "s2"]]


def test_soft_goes_up_to_the_whole_cluster() -> None:
    session = asking(given({"j": gang(2, topology={"mode": "soft"})}))

    assert gradients(session, "j")[-1] == ["<cluster-top-hypernode>"]


def test_without_a_topology_only_the_domain_given_is_tried() -> None:
    session = asking(given({"j": gang(2)}))

    assert gradients(session, "j") == [["<cluster-top-hypernode>"]]


def test_domains_without_enough_free_in_sum_are_not_tried() -> None:
    jobs = {
        "old": running(["a1", "a2"], each="cpu=3"),
        "j": gang(2, each="cpu=2", min_resources="cpu=4", topology={"mode": "hard", "highestTierAllowed": 1}),
    }

    assert gradients(asking(given(jobs)), "j") == [["s4", "s5", "s6"]]


def test_for_evicting_domains_count_as_if_nobody_were_there_and_the_widest_come_first() -> None:
    jobs = {
        "old": running(["a1", "a2"], each="cpu=4"),
        "j": gang(2, each="cpu=2", min_resources="cpu=4", topology={"mode": "hard", "highestTierAllowed": 2}),
    }

    assert gradients(asking(given(jobs)), "j", "Evict") == [["s1", "s2"], ["s3", "s4", "s5", "s6"]]


def test_a_job_that_runs_in_part_stays_near() -> None:
    def job(tier: int) -> GangShape:
        return gang(3, min=1, on=["a1", "a2"], phase="Running", topology={"mode": "hard", "highestTierAllowed": tier})

    assert gradients(asking(given({"j": job(1)})), "j") == [["s3"]]
    assert gradients(asking(given({"j": job(2)})), "j") == [["s3", "s4"], ["s1"]]


def test_a_job_spread_wider_than_allowed_gets_no_domain() -> None:
    job = gang(3, min=1, on=["a1", "d1"], phase="Running", topology={"mode": "hard", "highestTierAllowed": 2})

    assert gradients(asking(given({"j": job})), "j") == []


def test_of_a_tier_taken_in_part_the_last_ones_stay() -> None:
    a, b, c, d = (Domain(name, 1) for name in "abcd")

    assert widest_first([[a, b], [c, d]], 3) == [[c, d], [b]]


def test_a_fuller_domain_scores_higher_and_one_without_room_nothing() -> None:
    jobs = {
        "old": running(["a1", "b1", "b1"], each="cpu=2, memory=4Gi"),
        "j": gang(3, "cpu=2, memory=4Gi", topology=HARD),
    }
    session = asking(given(jobs))
    sub_job = session.jobs["default/j"].sub_jobs["default/j"]
    domains = [session.domains.by_name[name] for name in ("s3", "s4", "s5", "s1")]

    found = session.ask.domain_score(sub_job, domains)

    assert found == {"s3": 100.0, "s4": 0.0, "s5": 75.0, "s1": 75.0}


def test_of_equally_full_domains_the_one_holding_more_of_the_job_wins() -> None:
    jobs = {"old": running(["c1"]), "j": gang(3, min=1, on=["a1"], phase="Running", topology=HARD)}
    session = asking(given(jobs))
    sub_job = session.jobs["default/j"].sub_jobs["default/j"]
    domains = [session.domains.by_name[name] for name in ("s3", "s5", "s6")]

    found = session.ask.domain_score(sub_job, domains)

    assert found["s3"] > found["s5"] > found["s6"]


def test_odd_arguments_count_as_absent() -> None:
    arguments = {"weight": -3, "hypernode.binpack.cpu": -1, "hypernode.binpack.normal-pod.fading": -0.5}
    jobs = {"old": running(["a1"], each="cpu=2"), "new": gang(1, each="cpu=1")}

    odd, plain = asking(given(jobs), **arguments), asking(given(jobs))

    assert scores(odd, task_of(odd, "new-0")) == scores(plain, task_of(plain, "new-0"))


def test_nodes_outside_the_lowest_tier_get_neither_a_score_nor_a_bonus() -> None:
    session = asking(given({"j": gang(2, topology={"mode": "soft"})}, more=("outside",)))
    task = task_of(session, "j-0")
    task.allocated_domain = "s3"

    found = scores(session, task, among=["a1", "outside"])

    assert found["outside"] == 0.0 < found["a1"]
