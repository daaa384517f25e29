"""binpack: fuller is better, by the weights of the resources."""

from __future__ import annotations

import pytest

ARGUMENTS = {
    "binpack.weight": 10,
    "binpack.cpu": 2,
    "binpack.memory": 3,
    "binpack.resources": "nvidia.com/gpu, example.com/foo",
    "binpack.resources.nvidia.com/gpu": 7,
    "binpack.resources.example.com/foo": -3,
}


def test_the_fuller_node_scores_higher(asked, a_node, a_pod):
    given = asked(
        "binpack",
        nodes=[a_node("n1", cpu="4", memory="4Gi"), a_node("n2", cpu="8", memory="8Gi")],
        pods=[a_pod("p", cpu="2", memory="1Gi")],
    )

    assert given.scores("p") == {"n1": pytest.approx(37.5), "n2": pytest.approx(18.75)}


def test_weights_count_even_where_the_resource_does_not_exist(asked, a_node, a_pod):
    given = asked(
        "binpack",
        arguments=ARGUMENTS,
        nodes=[
            a_node("n1", cpu="4", memory="16Gi", extra={"nvidia.com/gpu": "4"}),
            a_node("n2", cpu="4", memory="16Gi"),
        ],
        pods=[a_pod("p", cpu="2", memory="10Gi", extra={"nvidia.com/gpu": "2"})],
    )
    with_gpu = (0.5 * 2 + 0.625 * 3 + 0.5 * 7) / 12

    assert given.scores("p") == {
        "n1": pytest.approx(with_gpu * 1000),
        "n2": pytest.approx((0.5 * 2 + 0.625 * 3) / 12 * 1000),
    }


def test_a_negative_resource_weight_counts_as_one(asked, a_node, a_pod):
    foo = {"example.com/foo": "3"}
    given = asked(
        "binpack",
        arguments=ARGUMENTS,
        nodes=[a_node("n1", cpu="4", memory="4Gi", extra=foo)],
        pods=[a_pod("p", cpu="2", memory="2Gi", extra=foo)],
    )

    assert given.scores("p") == {"n1": pytest.approx((0.5 * 2 + 0.5 * 3 + 1.0) / 6 * 1000)}


def test_a_node_without_room_scores_nothing(asked, a_node, a_pod):
    given = asked("binpack", nodes=[a_node("n1", cpu="2")], pods=[a_pod("r", on="n1", cpu="1.5"), a_pod("p")])

    assert given.scores("p") == {"n1": 0.0}


def test_what_this_session_places_fills_the_node(asked, a_node, a_pod):
    given = asked("binpack", nodes=[a_node("n1"), a_node("n2")], pods=[a_pod("p"), a_pod("q")])
    given.scores("q")

    given.place("p", "n2")

    assert given.scores("q") == {"n1": pytest.approx(10.0), "n2": pytest.approx(20.0)}


def test_weight_zero_says_nothing(asked, a_node, a_pod):
    given = asked("binpack", arguments={"binpack.weight": 0}, nodes=[a_node("n1")], pods=[a_pod("p")])

    assert given.scores("p") == {"n1": 0.0}


def test_with_accelerators_the_node_is_taken_where_fewest_stay_free(asked, a_node, a_pod):
    """By their share the first node would be fuller; on the second one nothing stays free."""
    gpu = "nvidia.com/gpu"
    nodes = [a_node("large", extra={gpu: "8"}), a_node("small", extra={gpu: "1"}), a_node("none")]
    pods = [a_pod("there", on="large", extra={gpu: "6"}), a_pod("one", extra={gpu: "1"}), a_pod("plain")]
    given = asked("binpack", arguments={"binpack.accelerators": 8}, nodes=nodes, pods=pods)

    scores = given.scores("one")
    assert scores["small"] > scores["large"]
    plain = given.scores("plain")
    assert plain["none"] > plain["small"] > plain["large"]
    without = asked("binpack", nodes=nodes[:2], pods=pods).scores("one")
    assert without["large"] > without["small"]  # only cpu and memory count, as in Volcano


def test_without_any_accelerator_the_argument_changes_nothing(asked, a_node, a_pod):
    nodes, pods = [a_node("n1"), a_node("n2", cpu="4")], [a_pod("p")]
    plain = asked("binpack", nodes=nodes, pods=pods).scores("p")

    assert asked("binpack", arguments={"binpack.accelerators": 8}, nodes=nodes, pods=pods).scores("p") == plain


def test_by_default_accelerators_decide_between_nodes_that_are_equal_otherwise(asked, a_node, a_pod):
    gpu = "nvidia.com/gpu"
    nodes = [a_node("whole", extra={gpu: "8"}), a_node("begun", extra={gpu: "8"}), a_node("plain")]
    pods = [
        *(a_pod(f"on-{name}", on=name, extra={gpu: "4"} if name == "begun" else {}) for name in ("whole", "begun", "plain")),
        a_pod("asks", extra={gpu: "1"}),
        a_pod("other"),
    ]  # fmt: skip

    given = asked("binpack", nodes=nodes, pods=pods)
    without = asked("binpack", arguments={"binpack.accelerators": 0}, nodes=nodes, pods=pods)

    scores, plain = given.scores("asks"), without.scores("asks")
    assert scores["begun"] > scores["whole"]
    assert plain["begun"] == plain["whole"]
    assert all(abs(scores[name] - plain[name]) < 1e-6 for name in scores)
    other = given.scores("other")
    assert other["plain"] > other["begun"] > other["whole"]
