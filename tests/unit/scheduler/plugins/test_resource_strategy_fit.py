"""resource-strategy-fit: spread or packed by resource, scarce ones avoided, room reserved beside them."""

from __future__ import annotations

import pytest

T4, A10, GPU = "example.com/t4", "example.com/a10", "nvidia.com/gpu"
PLUGIN = "resource-strategy-fit"


def strategies(cpu: tuple[str, int], memory: tuple[str, int], weight: int = 10) -> dict[str, object]:
    resources = {name: {"type": kind, "weight": w} for name, (kind, w) in {"cpu": cpu, "memory": memory}.items()}
    return {"resourceStrategyFitWeight": weight, "resources": resources}


LEAST, MOST = "LeastAllocated", "MostAllocated"


@pytest.fixture
def scored(asked, a_node, a_pod):
    """The score of one node with 200 of 500 used, for a task asking for 100 of both."""

    def score(arguments, *, cpu="500m", memory="500", annotations=None, asks=("100m", "100")):
        given = asked(
            PLUGIN,
            arguments=arguments,
            nodes=[a_node("n1", cpu=cpu, memory=memory)],
            pods=[
                a_pod("old", on="n1", cpu="200m", memory="200"),
                a_pod("new", cpu=asks[0], memory=asks[1], annotations=annotations or {}),
            ],
        )
        return given.scores("new")["n1"]

    return score


@pytest.mark.parametrize(
    ("arguments", "score"),
    [
        ({}, 400.0),
        (strategies((LEAST, 1), (LEAST, 1)), 400.0),
        (strategies((MOST, 1), (MOST, 1)), 600.0),
        (strategies((LEAST, 2), (MOST, 1)), 466.67),
        (strategies((LEAST, 1), (MOST, 2)), 533.33),
        (strategies((LEAST, 3), (MOST, 1)), 450.0),
        (strategies((LEAST, 1), (LEAST, 1), weight=20), 800.0),
        (strategies((LEAST, 1), (LEAST, 1), weight=-1), 400.0),
        (strategies((LEAST, 1), (LEAST, 1), weight=0), 0.0),
        (strategies(("odd", 0), (LEAST, -4)), 400.0),
    ],
)
def test_each_resource_scores_by_its_strategy_and_weight(scored, arguments, score):
    assert scored(arguments) == pytest.approx(score, abs=0.01)


def test_a_resource_that_the_node_has_not_counts_as_nothing_and_a_full_node_scores_nothing(scored):
    assert scored(strategies((LEAST, 1), (MOST, 2)), cpu="0", memory="400") == pytest.approx(500.0)
    assert scored(strategies((LEAST, 1), (MOST, 2)), cpu="0", memory="400", asks=("", "100")) == 750.0
    assert scored({}, cpu="250m") == 0.0


def test_spelling_of_keys_does_not_matter(scored):
    arguments = {"ResourceStrategyFitWeight": 20, "Resources": {"cpu": {"Type": MOST, "Weight": 1}}}

    assert scored(arguments) == pytest.approx(1200.0)


def test_names_may_end_in_an_asterisk_and_the_longest_match_counts(asked, a_node, a_pod):
    resources = {
        "example.com/*": {"type": MOST, "weight": 1},
        "example.com/a*": {"type": LEAST, "weight": 1},
        "*": {"type": MOST, "weight": 9},
        "exa*ple.com/a10": {"type": MOST, "weight": 9},
    }
    given = asked(
        PLUGIN,
        arguments={"resources": resources},
        nodes=[a_node("n1", extra={T4: "4", A10: "4"})],
        pods=[a_pod("t", extra={T4: "1"}), a_pod("a", extra={A10: "1"})],
    )

    assert (given.scores("t")["n1"], given.scores("a")["n1"]) == (250.0, 750.0)


def test_a_pod_may_state_its_own_strategy(scored):
    def stated(kind, weights):
        return {"volcano.sh/resource-strategy-scoring-type": kind, "volcano.sh/resource-strategy-weight": weights}

    assert scored({}, annotations=stated(MOST, '{"cpu": 1}')) == pytest.approx(600.0)
    assert scored({}, annotations=stated("odd", '{"cpu": 1}')) == 0.0
    assert scored({}, annotations=stated(MOST, "{")) == 0.0
    assert scored({}, annotations={"volcano.sh/resource-strategy-scoring-type": MOST}) == 0.0


