"""deviceshare: which cards pods get, whom they share them with, and what they are told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as over
from hypothesis import strategies as st

from volcano.scheduler.core.node_view import NodeView
from volcano.scheduler.model import Status

VGPU = {"deviceshare.VGPUEnable": True}
IDS = "volcano.sh/vgpu-ids-new"


def cards(*of: tuple[str, int, int], kind: str = "NVIDIA-A100") -> dict[str, Any]:
    """A node's annotation for cards of (uuid, most users, memory)."""
    entries = (f"{uuid},{count},{memory},{kind},true,hami-core" for uuid, count, memory in of)
    return {"volcano.sh/node-vgpu-register": ":".join(entries) + ":"}


@pytest.fixture
def a_gpu_node(a_node):
    def make(name: str, *of: tuple[str, int, int], **more: Any) -> dict[str, Any]:
        counts = {"volcano.sh/vgpu-number": "100", "volcano.sh/vgpu-memory": "100000", "volcano.sh/vgpu-cores": "800"}
        node = a_node(name, extra=counts)
        node["metadata"]["annotations"] = cards(*of, **more)
        return node

    return make


@pytest.fixture
def a_gpu_pod(a_pod):
    def make(name: str, memory: int = 0, number: int = 1, cores: int = 0, **more: Any) -> dict[str, Any]:
        limits = {"volcano.sh/vgpu-number": str(number)}
        limits |= {"volcano.sh/vgpu-memory": str(memory)} if memory else {}
        limits |= {"volcano.sh/vgpu-cores": str(cores)} if cores else {}
        return a_pod(name, limits=limits, extra=limits, **more)

    return make


def ids_of(given: Any, name: str) -> str:
    return given.task(name).bind_annotations[IDS]


# -- vGPU --------------------------------------------------------------------------------------------------------------
def test_a_pod_gets_a_part_of_a_card_and_is_told_which(asked, a_gpu_node, a_gpu_pod):
    nodes = [a_gpu_node("n1", ("GPU-1", 10, 30000), ("GPU-2", 10, 30000))]
    given = asked("deviceshare", arguments=VGPU, nodes=nodes, pods=[a_gpu_pod("p", memory=1000, cores=30)])

    assert given.place("p", "n1") is None

    told = given.task("p").bind_annotations
    assert told[IDS] == told["volcano.sh/devices-to-allocate"] == "GPU-2,NVIDIA-A100,1000,30:"
    assert told["volcano.sh/vgpu-node"] == "n1"
    assert told["volcano.sh/bind-phase"] == "allocating"
    assert int(told["volcano.sh/vgpu-time"]) == int(told["volcano.sh/bind-time"]) > 0


def test_what_a_pod_was_told_is_withdrawn_when_its_place_is(asked, a_gpu_node, a_gpu_pod):
    nodes = [a_gpu_node("n1", ("GPU-1", 1, 30000))]
    given = asked("deviceshare", arguments=VGPU, nodes=nodes, pods=[a_gpu_pod("p"), a_gpu_pod("q")])
    given.place("p", "n1")
    full = given.fits("q")

    given.lift("p")

    assert full == []
    assert given.fits("q") == ["n1"]
    assert given.task("p").bind_annotations == {}


def test_memory_cores_and_users_of_a_card_are_limited(asked, a_gpu_node, a_gpu_pod):
    on = {"on": "n1", "annotations": {IDS: "GPU-1,NVIDIA-A100,20000,60:"}}
    nodes = [a_gpu_node("n1", ("GPU-1", 2, 30000))]

    def fits(**asks: int) -> bool:
        pods = [a_gpu_pod("old", memory=20000, cores=60, **on), a_gpu_pod("new", **asks)]
        return bool(asked("deviceshare", arguments=VGPU, nodes=nodes, pods=pods).fits("new"))

    assert fits(memory=10000, cores=40)
    assert not fits(memory=10001)
    assert not fits(memory=1, cores=41)
    assert not fits(memory=1, cores=100)
    assert not fits()  # a whole card's memory when nothing is stated
    assert not fits(memory=1, number=2)


