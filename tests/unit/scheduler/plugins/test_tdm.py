"""tdm: nodes that are ours only at certain hours."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance
from volcano.scheduler.plugins.tdm import Hours, parse_hours
from volcano.testing.clusters import Cluster, cluster, configuration, gang, machine, running

NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
ZONED = {"volcano.sh/revocable-zone": "*"}
NOT_PREEMPTABLE = {"volcano.sh/preemptable": "false"}
PLUGINS = "gang; tdm, predicates"


def arguments(hours: str, **more: Any) -> dict[str, Any]:
    return {"tdm": {"tdm.revocable-zone.rz1": hours, **more}}


def given(**jobs: Any) -> Cluster:
    """One node of ours, and one in a zone."""
    nodes = {"ours": machine("cpu=4"), "theirs": machine("cpu=4", labels={"volcano.sh/revocable-zone": "rz1"})}
    return cluster(nodes=nodes, jobs=jobs, now=NOON)


# -- hours -------------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "lasts"),
    [
        ("00:00-01:00", timedelta(hours=1)),
        ("0:00-23:59", timedelta(hours=23, minutes=59)),
        ("1:00-0:00", timedelta(hours=23)),
        ("   1:00-0:00    ", timedelta(hours=23)),
        ("23:59-23:59", timedelta(hours=24)),
    ],
)
def test_hours_last_from_the_first_time_to_the_second(text: str, lasts: timedelta) -> None:
    found = parse_hours(text)

    assert found is not None
    assert found.lasts == lasts


@pytest.mark.parametrize("text", ["00:00_01:00", "0:00", "1:0-0:0", "63:59-23:59", "", "1:00-2:00-3:00", "1:00-2:60"])
def test_what_is_no_window_is_none(text: str) -> None:
    assert parse_hours(text) is None


def test_a_window_over_midnight_holds_before_and_after_it() -> None:
    night = parse_hours("23:00-5:00")
    assert isinstance(night, Hours)

    moments = {hour: night.holds(NOON.replace(hour=hour)) for hour in (22, 23, 0, 5, 6)}

    assert moments == {22: False, 23: True, 0: True, 5: True, 6: False}


# -- nodes -------------------------------------------------------------------------------------------------------------
def test_who_may_be_interrupted_goes_to_the_zone_and_nobody_else_does() -> None:
    cycle_of = given(a=gang(2, pod_annotations=ZONED), b=gang(2))

    outcome = cycle_of.schedule(plugins=PLUGINS, arguments=arguments("0:00-0:00"))

    assert outcome.binds == {"a-0": "theirs", "a-1": "theirs", "b-0": "ours", "b-1": "ours"}


@pytest.mark.parametrize(
    ("hours", "job", "reason"),
    [
        ("0:00-0:00", {}, "not allow to dispatch to revocable node"),
        ("1:00-2:00", {"pod_annotations": ZONED}, "current time beyond revocable zone rz1:1:00-2:00"),
        ("one to two", {"pod_annotations": ZONED}, "revocable zone rz1 is malformed: one to two"),
    ],
)
def test_a_zone_refuses_and_says_why(hours: str, job: dict[str, Any], reason: str) -> None:
    outcome = given(a=gang(8, **job)).schedule(plugins=PLUGINS, arguments=arguments(hours))

    assert outcome.binds == {}
    assert f"1 node: {reason}" in outcome.why["a"]


def test_an_unknown_zone_is_refused() -> None:
    outcome = given(a=gang(8, pod_annotations=ZONED)).schedule(plugins=PLUGINS)

    assert "revocable zone rz1 not support" in outcome.why["a"]


# -- leaving in time ---------------------------------------------------------------------------------------------------
def evicted(hours: str, now: datetime = NOON, **jobs: Any) -> list[str]:
    over = replace(given(**jobs), now=now)
    return over.schedule("shuffle", PLUGINS, arguments=arguments(hours)).evicts


def five(**budget: str) -> Any:
    annotations = {f"volcano.sh/jdb-{key.replace('_', '-')}": value for key, value in budget.items()}
    return running(["theirs"] * 5, each="cpu=100m", annotations=annotations)


@pytest.mark.parametrize(
    ("budget", "count"),
    [
        ({}, 1),
        ({"max_unavailable": "30%"}, 2),
        ({"max_unavailable": "50%"}, 3),
        ({"max_unavailable": "3"}, 3),
        ({"max_unavailable": "odd"}, 0),
        ({"min_available": "3"}, 2),
        ({"min_available": "30%"}, 3),
        ({"min_available": "9"}, 1),
        ({"min_available": "3", "max_unavailable": "5"}, 2),
    ],
)
def test_when_the_hours_are_over_as_many_leave_as_the_budget_allows(budget: dict[str, str], count: int) -> None:
    assert len(evicted("1:00-2:00", a=five(**budget))) == count


def test_while_the_hours_hold_nobody_leaves_and_those_who_must_not_never_do() -> None:
    assert evicted("0:00-0:00", a=five()) == []
    assert evicted("1:00-2:00", a=running(["theirs"], pod_annotations=NOT_PREEMPTABLE)) == []
    assert evicted("1:00-2:00", a=running(["ours"])) == []


def test_evictions_come_once_in_a_period_however_many_cycles_there_are() -> None:
    snapshot = given(a=five(max_unavailable="1")).snapshot()
    config = configuration("shuffle", PLUGINS, arguments=arguments("1:00-2:00", **{"tdm.evict.period": "10m"}))

    counts = []
    for minutes in (0, 5, 10):
        snapshot.now = NOON + timedelta(minutes=minutes)
        counts.append(len(cycle(snapshot, config, SeededChance(0)).evictions))

    assert counts == [1, 0, 1]


def test_with_zones_another_cycle_is_asked_for_because_time_alone_changes_things() -> None:
    zoned = given(a=gang(1)).schedule(plugins=PLUGINS, arguments=arguments("1:00-2:00"))
    plain = cluster(nodes={"n": "cpu=1"}, jobs={"a": gang(1)}).schedule(plugins=PLUGINS)

    assert (zoned.decisions.needs_another_cycle, plain.decisions.needs_another_cycle) == (True, False)


# -- who goes first, and who makes room ----------------------------------------------------------------------------------
def test_a_job_that_must_not_be_interrupted_preempts_those_that_may_but_only_outside_zones() -> None:
    jobs = {
        "low": running(["ours"] * 4 + ["theirs"] * 4, annotations={"volcano.sh/jdb-max-unavailable": "8"}),
        "high": gang(1, pod_annotations=NOT_PREEMPTABLE, phase="Inqueue"),
    }

    outcome = given(**jobs).schedule("preempt", "tdm, predicates", arguments=arguments("0:00-0:00"))

    assert len(outcome.evicts) == 1
    assert outcome.pipelined == {"high-0": "ours"}


def test_who_may_be_interrupted_interrupts_nobody() -> None:
    jobs = {"low": running(["ours"] * 4), "high": gang(1, phase="Inqueue", pod_annotations=ZONED)}

    assert given(**jobs).schedule("preempt", "tdm, predicates", arguments=arguments("1:00-2:00")).evicts == []


def test_jobs_that_must_not_be_interrupted_go_first() -> None:
    preemptable = {"volcano.sh/preemptable": "true"}
    session = given(a=gang(1, annotations=preemptable), b=gang(1)).session(PLUGINS)

    assert session.ask.job_before(session.jobs["default/b"], session.jobs["default/a"])