def test_pods_of_one_shape_may_differ_in_strategy(asked, a_node, a_pod):
    own = {
        "volcano.sh/resource-strategy-scoring-type": MOST,
        "volcano.sh/resource-strategy-weight": '{"cpu": 1, "memory": 1}',
    }
    given = asked(PLUGIN, nodes=[a_node("n1")], pods=[a_pod("plain"), a_pod("own", annotations=own)])

    assert (given.scores("plain")["n1"], given.scores("own")["n1"]) == (900.0, 100.0)


# -- scarce resources --------------------------------------------------------------------------------------------------
SCARCE = {
    "resourceStrategyFitWeight": 0,
    "sra": {"enable": True, "resources": f"{T4}, {A10}", "weight": 5, "resourceWeight": {T4: 2, A10: 3}},
}


def test_nodes_with_scarce_resources_are_left_to_those_who_ask_for_them(asked, a_node, a_pod):
    given = asked(
        PLUGIN,
        arguments=SCARCE,
        nodes=[
            a_node("plain"),
            a_node("t4", extra={T4: "1"}),
            a_node("a10", extra={A10: "1"}),
            a_node("both", extra={T4: "1", A10: "1"}),
        ],
        pods=[a_pod("cpu"), a_pod("t", extra={T4: "1"})],
    )

    assert {name: round(score) for name, score in given.scores("cpu").items()} == {
        "plain": 500,
        "t4": 300,
        "a10": 200,
        "both": 0,
    }
    assert {name: round(score) for name, score in given.scores("t").items()} == {
        "plain": 0,
        "t4": 300,
        "a10": 0,
        "both": 0,
    }


def test_avoidance_without_a_weight_is_off(asked, a_node, a_pod):
    sra = {"enable": True, "resources": T4}
    given = asked(
        PLUGIN,
        arguments={"resourceStrategyFitWeight": 0, "sra": sra},
        nodes=[a_node("n1", extra={T4: "1"})],
        pods=[a_pod("p")],
    )

    assert given.scores("p") == {"n1": 0.0}


# -- reservation -------------------------------------------------------------------------------------------------------
RESERVED = {
    "proportional": {"enable": True, "resources": GPU, "resourceProportion": {f"{GPU}.cpu": 4, f"{GPU}.memory": 4}}
}


@pytest.mark.parametrize(
    ("asks", "free", "gpus", "fits"),
    [("4", "30", "6", True), ("10", "30", "6", False), ("10", "26", "2", True)],
)
def test_cpu_and_memory_are_kept_beside_free_accelerators(asked, a_node, a_pod, asks, free, gpus, fits):
    given = asked(
        PLUGIN,
        arguments=RESERVED,
        nodes=[a_node("n1", cpu=free, memory=f"{free}G", extra={GPU: gpus})],
        pods=[a_pod("p", cpu=asks, memory=f"{asks}G")],
    )

    assert given.fits("p") == (["n1"] if fits else [])
    assert given.reasons("p") == ({} if fits else {f"proportional of resource {GPU} check failed": 1})


def test_who_asks_for_the_accelerator_and_nodes_without_one_are_not_concerned(asked, a_node, a_pod):
    given = asked(
        PLUGIN,
        arguments=RESERVED,
        nodes=[a_node("n1", cpu="4", memory="4G", extra={GPU: "8"}), a_node("n2", cpu="4", memory="4G")],
        pods=[a_pod("gpu", cpu="4", memory="4G", extra={GPU: "1"}), a_pod("plain", cpu="4", memory="4G")],
    )

    assert given.fits("gpu") == ["n1", "n2"]  # whether n2 has one is for others to say
    assert given.fits("plain") == ["n2"]


def test_reservation_follows_what_this_session_places(asked, a_node, a_pod):
    given = asked(
        PLUGIN,
        arguments=RESERVED,
        nodes=[a_node("n1", cpu="10", memory="10G", extra={GPU: "1"})],
        pods=[a_pod("p", cpu="4", memory="1G"), a_pod("q", cpu="4", memory="1G")],
    )
    given.fits("q")

    given.place("p", "n1")

    assert given.fits("q") == []