def test_a_card_with_all_cores_taken_or_all_users_there_takes_nobody(asked, a_gpu_node, a_gpu_pod):
    def fits(most_users: int, cores: int) -> bool:
        held = {IDS: f"GPU-1,NVIDIA-A100,1000,{cores}:"}
        pods = [a_gpu_pod("old", memory=1000, on="n1", annotations=held), a_gpu_pod("new", memory=1)]
        nodes = [a_gpu_node("n1", ("GPU-1", most_users, 30000))]
        return bool(asked("deviceshare", arguments=VGPU, nodes=nodes, pods=pods).fits("new"))

    assert fits(2, 50)
    assert not fits(2, 100)
    assert not fits(1, 50)


def test_several_cards_of_different_memory_may_be_taken_whole(asked, a_gpu_node, a_gpu_pod):
    nodes = [a_gpu_node("n1", ("a", 10, 10000), ("b", 10, 20000), ("c", 10, 30000))]
    given = asked("deviceshare", arguments=VGPU, nodes=nodes, pods=[a_gpu_pod("p", number=3, cores=100)])

    assert given.fits("p") == ["n1"]
    given.place("p", "n1")
    assert ids_of(given, "p") == "c,NVIDIA-A100,30000,100:b,NVIDIA-A100,20000,100:a,NVIDIA-A100,10000,100:"


def test_containers_are_served_in_order_and_those_without_a_wish_have_an_empty_place(asked, a_gpu_node, a_gpu_pod):
    pod = a_gpu_pod("p", memory=6000)
    (first,) = pod["spec"]["containers"]
    pod["spec"]["containers"] = [first, {"resources": {}}, first]
    given = asked("deviceshare", arguments=VGPU, nodes=[a_gpu_node("n1", ("a", 9, 10000), ("b", 9, 10000))], pods=[pod])

    given.place("p", "n1")

    assert ids_of(given, "p") == "b,NVIDIA-A100,6000,0:;;a,NVIDIA-A100,6000,0:"


def test_binpack_stacks_pods_and_scores_fuller_cards_higher(asked, a_gpu_node, a_gpu_pod):
    arguments = VGPU | {"deviceshare.SchedulePolicy": "binpack", "deviceshare.ScheduleWeight": 10}
    held = {"on": "n1", "annotations": {IDS: "GPU-2,NVIDIA-A100,3000,0:"}}
    nodes = [
        a_gpu_node("n1", ("GPU-1", 10, 30000), ("GPU-2", 10, 30000)),
        a_gpu_node("n2", ("GPU-3", 10, 30000)),
    ]
    pods = [a_gpu_pod("old", memory=3000, **held), *(a_gpu_pod(name, memory=1000) for name in "pqr")]
    given = asked("deviceshare", arguments=arguments, nodes=nodes, pods=pods)

    assert given.scores("p") == {"n1": 130.0, "n2": 30.0}
    for name in "pqr":
        given.place(name, "n1")
    assert {ids_of(given, name).split(",")[0] for name in "pqr"} == {"GPU-2"}


def test_spread_takes_the_least_used_card(asked, a_gpu_node, a_gpu_pod):
    arguments = VGPU | {"deviceshare.SchedulePolicy": "spread"}
    nodes = [a_gpu_node("n1", ("a", 10, 30000), ("b", 10, 30000), ("c", 10, 30000))]
    given = asked("deviceshare", arguments=arguments, nodes=nodes, pods=[a_gpu_pod(n, memory=1000) for n in "pqr"])

    for name in "pqr":
        given.place(name, "n1")

    assert [ids_of(given, name)[0] for name in "pqr"] == ["a", "b", "c"]


def test_pods_of_a_group_that_spreads_do_not_share_a_card(asked, a_gpu_node, a_gpu_pod):
    apart = {"volcano.sh/vgpu-podgroup-policy": "spread"}
    pods = [
        *(a_gpu_pod(name, memory=1000, annotations=apart) for name in "pq"),
        a_gpu_pod("other", memory=1000, group="h", annotations=apart),
    ]
    one = asked(
        "deviceshare", arguments=VGPU, nodes=[a_gpu_node("n1", ("a", 9, 9000))], pods=pods, groups={"g": "q", "h": "q"}
    )
    one.place("p", "n1")

    assert one.fits("q") == []
    assert one.fits("other") == ["n1"]


