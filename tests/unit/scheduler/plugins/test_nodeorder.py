"""nodeorder: each scorer alone, with the weights of the others at zero."""

from __future__ import annotations

import math

import pytest

SCORERS = (
    "leastrequested",
    "mostrequested",
    "nodeaffinity",
    "podaffinity",
    "balancedresource",
    "tainttoleration",
    "imagelocality",
    "podtopologyspread",
)
HOST = "kubernetes.io/hostname"


def only(scorer: str, weight: int = 1) -> dict[str, int]:
    return {f"{name}.weight": weight if name == scorer else 0 for name in SCORERS}


def preferred(kind: str, *terms):
    return {kind: {"preferredDuringSchedulingIgnoredDuringExecution": list(terms)}}


def near(label: str, weight: int, key: str = HOST):
    term = {"labelSelector": {"matchLabels": {"app": label}}, "topologyKey": key}
    return {"weight": weight, "podAffinityTerm": term}


# -- how full ---------------------------------------------------------------------------------------------------------
def test_least_allocated_truncates_every_division(asked, a_node, a_pod):
    given = asked(
        "nodeorder",
        arguments=only("leastrequested"),
        nodes=[a_node("n1", cpu="3", memory="7Gi"), a_node("n2", cpu="1", memory="7Gi")],
        pods=[a_pod("p", cpu="2", memory="2Gi")],
    )

    # n1: cpu 33, memory 71 → 52; n2: cpu does not fit, 0, memory 71 → 35
    assert given.scores("p") == {"n1": 52.0, "n2": 35.0}


def test_a_container_that_asks_for_nothing_is_assumed_to_use_something(asked, a_node, a_pod):
    given = asked(
        "nodeorder",
        arguments=only("leastrequested"),
        nodes=[a_node("n1", cpu="1", memory="2000Mi")],
        pods=[a_pod("p", cpu="", memory="")],
    )

    assert given.scores("p") == {"n1": 90.0}  # 100m and 200Mi


def test_most_allocated_is_the_reverse_and_clips_at_full(asked, a_node, a_pod):
    given = asked(
        "nodeorder",
        arguments=only("mostrequested"),
        nodes=[a_node("n1", cpu="4", memory="4Gi"), a_node("n2", cpu="1", memory="4Gi")],
        pods=[a_pod("p", cpu="2", memory="1Gi")],
    )

    assert given.scores("p") == {"n1": 37.0, "n2": 62.0}


def test_balance_is_seventy_five_when_nothing_changes(asked, a_node, a_pod):
    given = asked(
        "nodeorder",
        arguments=only("balancedresource"),
        nodes=[a_node("even", cpu="4", memory="4Gi"), a_node("uneven", cpu="8", memory="2Gi")],
        pods=[a_pod("p", cpu="1", memory="1Gi")],
    )

    # uneven: fractions 1/8 and 1/2, deviation 0.1875, 81; 50 + (50 + 81 - 100) / 2
    assert given.scores("p") == {"even": 75.0, "uneven": 65.0}


def test_balance_counts_gpus_only_for_those_who_ask(asked, a_node, a_pod):
    gpu = {"nvidia.com/gpu": "4"}
    given = asked(
        "nodeorder",
        arguments=only("balancedresource"),
        nodes=[a_node("n1", cpu="4", memory="4Gi", extra=gpu), a_node("n2", cpu="4", memory="4Gi")],
        pods=[a_pod("p", cpu="1", memory="1Gi"), a_pod("g", cpu="1", memory="1Gi", extra={"nvidia.com/gpu": "4"})],
    )
    fractions = [0.25, 0.25, 1.0]
    mean = sum(fractions) / 3
    deviation = math.sqrt(sum((f - mean) ** 2 for f in fractions) / 3)
    evenness = int((1 - deviation) * 100)

    assert given.scores("p") == {"n1": 75.0, "n2": 75.0}
    assert given.scores("g") == {"n1": 50.0 + int((50 + evenness - 100) / 2), "n2": 75.0}


def test_a_task_that_asks_for_nothing_has_no_balance(asked, a_node, a_pod):
    given = asked(
        "nodeorder", arguments=only("balancedresource"), nodes=[a_node("n1")], pods=[a_pod("p", cpu="", memory="")]
    )

    assert given.scores("p") == {"n1": 0.0}


@pytest.mark.parametrize(("plugins", "seen"), [(("predicates", "nodeorder"), True), (("nodeorder",), False)])
def test_placements_of_this_session_are_seen_only_beside_predicates(asked, a_node, a_pod, plugins, seen):
    given = asked(*plugins, arguments=only("leastrequested"), nodes=[a_node("n1")], pods=[a_pod("p"), a_pod("q")])
    before = given.scores("q")

    given.place("p", "n1")

    assert (given.scores("q") != before) is seen


# -- labels and taints ------------------------------------------------------------------------------------------------
def test_preferred_node_affinity_is_scaled_to_the_best_candidate(asked, a_node, a_pod):
    terms = [
        {"weight": 3, "preference": {"matchExpressions": [{"key": "disk", "operator": "In", "values": ["ssd"]}]}},
        {"weight": 4, "preference": {"matchExpressions": [{"key": "gpu", "operator": "Exists"}]}},
    ]
    given = asked(
        "nodeorder",
        arguments=only("nodeaffinity", 2),
        nodes=[
            a_node("n1", labels={"disk": "ssd"}),
            a_node("n2", labels={"disk": "ssd", "gpu": "a"}),
            a_node("n3"),
        ],
        pods=[a_pod("p", affinity=preferred("nodeAffinity", *terms))],
    )

    assert given.scores("p") == {"n1": 84.0, "n2": 200.0, "n3": 0.0}
    assert given.scores("p", among=["n1", "n3"]) == {"n1": 200.0, "n3": 0.0}


