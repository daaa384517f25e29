"""A guarantee is kept whichever plugin and tier choose the victims."""

from __future__ import annotations

import pytest

from volcano.testing.clusters import Cluster, Share, cluster, gang, running

TIERS = (
    "priority, gang; predicates, capacity, nodeorder, binpack",
    "priority, gang; predicates, proportion, nodeorder",
    "gang, capacity; predicates",
)


def guaranteed_beside_a_claimant() -> Cluster:
    """Found by a property test: q0 is guaranteed 1 cpu, states nothing deserved, and runs two pods of 1 cpu."""
    return cluster(
        nodes=dict.fromkeys(("n0", "n1", "n2"), "cpu=2, memory=2Gi"),
        queues={"q0": Share(guarantee="cpu=1"), "q1": Share(deserved="cpu=4, memory=4Gi")},
        jobs={
            "claims": gang(2, "cpu=2, memory=1Gi", queue="q1"),
            "holds": running(["n0", "n1"], each="cpu=1", min=0, queue="q0"),
        },
    )


@pytest.mark.parametrize("plugins", TIERS)
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_a_guarantee_without_deserved_is_not_reclaimed(action: str, plugins: str) -> None:
    outcome = guaranteed_beside_a_claimant().schedule(f"enqueue, allocate, {action}", plugins)

    assert len(outcome.evicts) <= 1


def test_what_goes_beyond_the_guarantee_is_reclaimed() -> None:
    given = cluster(
        nodes={"n0": "cpu=2, memory=2Gi", "n1": "cpu=2, memory=2Gi"},
        queues={"q0": Share(guarantee="cpu=1"), "q1": Share(deserved="cpu=2, memory=4Gi")},
        jobs={
            "claims": gang(1, "cpu=2", queue="q1"),
            "holds": running(["n0", "n0", "n1"], each="cpu=1", min=0, queue="q0"),
        },
    )

    outcome = given.schedule("enqueue, allocate, reclaim", TIERS[0])

    assert len(outcome.evicts) in (1, 2)
    assert list(outcome.pipelined) == ["claims-0"]


def test_a_queue_may_replace_its_own_pods_below_its_guarantee() -> None:
    given = cluster(
        nodes={"n0": "cpu=1, memory=2Gi"},
        queues={"q0": Share(guarantee="cpu=1")},
        jobs={
            "high": gang(1, "cpu=1", queue="q0", priority=9),
            "low": running(["n0"], each="cpu=1", min=0, queue="q0", priority=1),
        },
    )

    assert given.schedule("allocate, preempt", "priority, gang; predicates, capacity").evicts == ["low-0"]


# -- every evicting action, flat and in a hierarchy ---------------------------------------------------------------------
ACTIONS = ("preempt", "reclaim", "gangpreempt", "gangreclaim")
FLAT = {"keeper": Share(guarantee="cpu=2"), "claimant": Share(weight=9, deserved="cpu=8, memory=8Gi")}
ONE_TEAM = {
    "root": Share(),
    "team": Share(parent="root"),
    "keeper": Share(parent="team", guarantee="cpu=2"),
    "claimant": Share(parent="team", weight=9, deserved="cpu=8, memory=8Gi"),
}
TWO_TEAMS = {
    "root": Share(),
    "ours": Share(parent="root"),
    "theirs": Share(parent="root", weight=9),
    "keeper": Share(parent="ours", guarantee="cpu=2"),
    "claimant": Share(parent="theirs", weight=9, deserved="cpu=8, memory=8Gi"),
}
SETUPS = {"flat": FLAT, "siblings of one team": ONE_TEAM, "leaves of two teams": TWO_TEAMS}
HIERARCHIES = {"capacity": {"enableHierarchy": True}}


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("plugins", TIERS)
@pytest.mark.parametrize("action", ACTIONS)
def test_no_action_of_another_queue_takes_what_is_guaranteed(action: str, plugins: str, setup: str) -> None:
    """Four pods of 1 cpu fill the nodes; two of them are guaranteed, and the claimant wants all four places."""
    given = cluster(
        nodes={"n0": "cpu=2, memory=8Gi", "n1": "cpu=2, memory=8Gi"},
        queues=SETUPS[setup],
        jobs={
            "holds": running(["n0", "n0", "n1", "n1"], each="cpu=1", min=0, queue="keeper", priority=1),
            **{f"claims{n}": gang(1, "cpu=1, memory=1Gi", queue="claimant", priority=9) for n in range(4)},
        },
    )
    switches = {} if setup == "flat" else HIERARCHIES

    outcome = given.schedule(f"enqueue, allocate, {action}", plugins, switches=switches)

    assert len(outcome.evicts) <= 2
    if action in ("preempt", "gangpreempt"):
        assert outcome.evicts == []  # they choose among the pods of the claimant's own queue


@pytest.mark.parametrize("setup", SETUPS)
@pytest.mark.parametrize("action", ["reclaim", "gangreclaim"])
def test_what_is_not_guaranteed_is_given_up_in_hierarchies_too(action: str, setup: str) -> None:
    given = cluster(
        nodes={"n0": "cpu=2, memory=8Gi", "n1": "cpu=2, memory=8Gi"},
        queues=SETUPS[setup],
        jobs={
            "holds": running(["n0", "n0", "n1", "n1"], each="cpu=1", min=0, queue="keeper"),
            "claims": gang(2, "cpu=1, memory=1Gi", queue="claimant"),
        },
    )
    switches = {} if setup == "flat" else HIERARCHIES

    outcome = given.schedule(f"enqueue, allocate, {action}", TIERS[0], switches=switches)

    assert len(outcome.evicts) == 2
    assert sorted(outcome.pipelined) == ["claims-0", "claims-1"]
