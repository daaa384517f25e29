"""proportion and capacity: what queues deserve, may have, and give back."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.scheduler.core.pour import pour
from volcano.scheduler.core.queue_shares import QueueShare
from volcano.scheduler.model import Queue, Resources
from volcano.testing.clusters import Cluster, cluster, gang, running, share

TREE = {"switches": {"capacity": {"enableHierarchy": True}}}


def poured(total: float, *queues: tuple[int, float]) -> list[float]:
    whole = Resources({"cpu": total})
    shares = [
        QueueShare(Queue(str(i), weight), Resources(), real_capability=whole, request=Resources({"cpu": asked}))
        for i, (weight, asked) in enumerate(queues)
    ]
    pour(whole, shares)
    return [share.deserved["cpu"] for share in shares]


def test_what_one_queue_does_not_ask_for_is_spread_over_the_others() -> None:
    assert poured(10_000, (1, 2_000), (3, 20_000)) == [2_000, 8_000]


def test_with_enough_for_all_everybody_gets_what_they_ask_for() -> None:
    assert poured(10_000, (1, 2_000), (1, 3_000)) == [2_000, 3_000]


def test_queues_without_weight_deserve_nothing() -> None:
    assert poured(10_000, (0, 2_000)) == [0.0]


def test_a_queue_is_not_given_more_than_its_capability() -> None:
    given = cluster(nodes={"n": "cpu=9"}, jobs={"a": gang(5, min=1)}, queues={"default": share(capability="cpu=2")})

    outcome = given.schedule(plugins="gang; predicates, proportion")

    assert len(outcome.binds) == 2


@pytest.mark.parametrize("plugin", ["proportion", "capacity"])
def test_the_queue_with_the_higher_priority_is_served_first(plugin: str) -> None:
    given = cluster(
        nodes={"n": "cpu=1"},
        jobs={"a": gang(1, queue="q1"), "b": gang(1, queue="q2")},
        queues={"q1": share(priority=1), "q2": share(priority=9)},
    )

    outcome = given.schedule(plugins=f"gang; predicates, {plugin}", switches={plugin: {"enabledAllocatable": False}})

    assert set(outcome.binds) == {"b-0"}


# -- gangs that are larger than what their queue deserves ------------------------------------------------------------------
def two_queues(left: Any, right: Any) -> Cluster:
    return cluster(nodes={"n": "cpu=8"}, jobs={"a": left, "b": right}, queues={"q1": share(), "q2": share()})


def scheduled_by_proportion(given: Cluster) -> set[str]:
    return set(given.schedule(actions="enqueue, allocate", plugins="gang; predicates, proportion").binds)


def test_of_two_gangs_that_are_both_larger_than_their_shares_one_runs() -> None:
    given = two_queues(gang(5, queue="q1", phase="Inqueue"), gang(5, queue="q2", phase="Inqueue"))

    assert len(scheduled_by_proportion(given)) == 5


def test_a_gang_runs_in_room_that_is_deserved_by_a_gang_which_was_not_let_in() -> None:
    let_in, kept_out = (
        gang(6, queue="q1", phase="Inqueue", min_resources="cpu=6"),
        gang(5, queue="q2", min_resources="cpu=5"),
    )

    outcome = two_queues(let_in, kept_out).schedule(
        actions="enqueue, allocate", plugins="gang; overcommit, predicates, proportion"
    )

    assert set(outcome.binds) == {f"a-{number}" for number in range(6)}


def test_a_gang_that_fits_what_its_queue_deserves_comes_before_one_that_does_not() -> None:
    given = two_queues(gang(6, queue="q1", phase="Inqueue", priority=9), gang(4, queue="q2", phase="Inqueue"))

    assert scheduled_by_proportion(given) == {"b-0", "b-1", "b-2", "b-3"}


def test_a_queue_that_holds_something_does_not_go_beyond_its_share() -> None:
    given = cluster(
        nodes={"n": "cpu=8"},
        jobs={"a": gang(5, queue="q1", phase="Inqueue"), "b": gang(5, queue="q2", phase="Inqueue"), "c": running("n", queue="q1"), "d": running("n", queue="q2")},
        queues={"q1": share(), "q2": share()},
    )  # fmt: skip

    assert scheduled_by_proportion(given) == set()


def test_tasks_beyond_the_minimum_stay_within_the_share() -> None:
    given = two_queues(gang(8, min=5, queue="q1", phase="Inqueue"), gang(5, queue="q2", phase="Inqueue"))

    assert len(scheduled_by_proportion(given)) == 5


def test_a_gang_does_not_go_beyond_the_capability_of_its_queue() -> None:
    given = cluster(
        nodes={"n": "cpu=8"},
        jobs={"a": gang(6, queue="q1", phase="Inqueue"), "b": gang(6, queue="q2", phase="Inqueue")},
        queues={"q1": share(capability="cpu=5"), "q2": share(capability="cpu=5")},
    )

    assert scheduled_by_proportion(given) == set()


# -- capacity -----------------------------------------------------------------------------------------------------------
def reclaiming(given: Cluster, **more: Any) -> list[str]:
    plugins = "gang, capacity; predicates"
    return given.schedule("enqueue, allocate, reclaim", plugins, **more).evicts


def test_a_queue_takes_back_what_it_deserves_from_one_that_borrowed() -> None:
    given = cluster(
        nodes={"n": "cpu=4"},
        jobs={"borrower": running(["n"] * 4, queue="q1"), "owner": gang(1, queue="q2")},
        queues={"q1": share(deserved="cpu=2"), "q2": share(deserved="cpu=2")},
    )

    assert len(reclaiming(given)) == 1


def test_a_queue_at_what_it_deserves_gives_nothing() -> None:
    given = cluster(
        nodes={"n": "cpu=4"},
        jobs={"borrower": running(["n"] * 4, queue="q1"), "owner": gang(1, queue="q2")},
        queues={"q1": share(deserved="cpu=4"), "q2": share(deserved="cpu=2")},
    )

    assert reclaiming(given) == []


def test_a_queue_beyond_what_it_deserves_may_not_reclaim() -> None:
    given = cluster(
        nodes={"n": "cpu=4"},
        jobs={"a": running(["n"] * 2, queue="q1"), "mine": running(["n"] * 2, queue="q2"), "more": gang(1, queue="q2")},
        queues={"q1": share(deserved="cpu=1"), "q2": share(deserved="cpu=2")},
    )

    assert reclaiming(given) == []


def tree(**leaves: Any) -> dict[str, Any]:
    return {"root": share(reclaimable=False), "team": share(capability="cpu=3", parent="root"), **leaves}


def test_an_ancestors_capability_bounds_its_leaves_together() -> None:
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"a": gang(3, min=1, queue="one"), "b": gang(3, min=1, queue="two")},
        queues=tree(one=share(parent="team"), two=share(parent="team")),
    )

    outcome = given.schedule(plugins="gang; predicates, capacity", **TREE)

    assert len(outcome.binds) == 3


def test_only_leaves_hold_jobs() -> None:
    given = cluster(nodes={"n": "cpu=9"}, jobs={"a": gang(1, queue="team")}, queues=tree(one=share(parent="team")))

    assert given.schedule(plugins="gang; predicates, capacity", **TREE).binds == {}


def test_relatives_give_before_strangers() -> None:
    given = cluster(
        nodes={"n": "cpu=4"},
        jobs={
            "sibling": running(["n", "n"], queue="two"),
            "stranger": running(["n", "n"], queue="far"),
            "mine": gang(1, queue="one"),
        },
        queues={
            "root": share(reclaimable=False),
            "team": share(parent="root", deserved="cpu=2"),
            "one": share(parent="team", deserved="cpu=1"),
            "two": share(parent="team", deserved="cpu=1"),
            "far": share(parent="root", deserved="cpu=1"),
        },
    )

    assert reclaiming(given, **TREE) == ["sibling-1"]


@pytest.mark.parametrize("parent", ["loop", "missing"])
def test_a_queue_without_a_way_to_the_root_is_set_aside_and_others_go_on(parent: str) -> None:
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"bad": gang(1, queue="bad", min_resources="cpu=1"), "good": gang(1, queue="one")},
        queues=tree(one=share(parent="team"), bad=share(parent=parent), loop=share(parent="bad")),
    )

    outcome = given.schedule(plugins="gang; predicates, capacity", **TREE)

    assert outcome.binds == {"good-0": "n"}
    assert "Queue/bad" in outcome.decisions.set_aside
    assert "cannot hold jobs" in outcome.why["bad"]


def test_without_a_root_nobody_is_placed() -> None:
    given = cluster(nodes={"n": "cpu=9"}, jobs={"a": gang(1)})

    assert given.schedule(plugins="gang; predicates, capacity", **TREE).binds == {}


def test_of_two_rivals_the_one_configured_first_takes_part() -> None:
    given = cluster(nodes={"n": "cpu=4"}, jobs={"a": gang(4, min=1)}, queues={"default": share(capability="cpu=2")})

    session = given.session("proportion, capacity")

    assert {type(plugin).__name__ for plugin in session.ask.plugins("allocatable")} == {"Proportion"}


# -- tasks that are being ended ------------------------------------------------------------------------------------------
POLICIES = pytest.mark.parametrize("plugin", ["proportion", "capacity"])


@POLICIES
def test_a_task_is_not_bound_while_tasks_that_are_being_ended_use_up_its_queue(plugin: str) -> None:
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"a": running("n", "cpu=3", ending=1), "b": gang(1, "cpu=2", phase="Inqueue")},
        queues={"default": share(capability="cpu=4")},
    )

    outcome = given.schedule(plugins=f"gang; predicates, {plugin}")

    assert outcome.binds == {}
    assert outcome.pipelined == {"b-0": "n"}


@POLICIES
def test_tasks_that_are_being_ended_leave_the_rest_of_their_queue_to_others(plugin: str) -> None:
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"a": running("n", "cpu=2", ending=1), "b": gang(1, "cpu=2", phase="Inqueue")},
        queues={"default": share(capability="cpu=4")},
    )

    outcome = given.schedule(plugins=f"gang; predicates, {plugin}")

    assert set(outcome.binds) == {"b-0"}


@POLICIES
def test_of_an_elastic_job_what_fits_beside_tasks_that_are_being_ended_is_bound(plugin: str) -> None:
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"a": running("n", "cpu=2", ending=1), "b": gang(3, min=1, phase="Inqueue")},
        queues={"default": share(capability="cpu=4")},
    )

    outcome = given.schedule(plugins=f"gang; predicates, {plugin}")

    assert len(outcome.binds) == 2


@POLICIES
def test_a_task_that_this_cycle_evicts_uses_its_queue_until_it_has_ended(plugin: str) -> None:
    given = cluster(
        nodes={"n": "cpu=9"}, jobs={"a": running("nn", "cpu=3")}, queues={"default": share(capability="cpu=8")}
    )
    session = given.session(f"gang; predicates, {plugin}")
    [job] = session.jobs.values()
    queue, (evicted, task) = session.queues["default"], job.tasks.values()

    assert session.ask.bindable(queue, task)
    session.moves.evict(evicted)
    assert not session.ask.bindable(queue, task)
    session.moves.reinstate(evicted)
    assert session.ask.bindable(queue, task)


def test_tasks_that_are_being_ended_count_for_the_queues_above_theirs() -> None:
    given = cluster(
        nodes={"n": "cpu=9"},
        jobs={"a": running("n", "cpu=2", ending=1, queue="one"), "b": gang(1, "cpu=2", queue="two", phase="Inqueue")},
        queues=tree(one=share(parent="team"), two=share(parent="team")),
    )

    outcome = given.schedule(plugins="gang; predicates, capacity", **TREE)

    assert outcome.binds == {}
