"""preempt, reclaim and backfill."""

from __future__ import annotations

from volcano.testing.clusters import cluster, gang, machine, running, share

PREEMPT = "priority, gang, conformance; predicates, nodeorder"


def test_a_more_important_job_takes_the_place_of_a_less_important_one() -> None:
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"low": running(["n1", "n1"], priority=1), "high": gang(1, priority=9)})

    outcome = given.schedule("enqueue, allocate, preempt", PREEMPT)

    assert len(outcome.evicts) == 1
    assert outcome.pipelined == {"high-0": "n1"}
    (eviction,) = outcome.decisions.evictions
    assert (eviction.reason, eviction.preemptor) == ("preempt", "default/high-0")


def test_a_gang_that_cannot_be_made_whole_evicts_nobody() -> None:
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"low": running(["n1", "n1"], priority=1), "high": gang(3, priority=9)})

    outcome = given.schedule("enqueue, allocate, preempt", PREEMPT)

    assert outcome.evicts == []
    assert outcome.pipelined == {}


def test_equals_do_not_preempt_each_other() -> None:
    given = cluster(nodes={"n1": "cpu=1"}, jobs={"a": running(["n1"], min=0), "b": gang(1)})

    assert given.schedule("enqueue, allocate, preempt", PREEMPT).evicts == []


def test_a_task_that_never_preempts_does_not() -> None:
    given = cluster(
        nodes={"n1": "cpu=1"},
        jobs={
            "low": running(["n1"], min=0, priority=1),
            "high": gang(1, priority=9, spec={"preemptionPolicy": "Never"}),
        },
    )

    assert given.schedule("enqueue, allocate, preempt", PREEMPT).evicts == []


def test_only_what_is_needed_is_evicted_the_least_important_first() -> None:
    given = cluster(
        nodes={"n1": "cpu=3"},
        jobs={
            "lowest": running(["n1"], min=0, priority=1),
            "lower": running(["n1", "n1"], min=0, priority=2),
            "high": gang(1, each="cpu=1", priority=9),
        },
    )

    assert given.schedule("enqueue, allocate, preempt", PREEMPT).evicts == ["lowest-0"]


def test_within_a_job_important_tasks_take_the_place_of_others() -> None:
    given = cluster(
        nodes={"n1": "cpu=1"},
        jobs={"j": gang(2, min=2, on=["n1"], task_priorities=[1, 9], phase="Running")},
    )

    outcome = given.schedule("preempt", "priority; predicates")

    assert outcome.evicts == ["j-0"]
    assert outcome.pipelined == {"j-1": "n1"}


def test_a_trial_run_spares_whom_it_can() -> None:
    given = cluster(
        nodes={"n1": "cpu=4"},
        jobs={
            "small": running(["n1"], each="cpu=1", min=0, priority=1),
            "large": running(["n1"], each="cpu=3", min=0, priority=2),
            "high": gang(1, each="cpu=3", priority=9),
        },
    )
    configured = {"preempt": {"enableTopologyAwarePreemption": True}}

    outcome = given.schedule("enqueue, allocate, preempt", PREEMPT, configurations=configured)

    assert outcome.evicts == ["large-0"]


def test_a_queue_below_its_share_takes_back_from_one_above() -> None:
    given = cluster(
        nodes={"n1": "cpu=4", "n2": "cpu=4"},
        jobs={
            "over": running(["n1"] * 4 + ["n2"] * 4, queue="q1"),
            "under": gang(2, queue="q2", each="cpu=2"),
        },
        queues={"q1": share(), "q2": share()},
    )

    outcome = given.schedule("enqueue, allocate, reclaim", "priority, gang, conformance; predicates, proportion")

    assert len(outcome.evicts) == 4
    assert len(outcome.pipelined) == 2


def test_a_queue_that_is_not_reclaimable_keeps_what_it_has() -> None:
    given = cluster(
        nodes={"n1": "cpu=4"},
        jobs={"over": running(["n1"] * 4, queue="q1"), "under": gang(1, queue="q2")},
        queues={"q1": share(reclaimable=False), "q2": share()},
    )

    assert given.schedule("enqueue, allocate, reclaim", "gang; predicates, proportion").evicts == []


def test_reclaim_never_takes_what_a_queue_is_guaranteed() -> None:
    given = cluster(
        nodes={"n1": "cpu=4"},
        jobs={"over": running(["n1"] * 4, queue="q1", min=0), "under": gang(4, queue="q2")},
        queues={"q1": share(guarantee="cpu=2", deserved="cpu=2"), "q2": share(deserved="cpu=4")},
    )

    outcome = given.schedule("enqueue, allocate, reclaim", "capacity; predicates")

    assert len(outcome.evicts) <= 2


def test_tasks_that_ask_for_nothing_are_backfilled_while_pods_are_free() -> None:
    given = cluster(nodes={"n1": machine("cpu=1", pods=2)}, jobs={"a": gang(3, each="", min=1)})

    outcome = given.schedule("enqueue, allocate, backfill", "gang, predicates")

    assert len(outcome.binds) == 2


def test_backfill_respects_taints() -> None:
    given = cluster(
        nodes={"n1": machine("cpu=1", taints=[{"key": "k", "effect": "NoSchedule"}])}, jobs={"a": gang(1, each="")}
    )

    outcome = given.schedule("enqueue, allocate, backfill", "gang, predicates")

    assert outcome.binds == {}
    assert "untolerated taint" in next(pod.message for pod in outcome.decisions.pods)
