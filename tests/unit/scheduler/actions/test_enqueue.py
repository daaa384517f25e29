"""enqueue: who is let in."""

from __future__ import annotations

from volcano.testing.clusters import cluster, gang, share


def test_a_job_within_the_cluster_is_let_in_and_one_beyond_it_waits_without_blocking_others() -> None:
    given = cluster(
        nodes={"n1": "cpu=4"},
        jobs={
            "a": gang(2, min_resources="cpu=2", created="2026-01-01T00:00:00Z"),
            "b": gang(8, min_resources="cpu=8", created="2026-01-01T00:00:01Z"),
            "c": gang(1, min_resources="cpu=1", created="2026-01-01T00:00:02Z"),
        },
    )

    outcome = given.schedule("enqueue", "gang; overcommit")

    assert outcome.phases == {"a": "Inqueue", "b": "Pending", "c": "Inqueue"}
    assert outcome.why["b"] == "resource in cluster is overused: overused cpu"


def test_a_job_without_minimum_resources_is_never_refused() -> None:
    given = cluster(nodes={"n1": "cpu=1"}, jobs={"a": gang(9)}, queues={"default": share(state="Closed")})

    outcome = given.schedule("enqueue", "proportion")

    assert outcome.phases == {"a": "Inqueue"}


def test_a_closed_queue_lets_nobody_with_minimum_resources_in() -> None:
    given = cluster(
        nodes={"n1": "cpu=4"}, jobs={"a": gang(1, min_resources="cpu=1")}, queues={"default": share(state="Closed")}
    )

    outcome = given.schedule("enqueue", "proportion")

    assert outcome.phases == {"a": "Pending"}
    assert outcome.why["a"] == "queue default is Closed"
    assert outcome.decisions.why["default/a"].stage == "queue"


def test_what_one_job_was_let_in_for_counts_against_the_next() -> None:
    given = cluster(
        nodes={"n1": "cpu=4"},
        jobs={name: gang(2, min_resources="cpu=2") for name in ("a", "b", "c")},
    )

    outcome = given.schedule("enqueue", "overcommit", arguments={"overcommit": {"overcommit-factor": 1.0}})

    assert sorted(outcome.phases.values()) == ["Inqueue", "Inqueue", "Pending"]


def test_a_namespace_quota_holds_a_job_back() -> None:
    quota = {
        "metadata": {"name": "q", "namespace": "default"},
        "status": {"hard": {"cpu": "2"}, "used": {"cpu": "1"}},
    }
    given = cluster(
        nodes={"n1": "cpu=9"},
        jobs={"a": gang(1, min_resources="cpu=1"), "b": gang(1, min_resources="cpu=1")},
        objects={"resourceQuotas": [quota]},
    )

    outcome = given.schedule("enqueue", "resourcequota")

    assert sorted(outcome.phases.values()) == ["Inqueue", "Pending"]
    assert "resource quota insufficient, requested: cpu=1, used: cpu=1, limited: cpu=2" in outcome.why["b"]