def test_untolerated_discouraging_taints_cost(asked, a_node, a_pod):
    soft = [{"key": key, "effect": "PreferNoSchedule"} for key in ("a", "b", "c")]
    given = asked(
        "nodeorder",
        arguments=only("tainttoleration"),
        nodes=[a_node("n1", taints=soft), a_node("n2", taints=soft[:1]), a_node("n3")],
        pods=[a_pod("p"), a_pod("q", tolerations=[{"operator": "Exists"}])],
    )

    assert given.scores("p") == {"n1": 0.0, "n2": 67.0, "n3": 100.0}
    assert given.scores("q") == {"n1": 100.0, "n2": 100.0, "n3": 100.0}
    assert given.scores("p", among=["n3"]) == {"n3": 100.0}


# -- neighbours -------------------------------------------------------------------------------------------------------
def test_liked_neighbours_draw_and_disliked_ones_repel(asked, a_node, a_pod):
    affinity = preferred("podAffinity", near("db", 5)) | preferred("podAntiAffinity", near("noise", 5))
    given = asked(
        "nodeorder",
        arguments=only("podaffinity"),
        nodes=[a_node("n1"), a_node("n2"), a_node("n3")],
        pods=[
            a_pod("r1", on="n1", labels={"app": "db"}),
            a_pod("r2", on="n3", labels={"app": "noise"}),
            a_pod("p", affinity=affinity),
        ],
    )

    assert given.scores("p") == {"n1": 100.0, "n2": 50.0, "n3": 0.0}


def test_what_existing_pods_prefer_counts_for_newcomers(asked, a_node, a_pod):
    given = asked(
        "nodeorder",
        arguments=only("podaffinity"),
        nodes=[a_node("n1"), a_node("n2"), a_node("n3")],
        pods=[
            a_pod("r1", on="n1", affinity=preferred("podAffinity", near("web", 10))),
            a_pod("r2", on="n2", affinity=preferred("podAntiAffinity", near("web", 10))),
            a_pod("p", labels={"app": "web"}),
            a_pod("q", labels={"app": "other"}),
        ],
    )

    assert given.scores("p") == {"n1": 100.0, "n2": 0.0, "n3": 50.0}
    assert given.scores("q") == {"n1": 0.0, "n2": 0.0, "n3": 0.0}


# -- spreading --------------------------------------------------------------------------------------------------------
def test_the_emptiest_domain_scores_best(asked, a_node, a_pod):
    constraint = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "ScheduleAnyway",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    given = asked(
        "nodeorder",
        arguments=only("podtopologyspread"),
        nodes=[a_node(f"n{zone}", labels={"zone": zone}) for zone in "abc"] + [a_node("nowhere")],
        pods=[
            a_pod("r1", on="na", labels={"app": "web"}),
            a_pod("r2", on="na", labels={"app": "web"}),
            a_pod("r3", on="nb", labels={"app": "web"}),
            a_pod("p", labels={"app": "web"}, topologySpreadConstraints=[constraint]),
        ],
    )
    raw = {zone: round(count * math.log(3 + 2)) for zone, count in (("a", 2), ("b", 1), ("c", 0))}
    highest = max(raw.values())

    expected = {f"n{zone}": float(100 * (highest - value) // highest) for zone, value in raw.items()}
    assert given.scores("p") == {**expected, "nowhere": 0.0}


def test_pods_of_one_service_are_spread_without_saying_so(asked, a_node, a_pod):
    service = {"metadata": {"name": "s", "namespace": "ns"}, "spec": {"selector": {"app": "web"}}}
    given = asked(
        "nodeorder",
        arguments=only("podtopologyspread"),
        nodes=[a_node("n1"), a_node("n2")],
        services=[service],
        pods=[a_pod("r", on="n1", labels={"app": "web"}), a_pod("p", labels={"app": "web"}), a_pod("q")],
    )
    hostname = [count * math.log(2 + 2) + 2 for count in (1, 0)]
    raw = [round(value) for value in hostname]

    expected = [float(100 * (max(raw) + min(raw) - value) // max(raw)) for value in raw]
    assert list(given.scores("p").values()) == expected
    assert given.scores("q") == {"n1": 0.0, "n2": 0.0}


# -- images -----------------------------------------------------------------------------------------------------------
def test_a_node_that_has_the_image_is_better_the_larger_it_is(asked, a_node, a_pod):
    megabyte = 1024 * 1024
    image = {"names": ["web:latest"], "sizeBytes": 500 * megabyte}
    given = asked(
        "nodeorder",
        arguments=only("imagelocality", 2),
        nodes=[a_node("n1", status={"images": [image]}), a_node("n2")],
        pods=[a_pod("p", image="web"), a_pod("q", image="other")],
    )
    scaled = int(500 * megabyte * 0.5)

    assert given.scores("p") == {"n1": 2.0 * (100 * (scaled - 23 * megabyte) // (977 * megabyte)), "n2": 0.0}
    assert given.scores("q") == {"n1": 0.0, "n2": 0.0}


# -- all together -----------------------------------------------------------------------------------------------------
def test_default_weights_add_up(asked, a_node, a_pod):
    given = asked("nodeorder", nodes=[a_node("n1", cpu="4", memory="4Gi")], pods=[a_pod("p")])

    assert given.scores("p") == {"n1": 75.0 + 75.0 + 300.0}


def test_weights_of_zero_leave_nothing(asked, a_node, a_pod):
    arguments = {f"{name}.weight": 0 for name in SCORERS}
    given = asked("nodeorder", arguments=arguments, nodes=[a_node("n1")], pods=[a_pod("p")])

    assert given.scores("p") == {"n1": 0.0}
