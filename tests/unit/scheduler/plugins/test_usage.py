"""usage: measured load, and an estimate for what the measurement has not seen."""

from __future__ import annotations

import pytest

FRESH = "2026-01-01T11:58:00+00:00"
STALE = "2026-01-01T11:50:00+00:00"


def load(cpu, memory, at=FRESH):
    return {"cpu": cpu, "memory": memory, "measured": at}


@pytest.mark.parametrize(
    ("weights", "scores"),
    [((1, 1), [300.0, 225.0, 150.0]), ((2, 8), [270.0, 240.0, 120.0])],
)
def test_the_cooler_the_better_by_weight(asked, a_node, a_pod, weights, scores):
    given = asked(
        "usage",
        arguments={"cpu.weight": weights[0], "memory.weight": weights[1]},
        nodes=[a_node("n1"), a_node("n2"), a_node("n3")],
        usage={"n1": load(30, 50), "n2": load(60, 50), "n3": load(60, 80)},
        pods=[a_pod("p")],
    )

    assert list(given.scores("p").values()) == [pytest.approx(score) for score in scores]


def test_old_or_missing_measurements_say_nothing(asked, a_node, a_pod):
    given = asked(
        "usage",
        nodes=[a_node("n1"), a_node("n2")],
        usage={"n1": load(99, 99, STALE)},
        pods=[a_pod("p")],
    )

    assert given.fits("p") == ["n1", "n2"]
    assert given.scores("p") == {"n1": 0.0, "n2": 0.0}


def test_hot_nodes_are_refused_beyond_the_threshold(asked, a_node, a_pod):
    given = asked(
        "usage",
        nodes=[a_node("n1"), a_node("n2"), a_node("n3"), a_node("n4")],
        usage={"n1": load(80, 79), "n2": load(81, 99), "n3": load(10, 81), "n4": load(0, 0)},
        pods=[a_pod("p")],
    )

    assert given.fits("p") == ["n1", "n4"]
    assert given.reasons("p") == {
        "the CPU load of the node exceeds the upper limit.": 1,
        "the memory load of the node exceeds the upper limit.": 1,
    }


def test_a_placement_of_this_session_warms_its_node_and_leaves_it_as_it_was(asked, a_node, a_pod):
    given = asked(
        "usage",
        arguments={"estimator": {"request_ratio": 1.0}},
        nodes=[a_node("n1")],
        usage={"n1": load(0, 0)},
        pods=[a_pod("p", cpu="5", memory=""), a_pod("q")],
    )
    before = given.scores("q")

    given.place("p", "n1")
    warm = given.scores("q")
    given.lift("p")

    assert before == {"n1": pytest.approx(500.0)}
    assert warm == {"n1": pytest.approx(375.0)}
    assert given.scores("q") == before


@pytest.mark.parametrize(
    ("arguments", "limits", "cpu"),
    [
        ({"request_ratio": 1.0}, {"cpu": "2"}, 500),
        ({"request_ratio": 0.0}, {"cpu": "2"}, 0),
        ({"request_ratio": 1.0, "burst_ratio": 1.0}, {"cpu": "2"}, 2000),
        ({"request_ratio": 0.5, "burst_ratio": 0.2}, {"cpu": "2"}, 550),
        ({"request_ratio": 1.0, "risk_threshold": 0.0}, {"cpu": "600m"}, 600),
    ],
)
def test_the_estimate_follows_request_limit_and_risk(asked, a_node, a_pod, arguments, limits, cpu):
    given = asked(
        "usage",
        arguments={"estimator": arguments, "memory.weight": 0, "usage.weight": 1},
        nodes=[a_node("n1", cpu="10")],
        usage={"n1": load(0, 0)},
        pods=[a_pod("p", cpu="500m", limits=limits), a_pod("q")],
    )

    given.place("p", "n1")

    assert given.scores("q") == {"n1": pytest.approx(100.0 * (1 - cpu / 10000))}


def test_best_effort_pods_are_expected_to_use_something(asked, a_node, a_pod):
    given = asked(
        "usage",
        arguments={"estimator": {"be_cpu": "1"}, "memory.weight": 0, "usage.weight": 1},
        nodes=[a_node("n1", cpu="10")],
        usage={"n1": load(0, 0)},
        pods=[a_pod("p", cpu="", memory=""), a_pod("q")],
    )

    given.place("p", "n1")

    assert given.scores("q") == {"n1": pytest.approx(90.0)}