def test_exclusive_rules_keep_pods_of_one_kind_off_each_others_cards(asked, a_gpu_node, a_gpu_pod):
    arguments = VGPU | {"deviceshare.GPUExclusiveRules": [{"app": "train"}, {}]}
    pods = [
        a_gpu_pod("p", memory=1, labels={"app": "train"}),
        a_gpu_pod("q", memory=1, labels={"app": "train", "x": "y"}),
        a_gpu_pod("r", memory=1),
    ]
    given = asked("deviceshare", arguments=arguments, nodes=[a_gpu_node("n1", ("a", 9, 9000))], pods=pods)
    given.place("p", "n1")

    assert given.fits("q") == []
    assert given.fits("r") == ["n1"]


@pytest.mark.parametrize(
    ("annotations", "fits"),
    [
        ({"volcano.sh/vgpu-use-gpuuuid": "GPU-1"}, True),
        ({"volcano.sh/vgpu-use-gpuuuid": "GPU-10"}, False),
        ({"volcano.sh/vgpu-nouse-gpuuuid": " GPU-1 ,GPU-7"}, False),
        ({"volcano.sh/vgpu-use-gpuuuid": "GPU-1", "volcano.sh/vgpu-nouse-gpuuuid": "GPU-1"}, False),
        ({"nvidia.com/use-gputype": "a100,h100"}, True),
        ({"nvidia.com/use-gputype": "h100"}, False),
        ({"nvidia.com/nouse-gputype": "A100"}, False),
        ({"volcano.sh/vgpu-mode": "hami-core"}, True),
        ({"volcano.sh/vgpu-mode": "mig"}, False),
    ],
)
def test_a_pod_may_choose_cards_by_uuid_type_and_mode(asked, a_gpu_node, a_gpu_pod, annotations, fits):
    nodes = [a_gpu_node("n1", ("GPU-1", 9, 9000))]
    given = asked("deviceshare", arguments=VGPU, nodes=nodes, pods=[a_gpu_pod("p", memory=1, annotations=annotations)])

    assert given.fits("p") == (["n1"] if fits else [])
    assert given.reasons("p") == ({} if fits else {"hami-vgpuDeviceSharing error": 1})


def test_nodes_without_cards_and_pods_without_a_wish_are_not_concerned(asked, a_node, a_gpu_node, a_gpu_pod, a_pod):
    broken = a_gpu_node("broken", ("x", 1, 1))
    broken["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": "x,1,1:"}
    nodes = [a_node("plain"), broken, a_gpu_node("full", ("y", 1, 1), kind="AMD")]
    given = asked("deviceshare", arguments=VGPU, nodes=nodes, pods=[a_gpu_pod("p", memory=1), a_pod("q")])

    assert given.fits("p") == ["plain"]
    assert given.fits("q") == ["plain", "broken", "full"]
    reason = "the node's volcano.sh/node-vgpu-register cannot be read: card 1 has 3 of 6 fields"
    assert given.reasons("p") == {reason: 1, "hami-vgpuDeviceSharing error": 1}


def test_evicting_frees_the_card_and_undoing_it_takes_it_again(asked, a_gpu_node, a_gpu_pod):
    held = {"on": "n1", "annotations": {IDS: "a,NVIDIA-A100,9000,0:"}}
    pods = [a_gpu_pod("old", memory=9000, **held), a_gpu_pod("new", memory=9000)]
    given = asked("deviceshare", arguments=VGPU, nodes=[a_gpu_node("n1", ("a", 9, 9000))], pods=pods)

    given.evict("old")
    free = given.fits("new")
    given.session.moves.reinstate(given.task("old"))

    assert free == ["n1"]
    assert given.fits("new") == []


