"""fragmentation: nodes and cards are taken so that what stays free is of use for the pods that are typical."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as over
from hypothesis import strategies as st

from volcano.api.core import Node
from volcano.api.decode import decode_object
from volcano.api.pods.amounts import amounts_of
from volcano.api.pods.stranded import in_units, shapes_of, stranded_on
from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.plugins.fragmentation.usable import NodeState

GPU = "nvidia.com/gpu"
IDS = "volcano.sh/vgpu-ids-new"
VGPU = {"deviceshare.VGPUEnable": True}
CARD_COUNTS = {"volcano.sh/vgpu-number": "100", "volcano.sh/vgpu-memory": "100000", "volcano.sh/vgpu-cores": "800"}


@pytest.fixture
def a_gpu_node(a_node):
    def make(name: str, gpus: int, **more: Any) -> dict[str, Any]:
        return a_node(name, extra={GPU: str(gpus)} if gpus else {}, **more)

    return make


@pytest.fixture
def a_gpu_pod(a_pod):
    def make(name: str, gpus: int, **more: Any) -> dict[str, Any]:
        return a_pod(name, extra={GPU: str(gpus)} if gpus else {}, **more)

    return make


@pytest.fixture
def a_node_of_cards(a_node):
    def make(name: str, cards: int, **more: Any) -> dict[str, Any]:
        node = a_node(name, extra=CARD_COUNTS, **more)
        entries = (f"{name}-{card},100,1000,NVIDIA-A100,true,hami-core" for card in range(cards))
        node["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": ":".join(entries) + ":"}
        return node

    return make


@pytest.fixture
def a_share(a_pod):
    """A pod with thousandths of each of some cards; on a node, those of which cards it holds."""

    def make(name: str, memory: int, number: int = 1, held: str = "", **more: Any) -> dict[str, Any]:
        limits = {"volcano.sh/vgpu-number": str(number), "volcano.sh/vgpu-memory": str(memory)}
        told = {IDS: "".join(f"{card},NVIDIA,{memory},0:" for card in held.split(","))} if held else {}
        return a_pod(name, limits=limits, extra=limits, annotations=told, **{"cpu": "1m", "memory": "1", **more})

    return make


def best(scores: dict[str, float]) -> str:
    return max(scores, key=lambda name: scores[name])


def test_a_small_pod_leaves_the_node_free_on_which_a_large_one_fits(asked, a_gpu_node, a_gpu_pod):
    """Both nodes have room; only one of them could still hold the pod of four."""
    pods = [a_gpu_pod("small", 1), a_gpu_pod("large", 4), a_gpu_pod("there", 1, on="used")]
    given = asked("fragmentation", nodes=[a_gpu_node("empty", 4), a_gpu_node("used", 4)], pods=pods)

    assert best(given.scores("small")) == "used"


def test_a_pod_without_gpus_stays_off_nodes_whose_cpus_their_gpus_need(asked, a_gpu_node, a_gpu_pod):
    nodes = [a_gpu_node("scarce", 4, cpu="8"), a_gpu_node("plenty", 4, cpu="40"), a_gpu_node("none", 0, cpu="8")]
    pods = [a_gpu_pod("plain", 0, cpu="4"), *(a_gpu_pod(f"typical-{place}", 1, cpu="2") for place in range(3))]
    scores = asked("fragmentation", nodes=nodes, pods=pods).scores("plain")

    assert scores["scarce"] < scores["plenty"] <= scores["none"]


def test_a_pod_with_few_cpus_goes_where_cpus_are_few(asked, a_gpu_node, a_gpu_pod):
    nodes = [a_gpu_node("scarce", 2, cpu="3"), a_gpu_node("plenty", 2, cpu="20")]
    pods = [a_gpu_pod("frugal", 1, cpu="1"), *(a_gpu_pod(f"hungry-{place}", 1, cpu="3") for place in range(3))]

    assert best(asked("fragmentation", nodes=nodes, pods=pods).scores("frugal")) == "scarce"


def test_nodes_that_typical_pods_may_not_use_are_taken_first(asked, a_gpu_node, a_gpu_pod):
    nodes = [a_gpu_node("other", 2, labels={"model": "B"}), a_gpu_node("wanted", 2, labels={"model": "A"})]
    pods = [a_gpu_pod("any", 1), *(a_gpu_pod(f"picky-{place}", 2, nodeSelector={"model": "A"}) for place in range(3))]

    assert best(asked("fragmentation", nodes=nodes, pods=pods).scores("any")) == "other"


def test_a_share_goes_to_the_card_that_it_fills(asked, a_node_of_cards, a_share):
    """A share of 0.3 fits either card; only on the one with 0.3 left nothing useful is lost."""
    pods = [
        a_share("there", 700, on="n1", held="n1-0"),
        a_share("half", 500, on="n1", held="n1-1"),
        a_share("small", 300),
        a_share("typical", 500),
    ]
    given = asked("fragmentation", "deviceshare", arguments=VGPU, nodes=[a_node_of_cards("n1", 3)], pods=pods)

    assert given.place("small", "n1") is None
    assert given.task("small").bind_annotations[IDS].startswith("n1-0,")


def test_a_share_goes_to_the_node_with_a_card_that_it_fills(asked, a_node_of_cards, a_share):
    pods = [a_share("there", 700, on="n1", held="n1-0"), a_share("small", 300), a_share("whole", 1000)]
    nodes = [a_node_of_cards("n1", 1), a_node_of_cards("n2", 1)]
    given = asked("fragmentation", "deviceshare", arguments=VGPU, nodes=nodes, pods=pods)

    assert best(given.scores("small")) == "n1"


def test_without_accelerators_and_with_weight_zero_all_nodes_are_equal(asked, a_node, a_gpu_node, a_gpu_pod, a_pod):
    plain = asked("fragmentation", nodes=[a_node("n1"), a_node("n2", cpu="5")], pods=[a_pod("p")])
    assert set(plain.scores("p").values()) == {0.0}
    off = asked(
        "fragmentation",
        arguments={"fragmentation.weight": 0},
        nodes=[a_gpu_node("n1", 1), a_gpu_node("n2", 4)],
        pods=[a_gpu_pod("p", 1)],
    )
    assert set(off.scores("p").values()) == {0.0}


def test_any_resource_can_be_the_one_that_is_measured(asked, a_node, a_pod):
    """Of two nodes with room for the small pod, the one stays free that can hold the pod of four cpus."""
    nodes = [a_node("whole", cpu="4"), a_node("part", cpu="3")]
    pods = [a_pod("small", cpu="1"), a_pod("large", cpu="4")]
    given = asked("fragmentation", arguments={"fragmentation.resources": "cpu"}, nodes=nodes, pods=pods)

    assert best(given.scores("small")) == "part"


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@over(st.integers(1, 4), st.sampled_from([110, 300, 470, 810, 1000]), st.integers(1, 2), st.integers(1, 3))
def test_imagined_copies_score_as_real_ones_would(asked, a_node_of_cards, a_share, cards, memory, number, cpu):
    pods = [a_share(f"p{place}", memory, number, cpu=str(cpu)) for place in range(4)]
    pods += [a_share("other", 470), a_share("another", 1000, 2)]
    given = asked(
        "fragmentation", "deviceshare", arguments=VGPU, nodes=[a_node_of_cards("n1", cards, cpu="8")], pods=pods
    )
    table, (fragmentation, deviceshare) = given.session.table, given.plugins
    task = given.task("p3")
    view = NodeView(table, np.zeros(3, dtype=np.intp), task=task, copies=np.arange(3))
    refused = sum((cause.refused for cause in deviceshare.node_filter(task, view)), np.zeros(3, dtype=bool))
    scores = fragmentation.node_score(task, view)

    for copy in range(3):
        assert bool(given.fits("p3")) == (not refused[copy])
        if refused[copy] or not given.session.nodes.room(task).idle[0]:
            break
        assert given.scores("p3")["n1"] == scores[copy]
        assert given.place(f"p{copy}", "n1") is None


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@over(
    st.lists(st.tuples(st.integers(0, 12), st.integers(0, 8)), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 8), st.integers(0, 8), st.integers(0, 4)), min_size=1, max_size=6),
)
def test_commands_show_as_stranded_what_the_plugin_computes(asked, a_node, a_pod, machines, shapes):
    nodes = [a_node(f"n{p}", cpu=str(cpu), extra={GPU: str(gpus)}) for p, (cpu, gpus) in enumerate(machines)]
    pods = [
        a_pod(f"p{place}-{copy}", cpu=str(cpu), memory=f"{memory}Gi", extra={GPU: str(gpus)})
        for place, (gpus, cpu, memory) in enumerate(shapes)
        for copy in range(1 + place % 2)
    ]
    given = asked("fragmentation", nodes=nodes, pods=pods)
    (plugin,) = given.plugins
    rows, view = np.arange(len(nodes)), NodeView(given.session.table)
    known = shapes_of(pods)

    shown = [
        stranded_on(decode_object(Node, node), in_units(amounts_of(node["status"]["allocatable"])), GPU, known)
        for node in nodes
    ]

    computed = np.zeros(len(nodes))
    for measure in plugin._measures:
        assert measure.resource == GPU
        idle = {name: view.idle[name] for name in [*measure.names, GPU]}
        computed = measure.stranded(rows, NodeState(idle, None))
    np.testing.assert_allclose(shown, computed, atol=1e-6)
