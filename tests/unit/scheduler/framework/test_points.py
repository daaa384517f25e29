"""Every extension point: who is asked, how answers combine, what holds without an answer."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.scheduler.framework.answers import BatchScore, Cause, Code, Refusal, Vote
from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.framework.rules import (
    Rule,
    agreed_victims,
    every,
    first_answer,
    first_difference,
    first_objection,
    first_tier_agrees,
    notify_all,
    some,
    union_of_tier,
    vote,
)
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import Task
from volcano.testing.clusters import Cluster, cluster, gang, running, share


def plugin(name: str, **answers: Any) -> type[Plugin]:
    """A plugin that answers the given points."""
    return type(name, (Plugin,), {"name": name, **{point: _method(answer) for point, answer in answers.items()}})


def _method(answer: Any) -> Any:
    return lambda self, *about: answer(*about)


def asking(given: Cluster, *plugins: type[Plugin], tiers: str = "", **more: Any) -> Session:
    return given.session(tiers or ", ".join(p.name for p in plugins), knowing=plugins, **more)


def two_jobs() -> Cluster:
    return cluster(
        nodes={"n1": "cpu=4", "n2": "cpu=4"},
        jobs={"a": gang(2), "b": gang(2)},
        queues={"one": share(), "other": share()},
    )


def task_of(session: Session, name: str) -> Task:
    return next(task for task in session.snapshot.tasks.values() if task.name == name)


# -- orders -------------------------------------------------------------------------------------------------------
def test_queue_order_is_decided_by_the_first_plugin_that_tells_them_apart() -> None:
    backwards = plugin("backwards", queue_order=lambda a, b: -1 if a.name > b.name else 1)
    session = asking(two_jobs(), plugin("silent", queue_order=lambda a, b: 0), backwards)

    assert session.ask.queue_before(session.queues["other"], session.queues["one"])


def test_queue_order_without_plugins_is_by_creation_and_name() -> None:
    session = asking(two_jobs())

    assert session.ask.queue_before(session.queues["one"], session.queues["other"])


def test_victim_queue_order_falls_back_to_the_reverse_of_the_queue_order() -> None:
    session = asking(two_jobs())
    one, other, ours = (session.queues[name] for name in ("one", "other", "default"))

    assert session.ask.victim_queue_before(other, one, ours)


def test_victim_queue_order_of_a_plugin_decides() -> None:
    session = asking(two_jobs(), plugin("p", victim_queue_order=lambda a, b, mine: -1 if a.name == "one" else 1))
    one, other, ours = (session.queues[name] for name in ("one", "other", "default"))

    assert session.ask.victim_queue_before(one, other, ours)


def test_job_order_switched_off_is_not_asked() -> None:
    late = plugin("late", job_order=lambda a, b: -1 if a.name == "b" else 1)
    on = asking(two_jobs(), late)
    off = asking(two_jobs(), late, switches={"late": {"enableJobOrder": False}})

    assert on.ask.job_before(on.jobs["default/b"], on.jobs["default/a"])
    assert off.ask.job_before(off.jobs["default/a"], off.jobs["default/b"])


def test_sub_job_order_falls_back_to_the_match_index() -> None:
    policy = {"name": "w", "matchLabelKeys": ["index"]}
    given = cluster(nodes={"n1": "cpu=4"}, jobs={"a": gang(1, policies=[policy], pod_labels={"index": "7"})})
    session = asking(given, plugin("p", sub_job_order=lambda a, b: 0))
    (sub_job,) = session.jobs["default/a"].sub_jobs.values()

    assert sub_job.match_index == 7
    assert not session.ask.sub_job_before(sub_job, sub_job)


def test_task_order_falls_back_to_the_number_at_the_end_of_the_name() -> None:
    given = cluster(nodes={"n1": "cpu=40"}, jobs={"a-w": gang(11)})
    session = asking(given)

    assert session.ask.task_before(task_of(session, "a-w-2"), task_of(session, "a-w-10"))


def test_task_order_of_a_plugin_comes_first() -> None:
    given = cluster(nodes={"n1": "cpu=40"}, jobs={"a-w": gang(11)})
    session = asking(given, plugin("p", task_order=lambda a, b: b.index - a.index))

    assert session.ask.task_before(task_of(session, "a-w-10"), task_of(session, "a-w-2"))


# -- jobs ----------------------------------------------------------------------------------------------------------
def test_job_valid_gives_the_first_refusal() -> None:
    refusal = Refusal("Odd", "an odd job")
    session = asking(two_jobs(), plugin("p", job_valid=lambda job: None), plugin("q", job_valid=lambda job: refusal))

    assert session.ask.job_valid(session.jobs["default/a"]) is refusal


def test_job_enqueueable_is_a_vote_in_which_any_rejection_counts() -> None:
    yes, no = plugin("y", job_enqueueable=lambda job: 1), plugin("n", job_enqueueable=lambda job: -1)
    session = asking(two_jobs(), yes, no)

    assert not session.ask.job_enqueueable(session.jobs["default/a"])


def test_job_enqueueable_is_settled_by_the_first_tier_with_a_permit() -> None:
    yes, no = plugin("y", job_enqueueable=lambda job: 1), plugin("n", job_enqueueable=lambda job: -1)
    session = asking(two_jobs(), yes, no, tiers="y; n")

    assert session.ask.job_enqueueable(session.jobs["default/a"])


def test_job_enqueued_tells_everybody() -> None:
    told: list[str] = []
    given = two_jobs()

    given.schedule("enqueue", "p, q", knowing=[plugin(n, job_enqueued=lambda job: told.append(job.name)) for n in "pq"])

    assert sorted(told) == ["a", "a", "b", "b"]


def test_job_ready_needs_every_plugin_and_holds_without_any() -> None:
    given = two_jobs()
    doubted = asking(given, plugin("y", job_ready=lambda job: True), plugin("n", job_ready=lambda job: False))

    assert not doubted.ask.job_ready(doubted.jobs["default/a"])
    assert asking(given).ask.job_ready(doubted.jobs["default/a"])


def test_sub_job_ready_is_the_jobs_readiness_without_policies() -> None:
    session = asking(two_jobs(), plugin("n", job_ready=lambda job: False, sub_job_ready=lambda job, sub: True))
    job = session.jobs["default/a"]

    assert not session.ask.sub_job_ready(job, job.sub_jobs[job.id])


def test_job_pipelined_is_a_vote() -> None:
    session = asking(two_jobs(), plugin("n", job_pipelined=lambda job: Vote.REJECT))

    assert not session.ask.job_pipelined(session.jobs["default/a"])
    assert asking(two_jobs()).ask.job_pipelined(session.jobs["default/a"])


def test_sub_job_pipelined_is_asked_of_jobs_with_policies() -> None:
    policy = {"name": "w", "matchLabelKeys": ["index"]}
    given = cluster(nodes={"n1": "cpu=4"}, jobs={"a": gang(1, policies=[policy], pod_labels={"index": "7"})})
    session = asking(given, plugin("n", sub_job_pipelined=lambda job, sub: Vote.REJECT))
    job = session.jobs["default/a"]

    assert not session.ask.sub_job_pipelined(job, next(iter(job.sub_jobs.values())))


def test_job_starving_is_decided_by_the_first_tier_that_has_an_opinion() -> None:
    hungry, sated = plugin("h", job_starving=lambda job: True), plugin("s", job_starving=lambda job: False)
    session = asking(two_jobs(), hungry, sated, tiers="; h; s")

    assert session.ask.job_starving(session.jobs["default/a"])
    assert not asking(two_jobs()).ask.job_starving(session.jobs["default/a"])


# -- queues ---------------------------------------------------------------------------------------------------------
def test_overused_by_one_plugin_keeps_the_queue_waiting() -> None:
    outcome = two_jobs().schedule(plugins="p", knowing=[plugin("p", overused=lambda queue: True)])

    assert outcome.binds == {}
    assert outcome.why["a"] == "queue default uses all it deserves"


def test_allocatable_refused_leaves_the_task_waiting() -> None:
    picky = plugin("p", allocatable=lambda queue, task: task.name != "a-0")

    outcome = two_jobs().schedule(plugins="p", knowing=[picky])

    assert set(outcome.binds) == {"a-1", "b-0", "b-1"}


def test_preemptive_refused_means_the_queue_does_not_reclaim() -> None:
    session = asking(two_jobs(), plugin("p", preemptive=lambda queue, tasks: len(tasks) < 2))
    queue, task = session.queues["default"], task_of(session, "a-0")

    assert session.ask.preemptive(queue, [task])
    assert not session.ask.preemptive(queue, [task, task])


# -- nodes -----------------------------------------------------------------------------------------------------------
def test_pre_filter_refusal_ends_the_attempt_and_is_told() -> None:
    refusing = plugin("p", pre_filter=lambda task: Refusal("No", "not today") if task.job_id == "default/a" else None)

    outcome = two_jobs().schedule(plugins="gang, p", knowing=[refusing])

    assert set(outcome.binds) == {"b-0", "b-1"}
    assert "not today" in outcome.why["a"]


def test_node_filter_refuses_rows_and_counts_them_by_cause() -> None:
    class OnlySecond(Plugin):
        name = "p"

        def node_filter(self, task: Task, nodes: Any) -> Any:
            first = nodes.rows == 0
            if first.any():
                yield Cause(first, Code.UNRESOLVABLE, "not the first")

    outcome = two_jobs().schedule(plugins="p", knowing=[OnlySecond])

    assert set(outcome.binds.values()) == {"n2"}


def test_node_filter_causes_of_a_later_plugin_do_not_count_where_an_earlier_one_refused() -> None:
    def everywhere(reason: str) -> Any:
        return lambda task, nodes: [Cause(nodes.all(), Code.UNSCHEDULABLE, reason)]

    session = asking(
        two_jobs(), plugin("p", node_filter=everywhere("first")), plugin("q", node_filter=everywhere("second"))
    )

    filtered = session.nodes.filtered(task_of(session, "a-0"))

    assert filtered.histogram() == {"first": 2}


def test_node_score_of_all_plugins_is_added() -> None:
    session = asking(
        two_jobs(),
        plugin("p", node_score=lambda task, nodes: nodes.rows * 10.0),
        plugin("q", node_score=lambda task, nodes: nodes.rows * 1.0),
    )

    assert session.nodes.scored(task_of(session, "a-0")).node.tolist() == [0.0, 11.0]


def test_batch_node_score_may_depend_on_who_the_candidates_are() -> None:
    counted = plugin(
        "p", batch_node_score=lambda task, nodes: BatchScore(nodes.zeros(), lambda among: among * float(among.sum()))
    )
    session = asking(two_jobs(), counted)
    task = task_of(session, "a-0")

    assert session.nodes.scored(task).total(session.table.idle[0] > 0, task).tolist() == [2.0, 2.0]


def test_best_node_chooses_whatever_the_scores_say() -> None:
    last = plugin("p", best_node=lambda task, nodes, scores: nodes[0], node_score=lambda task, nodes: nodes.rows * 1.0)

    outcome = two_jobs().schedule(plugins="p", knowing=[last])

    assert set(outcome.binds.values()) == {"n1"}


# -- hypernodes --------------------------------------------------------------------------------------------------------
RACKS = {"hyperNodeRealNodes": {"r1": ["n1"], "r2": ["n2"]}, "hyperNodesByTier": {"1": ["r1", "r2"]}}


def test_domain_gradient_for_job_says_which_domains_are_tried_in_turn() -> None:
    def second_rack(job: Any, within: Any, purpose: str) -> Any:
        return [[racks["r2"]]]

    given = cluster(
        nodes={"n1": "cpu=4", "n2": "cpu=4"},
        jobs={"a": gang(2, topology={"mode": "hard", "highestTierAllowed": 1})},
        extra=RACKS,
    )
    racks = given.session().domains.by_name
    everywhere = plugin(
        "p",
        domain_gradient_for_job=second_rack,
        domain_gradient_for_sub_job=lambda sub, within, purpose: [[within]],
    )

    outcome = given.schedule(plugins="gang, p", knowing=[everywhere])

    assert outcome.binds == {"a-0": "n2", "a-1": "n2"}


def test_domain_gradient_for_sub_job_and_domain_score_choose_the_best_domain() -> None:
    given = cluster(
        nodes={"n1": "cpu=4", "n2": "cpu=4"},
        jobs={"a": gang(2, topology={"mode": "hard", "highestTierAllowed": 1})},
        extra=RACKS,
    )
    racks = given.session().domains.by_name
    choosing = plugin(
        "p",
        domain_gradient_for_sub_job=lambda sub, within, purpose: [[racks["r1"], racks["r2"]]],
        domain_score=lambda sub, domains: {"r1": 1.0, "r2": 2.0},
    )

    outcome = given.schedule(plugins="gang, p", knowing=[choosing])

    assert outcome.binds == {"a-0": "n2", "a-1": "n2"}


def test_domain_score_ties_are_left_to_chance_but_keep_the_gang_together() -> None:
    given = cluster(
        nodes={"n1": "cpu=4", "n2": "cpu=4"},
        jobs={"a": gang(2, topology={"mode": "hard", "highestTierAllowed": 1})},
        extra=RACKS,
    )
    racks = given.session().domains.by_name
    choosing = plugin("p", domain_gradient_for_sub_job=lambda sub, within, purpose: [[racks["r1"], racks["r2"]]])

    outcome = given.schedule(plugins="gang, p", knowing=[choosing])

    assert len(outcome.binds) == 2
    assert len(set(outcome.binds.values())) == 1


# -- victims -----------------------------------------------------------------------------------------------------------
def crowded() -> Cluster:
    return cluster(
        nodes={"n1": "cpu=2"},
        jobs={"low": running(["n1", "n1"], priority=1), "high": gang(1, priority=9, phase="Inqueue")},
        queues={"q": share()},
    )


def test_preemptable_victims_are_those_all_plugins_of_a_tier_accept() -> None:
    first = plugin("p", preemptable=lambda task, candidates: candidates)
    second = plugin("q", preemptable=lambda task, candidates: candidates[1:])
    session = asking(crowded(), first, second)
    candidates = [task_of(session, name) for name in ("low-0", "low-1")]

    assert [t.name for t in session.ask.preemptable(task_of(session, "high-0"), candidates)] == ["low-1"]


def test_reclaimable_abstention_leaves_it_to_the_others() -> None:
    session = asking(
        crowded(),
        plugin("p", reclaimable=lambda task, candidates: None),
        plugin("q", reclaimable=lambda task, candidates: candidates[:1]),
    )
    candidates = [task_of(session, name) for name in ("low-0", "low-1")]

    assert [t.name for t in session.ask.reclaimable(task_of(session, "high-0"), candidates)] == ["low-0"]


def test_evictable_has_no_switch() -> None:
    session = asking(crowded(), plugin("p", evictable=lambda kind, job, candidates: candidates))

    assert session.ask.evictable("GangPreempt", session.jobs["default/high"], ["x"]) == ["x"]


def test_victim_tasks_are_evicted_by_shuffle() -> None:
    unlucky = plugin("p", victim_tasks=lambda tasks: [task for task in tasks if task.name == "low-1"])

    outcome = crowded().schedule("shuffle", "p", knowing=[unlucky])

    assert outcome.evicts == ["low-1"]


# -- what if, and what happened ---------------------------------------------------------------------------------------
def dry_run(**answers: Any) -> list[str]:
    given = crowded()
    configured = {"preempt": {"enableTopologyAwarePreemption": True}}
    return given.schedule(
        "preempt", "priority, gang, p", knowing=[plugin("p", **answers)], configurations=configured
    ).evicts


def test_simulate_filter_can_stop_an_eviction() -> None:
    assert len(dry_run()) == 1
    assert dry_run(simulate_filter=lambda task, node: Refusal("No", "would not fit")) == []


def test_simulate_allocatable_can_stop_an_eviction() -> None:
    assert dry_run(simulate_allocatable=lambda queue, task: False) == []


def test_on_allocate_objection_undoes_the_placement() -> None:
    stubborn = plugin("p", on_allocate=lambda task: "no" if task.name == "a-0" else None)

    outcome = two_jobs().schedule(plugins="p", knowing=[stubborn])

    assert "a-0" not in outcome.binds
    assert len(outcome.binds) == 3


def test_on_deallocate_is_told_of_everything_undone() -> None:
    told: list[tuple[str, str]] = []
    witness = plugin(
        "p",
        on_allocate=lambda task: told.append(("+", task.name)),
        on_deallocate=lambda task: told.append(("-", task.name)),
    )
    given = cluster(nodes={"n1": "cpu=2"}, jobs={"a": gang(3)})

    given.schedule(plugins="gang, p", knowing=[witness])

    assert sorted(told) == sorted([("+", "a-0"), ("+", "a-1"), ("-", "a-0"), ("-", "a-1")])


# -- the rules themselves ------------------------------------------------------------------------------------------------
def combined(rule: Rule, tiers: list[list[Any]]) -> Any:
    """What a rule makes of these answers."""
    return rule([[lambda answer=answer: answer for answer in tier] for tier in tiers])()


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [([], True), ([[0], [0]], True), ([[1, -1]], False), ([[1], [-1]], True), ([[0], [-1]], False), ([[0], [1]], True)],
)
def test_a_vote_is_settled_tier_by_tier(tiers: list[list[int]], expected: bool) -> None:
    assert combined(vote, tiers) is expected


class Victim:
    def __init__(self, uid: str) -> None:
        self.uid = uid


A, B, C = Victim("a"), Victim("b"), Victim("c")


@pytest.mark.parametrize(
    ("tiers", "expected"),
    [
        ([], []),
        ([[None, None]], []),
        ([[[A, B], [B, C]]], [B]),
        ([[[A], []], [[C]]], [C]),  # an empty answer ends its tier, not the search
        ([[[A], [B], [C]]], [C]),  # an empty intersection starts over
        ([[[A]], [[B]]], [A]),
    ],
)
def test_agreed_victims_keep_volcanos_quirks(tiers: list[Any], expected: list[Victim]) -> None:
    assert combined(agreed_victims, tiers) == expected


def test_a_union_names_each_victim_once() -> None:
    assert combined(union_of_tier, [[[], []], [[A], [A, B]]]) == [A, B]


def test_without_plugins_no_job_is_starving() -> None:
    assert not combined(first_tier_agrees, [[], []])
    assert combined(first_tier_agrees, [[], [True, True], [False]])


@pytest.mark.parametrize(
    ("rule", "tiers", "expected"),
    [
        (first_difference, [], 0),
        (first_difference, [[0], [0, -2], [1]], -2),
        (first_answer, [], None),
        (first_answer, [[None], ["a", "b"]], "a"),
        (every, [], True),
        (every, [[True], [False]], False),
        (every, [[True, True]], True),
        (some, [], False),
        (some, [[False], [True]], True),
        (first_objection, [], None),
        (first_objection, [[None, "no"], ["never"]], "no"),
        (notify_all, [[1], [2]], None),
    ],
)
def test_rules_of_several_answers(rule: Rule, tiers: list[list[Any]], expected: object) -> None:
    assert combined(rule, tiers) == expected


@pytest.mark.parametrize("rule", [first_difference, first_answer, every, some])
def test_a_decided_question_is_not_asked_further(rule: Rule) -> None:
    deciding = {first_difference: 1, first_answer: "a", every: False, some: True}[rule]
    asked: list[str] = []

    def answering(name: str) -> Any:
        def answer() -> Any:
            asked.append(name)
            return deciding

        return answer

    rule([[answering("first")], [answering("second")]])()

    assert asked == ["first"]


@pytest.mark.parametrize("rule", [first_objection, notify_all])
def test_all_are_notified_whatever_the_first_one_answers(rule: Rule) -> None:
    notified: list[str] = []

    def told(name: str) -> Any:
        def tell() -> str:
            notified.append(name)
            return "no"

        return tell

    rule([[told("first"), told("second")], [told("third")]])()

    assert notified == ["first", "second", "third"]