def test_a_session_leaves_nothing_told_to_pods_that_were_not_bound(asked, a_gpu_node, a_gpu_pod):
    nodes = [a_gpu_node("n1", ("a", 9, 9000))]
    given = asked("deviceshare", arguments=VGPU, nodes=nodes, pods=[a_gpu_pod("p"), a_gpu_pod("q", memory=1)])
    given.place("p", "n1", Status.PIPELINED)

    given.session.restore()

    assert given.task("p").bind_annotations == {}


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@over(
    st.lists(st.tuples(st.integers(1, 3), st.integers(1000, 9000)), min_size=1, max_size=3),
    st.integers(100, 5000),
    st.integers(1, 2),
    st.sampled_from([0, 30, 100]),
    st.sampled_from(["", "binpack", "spread"]),
)
def test_imagined_copies_are_answered_as_real_ones_would_be(asked, a_node, a_pod, of, memory, number, cores, policy):
    counts = {"volcano.sh/vgpu-number": "100", "volcano.sh/vgpu-memory": "100000", "volcano.sh/vgpu-cores": "800"}
    made = a_node("n1", extra=counts)
    made["metadata"]["annotations"] = cards(*((f"c{i}", users, size) for i, (users, size) in enumerate(of)))
    limits = {"volcano.sh/vgpu-number": str(number), "volcano.sh/vgpu-memory": str(memory)}
    limits |= {"volcano.sh/vgpu-cores": str(cores)}
    pods = [a_pod(f"p{i}", cpu="1m", memory="1", limits=limits) for i in range(5)]
    arguments = VGPU | {"deviceshare.SchedulePolicy": policy, "deviceshare.ScheduleWeight": 1}
    given = asked("deviceshare", arguments=arguments, nodes=[made], pods=pods)
    table, (plugin,) = given.session.table, given.plugins

    copies = np.arange(4)
    view = NodeView(table, np.zeros(4, dtype=np.intp), task=given.task("p4"), copies=copies)
    refused = sum((c.refused for c in plugin.node_filter(given.task("p4"), view)), np.zeros(4, dtype=bool))
    scores = plugin.node_score(given.task("p4"), view)

    for copy in range(4):
        assert bool(given.fits("p4")) == (not refused[copy])
        if refused[copy]:
            break
        assert given.scores("p4")["n1"] == scores[copy]
        assert given.place(f"p{copy}", "n1") is None


# -- GPU number and GPU memory -----------------------------------------------------------------------------------------
@pytest.fixture
def a_shared_node(a_node):
    def make(name: str, memory: int, number: int, unhealthy: str = "") -> dict[str, Any]:
        node = a_node(name, extra={"volcano.sh/gpu-memory": str(memory), "volcano.sh/gpu-number": str(number)})
        node["metadata"]["annotations"] = {"volcano.sh/gpu-unhealthy-ids": unhealthy}
        return node

    return make


def test_memory_of_a_gpu_is_shared_the_lowest_card_first(asked, a_shared_node, a_pod):
    limits = {"volcano.sh/gpu-memory": "600"}
    given = asked(
        "deviceshare",
        arguments={"deviceshare.GPUSharingEnable": True},
        nodes=[a_shared_node("n1", 2000, 2)],
        pods=[a_pod(name, limits=limits) for name in "pqr"],
    )

    given.place("p", "n1")
    given.place("q", "n1")

    assert [given.task(name).bind_annotations["volcano.sh/gpu-index"] for name in "pq"] == ["0", "1"]
    assert given.reasons("r") == {"GpuShare no enough gpu memory": 1}


def test_whole_gpus_are_given_by_number_and_unhealthy_ones_are_not(asked, a_shared_node, a_pod):
    given = asked(
        "deviceshare",
        arguments={"deviceshare.GPUNumberEnable": True},
        nodes=[a_shared_node("n1", 4000, 4, "1")],
        pods=[
            a_pod("old", on="n1", limits={"volcano.sh/gpu-number": "1"}, annotations={"volcano.sh/gpu-index": "0"}),
            a_pod("two", limits={"volcano.sh/gpu-number": "2"}),
            a_pod("three", limits={"volcano.sh/gpu-number": "3"}),
        ],
    )

    assert given.reasons("three") == {"GpuNumber no enough gpu number": 1}
    given.place("two", "n1")
    assert given.task("two").bind_annotations["volcano.sh/gpu-index"] == "2,3"
