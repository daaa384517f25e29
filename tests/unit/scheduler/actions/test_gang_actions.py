"""gangpreempt and gangreclaim: room for whole gangs, at the least price."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given as over
from hypothesis import settings
from hypothesis import strategies as st

from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.testing.clusters import Cluster, GangShape, cluster, configuration, gang, running, share

ACTIONS = "enqueue, allocate, gangpreempt"
PLUGINS = "priority, gang, conformance; predicates, nodeorder, network-topology-aware"
RACKS = {
    "hyperNodeRealNodes": {"r1": ["n1", "n2"], "r2": ["n3", "n4"]},
    "hyperNodesByTier": {"1": ["r1", "r2"]},
}


def four_slots(**jobs: GangShape) -> Cluster:
    return cluster(nodes={f"n{i}": "cpu=1" for i in range(1, 5)}, jobs=jobs, extra=RACKS)


def everywhere(**more: Any) -> GangShape:
    return running(["n1", "n2", "n3", "n4"], priority=1, **more)


# -- gangpreempt -------------------------------------------------------------------------------------------------------
def test_a_gang_takes_what_another_can_spare() -> None:
    outcome = four_slots(low=everywhere(min=2), high=gang(2, priority=9)).schedule(ACTIONS, PLUGINS)

    assert len(outcome.evicts) == 2
    assert sorted(outcome.pipelined) == ["high-0", "high-1"]
    assert {e.reason for e in outcome.decisions.evictions} == {"gangpreempt"}
    assert outcome.dropped == {}
    assert outcome.decisions.counters[("eviction_transactions_total", ("gangpreempt",))] == 1


def test_when_nobody_can_spare_anything_one_gang_goes_whole_and_the_other_stays_whole() -> None:
    given = four_slots(
        a=running(["n1", "n2"], min=2, priority=1),
        b=running(["n3", "n4"], min=2, priority=1),
        high=gang(2, priority=9),
    )

    outcome = given.schedule(ACTIONS, PLUGINS)

    assert outcome.evicts in (["a-0", "a-1"], ["b-0", "b-1"])


def test_of_equal_jobs_the_youngest_is_evicted_first() -> None:
    given = four_slots(
        older=running(["n1", "n2"], priority=1, created="2026-01-01T00:00:00Z"),
        younger=running(["n3", "n4"], priority=1, created="2026-01-01T00:01:00Z"),
        high=gang(1, priority=9),
    )

    assert given.schedule(ACTIONS, PLUGINS).evicts == ["younger-0"]


def test_no_gang_is_broken_when_that_is_not_allowed() -> None:
    given = four_slots(a=running(["n1", "n2", "n3", "n4"], min=4, priority=1), high=gang(2, priority=9))
    configured = {"gangpreempt": {"allowWholeBundle": False}}

    assert given.schedule(ACTIONS, PLUGINS, configurations=configured).evicts == []
    assert given.schedule(ACTIONS, PLUGINS).evicts == ["a-0", "a-1", "a-2", "a-3"]


def test_spare_tasks_that_turn_out_not_to_be_needed_stay() -> None:
    outcome = four_slots(low=everywhere(min=0), high=gang(1, priority=9)).schedule(ACTIONS, PLUGINS)

    assert len(outcome.evicts) == 1


@pytest.mark.parametrize("victim", [{"priority": 9}, {"priority": 1, "queue": "other"}])
def test_neither_equals_nor_other_queues_are_touched(victim: dict[str, Any]) -> None:
    jobs = {"low": running(["n1"], min=0, **victim), "high": gang(1, priority=9)}
    given = cluster(nodes={"n1": "cpu=1"}, jobs=jobs, queues={"other": share()})

    assert given.schedule(ACTIONS, PLUGINS).evicts == []


def test_a_job_that_says_it_is_not_preemptable_is_not() -> None:
    stated = {"volcano.sh/preemptable": "false"}

    outcome = four_slots(low=everywhere(annotations=stated), high=gang(2, priority=9)).schedule(ACTIONS, PLUGINS)

    assert outcome.evicts == []


def test_a_gang_that_would_not_fit_even_so_evicts_nobody_and_says_so() -> None:
    outcome = four_slots(low=everywhere(min=1), high=gang(5, priority=9)).schedule(ACTIONS, PLUGINS)

    assert outcome.evicts == []
    assert "gangpreempt: 4 tasks that could be evicted would not make room for all" in outcome.why["high"]


def test_gangs_alike_are_told_the_same_and_one_that_differs_is_helped() -> None:
    low = everywhere(min=1)

    outcome = four_slots(low=low, a=gang(5, priority=9), b=gang(5, priority=9), c=gang(2, priority=8)).schedule(
        ACTIONS, PLUGINS
    )

    assert outcome.why["a"] == outcome.why["b"]
    assert sorted(outcome.pipelined) == ["c-0", "c-1"]


def test_a_gang_that_must_be_together_has_one_rack_freed() -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1}

    outcome = four_slots(low=everywhere(min=0), high=gang(2, priority=9, topology=topology)).schedule(ACTIONS, PLUGINS)

    assert sorted(outcome.pipelined.values()) in (["n1", "n2"], ["n3", "n4"])
    assert len(outcome.evicts) == 2
    assert {e.node for e in outcome.decisions.evictions} == set(outcome.pipelined.values())


def test_each_sub_group_has_a_rack_of_its_own_freed() -> None:
    policy = {
        "name": "w",
        "matchLabelKeys": ["group"],
        "subGroupSize": 2,
        "minSubGroups": 2,
        "networkTopology": {"mode": "hard", "highestTierAllowed": 1},
    }
    given = four_slots(low=everywhere(min=0), high=gang(4, priority=9, policies=[policy]))
    for number, pod in enumerate(pod for pod in given.objects["pods"] if pod["metadata"]["name"].startswith("high")):
        pod["metadata"]["labels"] = {"group": str(number // 2)}

    outcome = given.schedule(ACTIONS, PLUGINS)

    assert len(outcome.evicts) == 4
    racks = [{(int(outcome.pipelined[f"high-{i}"][1]) - 1) // 2 for i in members} for members in ((0, 1), (2, 3))]
    assert sorted(map(sorted, racks)) == [[0], [1]]


def test_roles_and_sub_groups_keep_their_minimums() -> None:
    low = everywhere(min=2, roles=("master", "worker", "worker", "worker"), role_minimums={"master": 1, "worker": 1})

    outcome = four_slots(low=low, high=gang(2, priority=9)).schedule(ACTIONS, PLUGINS)

    assert len(outcome.evicts) == 2
    assert "low-0" not in outcome.evicts


def test_less_important_tasks_of_a_job_go_first() -> None:
    low = everywhere(min=2, task_priorities=[4, 3, 2, 1])

    assert four_slots(low=low, high=gang(2, priority=9)).schedule(ACTIONS, PLUGINS).evicts == ["low-2", "low-3"]


def test_a_task_that_never_preempts_leaves_everybody_in_place() -> None:
    high = gang(1, priority=9, spec={"preemptionPolicy": "Never"})

    assert four_slots(low=everywhere(min=0), high=high).schedule(ACTIONS, PLUGINS).evicts == []


def test_nobody_else_goes_while_pods_are_still_leaving_for_the_gang() -> None:
    high = gang(1, priority=9, phase="Inqueue")
    given = four_slots(low=everywhere(min=0), high=replace(high, status={"nominatedNodeName": "n1"}))
    leaver = given.objects["pods"][0]
    leaver["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"
    leaver["status"]["conditions"] = [
        {"type": "DisruptionTarget", "status": "True", "reason": "PreemptionByScheduler"},
    ]
    elsewhere = four_slots(low=everywhere(min=0), high=high)

    assert given.schedule("gangpreempt", PLUGINS).evicts == []
    assert len(elsewhere.schedule("gangpreempt", PLUGINS).evicts) == 1


def test_only_as_many_domains_are_looked_at_as_configured() -> None:
    topology = {"mode": "hard", "highestTierAllowed": 1}
    given = four_slots(
        low=running(["n3", "n4"], min=0, priority=1),
        fixed=running(["n1", "n2"], min=0, priority=99),
        high=gang(2, priority=9, topology=topology),
    )
    plugins = PLUGINS.replace(", network-topology-aware", "; network-topology-aware")

    one = given.schedule(ACTIONS, plugins, configurations={"gangpreempt": {"maxDomains": 1}})
    all_of_them = given.schedule(ACTIONS, plugins, configurations={"gangpreempt": {"maxDomains": 0}})

    assert (one.evicts, all_of_them.evicts) == ([], ["low-0", "low-1"])


# -- gangreclaim -------------------------------------------------------------------------------------------------------
RECLAIM = "enqueue, allocate, gangreclaim"
FAIR = "priority, gang, conformance; predicates, proportion"


def two_queues(over_share: GangShape, under: GangShape, plugins: str = FAIR, **queues: Any) -> Any:
    given = cluster(
        nodes={f"n{i}": "cpu=1" for i in range(1, 5)},
        jobs={"over": over_share, "under": under},
        queues={"q1": share(), "q2": share(), **queues},
    )
    return given.schedule(RECLAIM, plugins)


def test_a_queue_takes_back_room_for_a_whole_gang() -> None:
    outcome = two_queues(running(["n1", "n2", "n3", "n4"], queue="q1", min=1), gang(2, queue="q2"))

    assert len(outcome.evicts) == 2
    assert sorted(outcome.pipelined) == ["under-0", "under-1"]
    assert {e.reason for e in outcome.decisions.evictions} == {"gangreclaim"}


def test_a_gang_that_can_spare_nobody_is_taken_whole_by_a_queue_that_deserves_it() -> None:
    outcome = two_queues(running(["n1", "n2", "n3", "n4"], queue="q1", min=4), gang(2, queue="q2"))

    assert len(outcome.evicts) == 4


def test_a_queue_does_not_take_more_than_it_deserves() -> None:
    outcome = two_queues(running(["n1", "n2", "n3", "n4"], queue="q1", min=0), gang(3, queue="q2"))

    assert outcome.evicts == []


def test_a_queue_that_may_not_be_reclaimed_from_keeps_what_it_has() -> None:
    over_share = running(["n1", "n2", "n3", "n4"], queue="q1", min=0)

    assert two_queues(over_share, gang(2, queue="q2"), q1=share(reclaimable=False)).evicts == []


def test_a_queue_within_its_share_is_not_reclaimed_from() -> None:
    given = cluster(
        nodes={f"n{i}": "cpu=1" for i in range(1, 5)},
        jobs={
            "a": running(["n1", "n2"], queue="q1", min=0),
            "b": running(["n3", "n4"], queue="q2", min=0),
            "c": gang(1, queue="q1"),
        },
        queues={"q1": share(weight=2), "q2": share(weight=1)},
    )

    assert given.schedule(RECLAIM, FAIR).evicts == []


def test_of_several_queues_the_one_above_its_share_gives_even_if_another_counts_less() -> None:
    given = cluster(
        nodes={f"n{i}": "cpu=1" for i in range(1, 5)},
        jobs={
            "a": running(["n1", "n2", "n3"], queue="q1", min=0),
            "b": running(["n4"], queue="q2", min=0),
            "c": gang(1, queue="q3"),
        },
        queues={"q1": share(priority=5), "q2": share(), "q3": share()},
    )

    one_tier = "priority, gang, conformance, proportion; predicates"
    assert given.schedule(RECLAIM, one_tier).evicts in (["a-0"], ["a-1"], ["a-2"])


@pytest.mark.parametrize("protection", ["pdb", "cdp"])
def test_gang_evictions_keep_to_budgets_and_cooldowns_too(protection: str) -> None:
    labels = {"app": "low", "volcano.sh/cooldown-time": "1h"}
    low = everywhere(min=0, pod_labels=labels)
    low = replace(low, status={"conditions": [_scheduled("2026-01-01T00:00:00Z")]})
    given = four_slots(low=low, high=gang(1, priority=9))
    budget = {"selector": {"matchLabels": {"app": "low"}}}
    given.objects["podDisruptionBudgets"] = [
        {"metadata": {"name": "b", "namespace": "default"}, "spec": budget, "status": {"disruptionsAllowed": 0}}
    ]

    assert given.schedule(ACTIONS, f"priority, gang, {protection}; predicates").evicts == []
    assert len(given.schedule(ACTIONS, "priority, gang; predicates").evicts) == 1


def _scheduled(at: str) -> dict[str, str]:
    return {"type": "PodScheduled", "status": "True", "lastTransitionTime": at}


def test_capacity_gives_back_what_is_beyond_deserved_and_never_the_guarantee() -> None:
    plugins = "priority, gang, conformance; predicates, capacity"
    over_share = running(["n1", "n2", "n3", "n4"], queue="q1", min=0)
    mine = share(deserved="cpu=2, memory=1Gi")

    outcome = two_queues(over_share, gang(2, queue="q2"), plugins, q1=share(deserved="cpu=2"), q2=mine)
    guaranteed = two_queues(
        over_share, gang(2, queue="q2"), plugins, q1=share(deserved="cpu=4", guarantee="cpu=4"), q2=mine
    )

    assert len(outcome.evicts) == 2
    assert guaranteed.evicts == []


# -- over random clusters ----------------------------------------------------------------------------------------------
@st.composite
def crowded(draw: Any) -> Cluster:
    names = [f"n{i}" for i in range(draw(st.integers(2, 6)))]
    half = len(names) // 2
    racks = {"r1": names[:half], "r2": names[half:]}
    jobs = {}
    for number in range(draw(st.integers(1, 4))):
        on = draw(st.lists(st.sampled_from(names), min_size=1, max_size=4))
        jobs[f"old{number}"] = running(
            on, min=draw(st.integers(0, len(on))), priority=draw(st.integers(1, 3)), queue=draw(st.sampled_from("pq"))
        )
    for number in range(draw(st.integers(1, 3))):
        size = draw(st.integers(1, 4))
        topology = draw(st.sampled_from([None, {"mode": "hard", "highestTierAllowed": 1}, {"mode": "soft"}]))
        jobs[f"new{number}"] = gang(
            size,
            draw(st.sampled_from(["cpu=1", "cpu=2"])),
            min=draw(st.integers(1, size)),
            priority=draw(st.integers(1, 9)),
            queue=draw(st.sampled_from("pq")),
            topology=topology,
            phase="Inqueue",
        )
    extra = {"hyperNodeRealNodes": racks, "hyperNodesByTier": {"1": ["r1", "r2"]}}
    nodes = {name: f"cpu={draw(st.integers(2, 4))}" for name in names}
    return cluster(nodes=nodes, jobs=jobs, extra=extra, queues={"p": share(), "q": share(weight=2)})


@settings(max_examples=120, deadline=None)
@over(crowded(), st.sampled_from(["gangpreempt", "gangreclaim"]), st.integers(0, 3))
def test_whoever_is_evicted_is_evicted_for_a_gang_that_then_is_whole(given: Cluster, action: str, seed: int) -> None:
    snapshot = given.snapshot()
    config = configuration(f"allocate, {action}", f"{PLUGINS}, proportion")

    decisions = cycle(snapshot, config, SeededChance(seed))
    again = cycle(snapshot, config, SeededChance(seed))

    assert decisions.dropped == {}
    assert (decisions.evictions, decisions.pipelined) == (again.evictions, again.pipelined)
    for eviction in decisions.evictions:
        victim, preemptor = snapshot.jobs[eviction.job], snapshot.jobs[_job_of(eviction.preemptor)]
        counts = decisions.status_counts[preemptor.id]
        assert sum(counts.get(s, 0) for s in ("Pipelined", "Running", "Binding")) >= preemptor.min_available
        if action == "gangpreempt":
            assert victim.queue == preemptor.queue
            assert victim.priority < preemptor.priority
        else:
            assert victim.queue != preemptor.queue


def _job_of(task: str) -> str:
    return task.rpartition("-")[0]
