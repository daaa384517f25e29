"""reservations: what is kept for a holder in a window, and who is refused it before and in the window."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import pytest

from volcano.testing.clusters import Cluster, CycleOutcome, GangShape, cluster, gang, running, share

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
PLUGINS = "gang, predicates, nodeorder"


def reservation(name: str = "kept", start: str = "2026-01-01T14:00:00Z", duration: str = "2h", **spec: Any) -> Any:
    return {"metadata": {"name": name}, "spec": {"start": start, "duration": duration, **spec}}


def runs(hours: str, **more: Any) -> dict[str, Any]:
    return {"annotations": {"volcano.sh/running-estimate": hours}, "phase": "Inqueue", **more}


def a_cluster(jobs: Mapping[str, GangShape], *reservations: Any, **more: Any) -> Cluster:
    return cluster(
        nodes={"n1": "cpu=4, memory=8Gi", "n2": "cpu=4, memory=8Gi"},
        queues={"demo": share(), "below": share(parent="demo")},
        jobs=jobs,
        objects={"reservations": list(reservations)},
        now=NOW,
        **more,
    )


def scheduled(jobs: Mapping[str, GangShape], *reservations: Any, **more: Any) -> CycleOutcome:
    return a_cluster(jobs, *reservations).schedule(more.pop("actions", "enqueue, allocate"), PLUGINS, **more)


BOTH = {"queue": "demo", "nodes": ["n1", "n2"]}


# -- nodes ------------------------------------------------------------------------------------------------------------
def test_a_job_that_would_run_into_a_window_is_not_started_on_its_nodes_and_says_why() -> None:
    outcome = scheduled({"long": gang(1, "cpu=1", **runs("3h"))}, reservation(queue="demo", nodes=["n1", "n2"]))

    assert outcome.binds == {}
    [notice] = outcome.decisions.pods
    assert notice.message == (
        "0/2 nodes are unavailable: 2 kept for queue demo by reservation kept from 2026-01-01T14:00:00Z to "
        "2026-01-01T16:00:00Z."
    )


@pytest.mark.parametrize("hours", ["1h", "2h"])
def test_a_job_that_ends_before_the_window_is_started(hours: str) -> None:
    outcome = scheduled({"short": gang(2, "cpu=4", **runs(hours))}, reservation(**BOTH))

    assert sorted(outcome.binds.values()) == ["n1", "n2"]


def test_other_nodes_are_there_for_all() -> None:
    outcome = scheduled({"long": gang(1, "cpu=1", **runs("3h"))}, reservation(queue="demo", nodes=["n1"]))

    assert outcome.binds == {"long-0": "n2"}


@pytest.mark.parametrize("queue", ["demo", "below"])
def test_the_holder_may_use_it_before_and_in_the_window(queue: str) -> None:
    before = scheduled({"ours": gang(2, "cpu=4", **runs("3h", queue=queue))}, reservation(**BOTH))
    within = scheduled(
        {"ours": gang(2, "cpu=4", **runs("3h", queue=queue))}, reservation(start="2026-01-01T11:00:00Z", **BOTH)
    )

    assert len(before.binds) == len(within.binds) == 2


def test_in_the_window_even_the_shortest_job_of_others_waits() -> None:
    outcome = scheduled({"short": gang(1, "cpu=1", **runs("1s"))}, reservation(start="2026-01-01T11:00:00Z", **BOTH))

    assert outcome.binds == {}


def test_after_the_window_nothing_is_kept() -> None:
    outcome = scheduled({"long": gang(1, "cpu=1", **runs("9h"))}, reservation(start="2026-01-01T10:00:00Z", **BOTH))

    assert len(outcome.binds) == 1
    assert outcome.decisions.kept == {}


def test_no_job_may_use_nodes_in_maintenance() -> None:
    outcome = scheduled(
        {"ours": gang(1, "cpu=1", **runs("3h", queue="demo"))}, reservation(maintenance=True, nodes=["n1", "n2"])
    )

    assert outcome.binds == {}
    assert "kept for maintenance by reservation kept" in outcome.decisions.pods[0].message


def test_a_user_and_a_namespace_can_hold_it() -> None:
    by_user = runs("3h")
    by_user["annotations"] |= {"volcano.sh/submitted-by": "alice"}
    jobs = {"alices": gang(1, "cpu=4", **by_user), "bobs": gang(1, "cpu=4", **runs("3h"))}

    of_alice = scheduled(jobs, reservation(user="alice", nodes=["n1", "n2"]))
    of_default = scheduled(jobs, reservation(namespace="default", nodes=["n1", "n2"]))
    of_both = scheduled(jobs, reservation(user="alice", namespace="other", nodes=["n1", "n2"]))

    assert list(of_alice.binds) == ["alices-0"]
    assert len(of_default.binds) == 2
    assert of_both.binds == {}


def test_a_job_without_an_estimate_counts_with_the_default_one() -> None:
    job = {"unknown": gang(1, "cpu=1", phase="Inqueue")}

    near = scheduled(job, reservation(start="2026-01-02T11:00:00Z", **BOTH))
    far = scheduled(job, reservation(start="2026-01-02T13:00:00Z", **BOTH))

    assert near.binds == {}
    assert len(far.binds) == 1


def test_a_recurring_reservation_keeps_its_next_window() -> None:
    daily = reservation(schedule="0 14 * * *", **BOTH)
    del daily["spec"]["start"]

    short = scheduled({"short": gang(1, "cpu=1", **runs("2h"))}, daily)
    long = scheduled({"long": gang(1, "cpu=1", **runs("3h"))}, daily)

    assert (len(short.binds), len(long.binds)) == (1, 0)
    assert long.decisions.kept["kept"].start == datetime(2026, 1, 1, 14, tzinfo=UTC)


def test_pods_of_daemon_sets_start_during_maintenance() -> None:
    of = a_cluster({"agent": gang(1, "cpu=1", **runs("9h"))}, reservation(maintenance=True, nodes=["n1", "n2"]))
    for pod in of.objects["pods"]:
        pod["metadata"]["ownerReferences"] = [{"kind": "DaemonSet", "name": "agent", "apiVersion": "apps/v1"}]

    assert len(of.schedule("enqueue, allocate", PLUGINS).binds) == 1


# -- amounts ----------------------------------------------------------------------------------------------------------
def test_amounts_are_kept_on_some_node_and_the_rest_is_there_for_all() -> None:
    jobs = {f"job-{number}": gang(1, "cpu=1", **runs("3h")) for number in range(8)}

    outcome = scheduled(jobs, reservation(queue="demo", resources={"cpu": "5"}))

    assert len(outcome.binds) == 3
    kept = outcome.decisions.kept["kept"]
    assert (kept.kept["cpu"], kept.missing["cpu"]) == (5000.0, 0.0)
    assert kept.nodes == ("n1", "n2")


def test_a_gang_of_others_takes_only_what_is_left() -> None:
    fits = scheduled({"gang": gang(3, "cpu=1", **runs("3h"))}, reservation(queue="demo", resources={"cpu": "5"}))
    does_not = scheduled({"gang": gang(4, "cpu=1", **runs("3h"))}, reservation(queue="demo", resources={"cpu": "5"}))

    assert len(fits.binds) == 3
    assert does_not.binds == {}


def test_what_the_holder_uses_already_is_not_kept_twice() -> None:
    jobs = {
        "ours": running(["n1"], "cpu=4", queue="demo", annotations={"volcano.sh/running-estimate": "9h"}),
        "theirs": gang(4, "cpu=1", **runs("3h")),
    }

    outcome = scheduled(jobs, reservation(queue="demo", resources={"cpu": "4"}))

    assert len(outcome.binds) == 4


def test_amounts_on_named_nodes_leave_the_others_alone() -> None:
    jobs = {"theirs": gang(1, "cpu=3", **runs("3h"))}

    outcome = scheduled(jobs, reservation(queue="demo", nodes=["n1"], resources={"cpu": "2"}))

    assert outcome.binds == {"theirs-0": "n2"}
    assert outcome.decisions.kept["kept"].nodes == ("n1",)


def test_what_others_will_still_use_is_told_as_missing() -> None:
    jobs = {
        "theirs": running(
            ["n1", "n2"],
            "cpu=4",
            annotations={"volcano.sh/running-estimate": "9h"},
            status={"startTime": "2026-01-01T11:00:00Z"},
        )
    }

    amounts = scheduled(jobs, reservation(queue="demo", resources={"cpu": "5"}))
    nodes = scheduled(jobs, reservation(queue="demo", nodes=["n1"]))

    assert amounts.decisions.kept["kept"].missing["cpu"] == 5000.0
    assert nodes.decisions.kept["kept"].missing["cpu"] == 4000.0


def test_room_that_is_free_when_the_window_begins_is_kept_first_where_jobs_run_now() -> None:
    jobs = {
        "ends": running(
            ["n1"],
            "cpu=4",
            annotations={"volcano.sh/running-estimate": "1h"},
            status={"startTime": "2026-01-01T12:00:00Z"},
        ),
        "long": gang(1, "cpu=4", **runs("9h")),
    }

    outcome = scheduled(jobs, reservation(queue="demo", resources={"cpu": "4"}))

    assert outcome.binds == {"long-0": "n2"}
    assert outcome.decisions.kept["kept"].nodes == ("n1",)


# -- with other policies ----------------------------------------------------------------------------------------------
def test_no_job_is_evicted_from_kept_nodes_for_a_job_of_others() -> None:
    jobs = {
        "low": running(["n1", "n2"], "cpu=4", priority=1, annotations={"volcano.sh/running-estimate": "1h"}),
        "high": gang(1, "cpu=4", priority=9, **runs("3h")),
    }

    without = scheduled(jobs, actions="enqueue, allocate, preempt")
    kept = scheduled(jobs, reservation(**BOTH), actions="enqueue, allocate, preempt")

    assert without.evicts != []
    assert kept.evicts == []


def test_an_elastic_job_does_not_grow_onto_kept_nodes() -> None:
    elastic = running(["n1"], "cpu=1", size=8, annotations={"volcano.sh/running-estimate": "3h"})

    outcome = scheduled({"elastic": elastic}, reservation(queue="demo", nodes=["n2"]))

    assert set(outcome.binds.values()) == {"n1"}
    assert len(outcome.binds) == 3


def test_easy_reserves_room_for_the_first_job_when_the_window_has_ended() -> None:
    of = a_cluster({"long": gang(2, "cpu=4", **runs("3h"))}, reservation(**BOTH))

    outcome = of.schedule("enqueue, allocate", "easy, gang, predicates")

    [promise] = outcome.decisions.reservations.values()
    assert promise.start == datetime(2026, 1, 1, 16, tzinfo=UTC)


def test_easy_reserves_room_before_the_window_for_a_job_that_ends_by_then() -> None:
    jobs = {
        "runs": running(
            ["n1"],
            "cpu=4",
            annotations={"volcano.sh/running-estimate": "1h"},
            status={"startTime": "2026-01-01T12:00:00Z"},
        ),
        "waits": gang(2, "cpu=4", **runs("1h")),
    }

    outcome = a_cluster(jobs, reservation(**BOTH)).schedule("enqueue, allocate", "easy, gang, predicates")

    [promise] = outcome.decisions.reservations.values()
    assert promise.start == datetime(2026, 1, 1, 13, tzinfo=UTC)


def test_without_reservations_the_plugin_takes_no_part() -> None:
    session = a_cluster({"job": gang(1, "cpu=1")}).session(PLUGINS)

    assert session.kept_room is None
    assert session.ask.plugins("node_filter") == [
        plugin for plugin in session.ask.plugins("node_filter") if plugin.name != "reservations"
    ]


def test_reservations_that_cannot_be_read_keep_nothing() -> None:
    outcome = scheduled(
        {"job": gang(1, "cpu=1", **runs("9h"))},
        reservation("a", duration="-2h", **BOTH),
        reservation("b", schedule="whenever", **BOTH),
        reservation("c", queue="demo", resources={"cpu": "much"}),
    )

    assert len(outcome.binds) == 1


def test_the_holder_enters_its_queue_although_others_that_wait_fill_what_may_wait() -> None:
    jobs = {
        "theirs": gang(2, "cpu=4", min_resources="cpu=8", created="2026-01-01T00:00:00Z", **runs("3h")),
        "ours": gang(
            2, "cpu=4", min_resources="cpu=8", queue="demo", annotations={"volcano.sh/running-estimate": "1h"}
        ),
    }
    of = a_cluster(jobs, reservation(start="2026-01-01T11:00:00Z", **BOTH))

    outcome = of.schedule("enqueue, allocate", "overcommit, gang, predicates")

    assert {name.rpartition("-")[0] for name in outcome.binds} == {"ours"}
