"""Placing gangs in domains: which one is taken, and what is said when none will do."""

from __future__ import annotations

from typing import Any

from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.testing.clusters import Cluster, cluster, configuration, gang, running

PLUGINS = "priority, gang; predicates, network-topology-aware"
RACKS = {"r1": ["a1", "a2"], "r2": ["b1", "b2"]}
EXTRA = {
    "hyperNodeRealNodes": {**RACKS, "s": ["a1", "a2", "b1", "b2"]},
    "hyperNodesByTier": {"1": ["r1", "r2"], "2": ["s"]},
}


def hard(tier: int) -> dict[str, Any]:
    return {"mode": "hard", "highestTierAllowed": tier}


def two_racks(has: str = "cpu=2", **jobs: Any) -> Cluster:
    return cluster(nodes=dict.fromkeys(("a1", "a2", "b1", "b2"), has), jobs=jobs, extra=EXTRA)


# -- whole jobs --------------------------------------------------------------------------------------------------------
def test_a_gang_is_placed_in_one_rack() -> None:
    outcome = two_racks(j=gang(4, topology=hard(1))).schedule(plugins=PLUGINS)

    assert sorted(outcome.binds.values()) in (["a1", "a1", "a2", "a2"], ["b1", "b1", "b2", "b2"])


def test_the_fuller_rack_is_taken_so_that_the_empty_one_stays_whole() -> None:
    outcome = two_racks(old=running(["b2"]), j=gang(2, topology=hard(1))).schedule(plugins=PLUGINS)

    assert set(outcome.binds.values()) <= {"b1", "b2"}


def test_a_gang_too_large_for_a_rack_waits_and_says_how_far_it_came() -> None:
    outcome = two_racks(j=gang(5, topology=hard(1))).schedule(plugins=PLUGINS)

    assert outcome.binds == {}
    why = outcome.decisions.why["default/j"]
    assert why.stage == "fit"
    assert why.message == "4 of 5 tasks fit together; tier 1: 2 hypernodes, at most 4 tasks (in r1)"
    assert why.numbers["needed"] == 5.0
    assert "tier 1: 2 hypernodes" in outcome.decisions.groups["default/j"].conditions[0].message


def test_a_gang_for_which_no_rack_has_enough_in_sum_is_told_what_is_scarce() -> None:
    job = gang(5, min_resources="cpu=5", topology=hard(1))

    why = two_racks(j=job).schedule(plugins=PLUGINS).why["j"]

    assert why == "0 of 5 tasks fit together; tier 1: 2 hypernodes, all too full: at most 4 of 5 cpu free"


def test_room_in_sum_is_not_room_for_the_tasks() -> None:
    outcome = two_racks("cpu=3", j=gang(3, each="cpu=2", topology=hard(2))).schedule(plugins=PLUGINS)
    too_many = two_racks("cpu=3", j=gang(5, each="cpu=2", topology=hard(2))).schedule(plugins=PLUGINS)

    assert len(outcome.binds) == 3
    assert too_many.why["j"] == (
        "4 of 5 tasks fit together; "
        "tier 1: 2 hypernodes, at most 2 tasks (in r1); tier 2: 1 hypernode, at most 4 tasks (in s)"
    )


def test_soft_prefers_a_rack_but_takes_the_whole_cluster_if_it_must() -> None:
    soft = {"mode": "soft", "highestTierAllowed": 1}

    near = two_racks(j=gang(3, topology=soft)).schedule(plugins=PLUGINS)
    far = two_racks(j=gang(7, topology=soft)).schedule(plugins=PLUGINS)

    assert len({name[0] for name in near.binds.values()}) == 1
    assert len(far.binds) == 7


def test_a_tier_may_be_named() -> None:
    named = {"mode": "hard", "highestTierName": "rack"}
    hypernodes = [
        {"metadata": {"name": name}, "spec": {"tier": 1, "tierName": "rack", "members": _members(RACKS[name])}}
        for name in RACKS
    ]
    nodes = dict.fromkeys(("a1", "a2", "b1", "b2"), "cpu=2")

    fits = cluster(nodes=nodes, jobs={"j": gang(4, topology=named)}, objects={"hyperNodes": hypernodes})
    too_large = cluster(nodes=nodes, jobs={"j": gang(5, topology=named)}, objects={"hyperNodes": hypernodes})
    unknown = cluster(nodes=nodes, jobs={"j": gang(5, topology={**named, "highestTierName": "row"})})

    assert len({name[0] for name in fits.schedule(plugins=PLUGINS).binds.values()}) == 1
    assert too_large.schedule(plugins=PLUGINS).binds == {}
    assert len(unknown.schedule(plugins=PLUGINS).binds) == 5


def _members(names: list[str]) -> list[dict[str, Any]]:
    return [{"type": "Node", "selector": {"exactMatch": {"name": name}}} for name in names]


def test_a_task_that_is_made_anew_comes_back_to_its_rack_or_waits() -> None:
    def job(tier: int) -> Any:
        return gang(5, min=4, on=["a1", "a1", "a2", "a2"], phase="Running", topology=hard(tier))

    assert two_racks(j=job(1)).schedule(plugins=PLUGINS).binds == {}
    assert set(two_racks(j=job(2)).schedule(plugins=PLUGINS).binds) == {"j-4"}


def test_hypernodes_that_contradict_each_other_are_told_to_jobs_that_need_them() -> None:
    members = [{"type": "HyperNode", "selector": {"exactMatch": {"name": "x"}}}]
    hypernodes = [
        {"metadata": {"name": "x"}, "spec": {"tier": 1, "members": _members(["a1"])}},
        {"metadata": {"name": "y"}, "spec": {"tier": 2, "members": members}},
        {"metadata": {"name": "z"}, "spec": {"tier": 2, "members": members}},
    ]
    jobs = {"j": gang(1, topology=hard(2)), "plain": gang(1)}
    given = cluster(nodes={"a1": "cpu=2"}, jobs=jobs, objects={"hyperNodes": hypernodes})

    outcome = given.schedule(plugins=PLUGINS)

    assert set(outcome.binds) == {"plain-0"}
    assert outcome.why["j"] == "hypernode x is a member of both y and z"


# -- sub-groups --------------------------------------------------------------------------------------------------------
def grouped(size: int, groups: int, tier: int, **more: Any) -> Cluster:
    """One job of so many sub-groups of a size, each to be together in a domain of the tier."""
    policy = {"name": "w", "matchLabelKeys": ["group"], "subGroupSize": size, "networkTopology": hard(tier)}
    given = two_racks(j=gang(size * groups, policies=[policy | more], topology=hard(2)))
    for number, pod in enumerate(given.objects["pods"]):
        pod["metadata"]["labels"] = {"group": str(number // size)}
    return given


def test_each_sub_group_is_together_though_the_job_is_not() -> None:
    outcome = grouped(3, 2, 1).schedule(plugins=PLUGINS)

    racks = [{outcome.binds[f"j-{i}"][0] for i in members} for members in (range(3), range(3, 6))]
    assert sorted(map(sorted, racks)) == [["a"], ["b"]]


def test_a_job_whose_sub_groups_cannot_all_be_placed_waits() -> None:
    outcome = grouped(3, 3, 1).schedule(plugins=PLUGINS)

    assert outcome.binds == {}
    assert outcome.decisions.why["default/j"].numbers["needed"] == 9.0


def test_as_many_sub_groups_as_are_required_will_do() -> None:
    given = grouped(3, 3, 1, minSubGroups=2)
    given.objects["podGroups"][0]["spec"]["minMember"] = 6

    assert len(given.schedule(plugins=PLUGINS).binds) == 6


# -- over random trees -------------------------------------------------------------------------------------------------
@st.composite
def trees(draw: Any) -> tuple[dict[str, int], dict[str, list[str]], dict[str, list[str]]]:
    """Nodes with as many slots each, racks of them, and rows of racks."""
    slots, racks, rows = {}, {}, {}
    for row in range(draw(st.integers(1, 3))):
        rows[f"row{row}"] = []
        for rack in range(draw(st.integers(1, 3))):
            names = [f"n{row}-{rack}-{i}" for i in range(draw(st.integers(1, 3)))]
            racks[f"rack{row}-{rack}"] = names
            rows[f"row{row}"] += names
            slots |= {name: draw(st.integers(0, 3)) for name in names}
    return slots, racks, rows


@settings(max_examples=80, deadline=None)
@over(trees(), st.integers(1, 8), st.integers(1, 2), st.integers(0, 5))
def test_a_gang_is_placed_in_the_lowest_tier_that_can_hold_it_and_only_there(
    tree: tuple[dict[str, int], dict[str, list[str]], dict[str, list[str]]], size: int, tier: int, seed: int
) -> None:
    slots, racks, rows = tree
    extra = {"hyperNodeRealNodes": racks | rows, "hyperNodesByTier": {"1": list(racks), "2": list(rows)}}
    nodes = {name: f"cpu={count * 2 + 1}" for name, count in slots.items()}
    given = cluster(nodes=nodes, jobs={"j": gang(size, each="cpu=2", topology=hard(tier))}, extra=extra)

    binds = given.schedule(plugins=PLUGINS, seed=seed).binds

    def holding(domains: dict[str, list[str]]) -> list[set[str]]:
        return [set(names) for names in domains.values() if sum(slots[name] for name in names) >= size]

    allowed = holding(racks) or (holding(rows) if tier == 2 else [])
    assert len(binds) == (size if allowed else 0)
    assert not binds or any(set(binds.values()) <= names for names in allowed)


@settings(max_examples=60, deadline=None)
@over(
    trees(),
    st.lists(st.tuples(st.integers(1, 5), st.sampled_from(["hard", "soft", ""])), max_size=5),
    st.integers(0, 5),
)
def test_a_cycle_leaves_the_snapshot_as_it_was_and_hard_jobs_in_one_row(
    tree: tuple[dict[str, int], dict[str, list[str]], dict[str, list[str]]], sizes: list[tuple[int, str]], seed: int
) -> None:
    slots, racks, rows = tree
    extra = {"hyperNodeRealNodes": racks | rows, "hyperNodesByTier": {"1": list(racks), "2": list(rows)}}
    jobs = {
        f"j{number}": gang(size, topology={"mode": mode, "highestTierAllowed": 2} if mode else None)
        for number, (size, mode) in enumerate(sizes)
    }
    given = cluster(nodes={name: f"cpu={count}" for name, count in slots.items()}, jobs=jobs, extra=extra)
    snapshot, config = given.snapshot(), configuration("enqueue, allocate", PLUGINS)

    first = cycle(snapshot, config, SeededChance(seed))
    second = cycle(snapshot, config, SeededChance(seed))

    assert (first.binds, first.why) == (second.binds, second.why)
    for number, (_, mode) in enumerate(sizes):
        used = {bind.node for bind in first.binds if bind.job == f"default/j{number}"}
        assert mode != "hard" or not used or any(used <= set(names) for names in rows.values())
