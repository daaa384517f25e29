"""deviceshare: MIG, Ascend NPUs, other vendors and device configurations, each described as data."""

from __future__ import annotations

import json
from typing import Any

import pytest

from volcano.api.device_families import VENDORS
from volcano.scheduler.plugins.deviceshare.device_config import InvalidDeviceConfig, device_config

IDS = "volcano.sh/vgpu-ids-new"
VGPU = {"deviceshare.VGPUEnable": True}
ASCEND = {"deviceshare.AscendHAMiVNPUEnable": True}
CHIPS = {"deviceshare.AscendMindClusterVNPUEnable": True}
GEOMETRIES = {
    "nvidia": {
        "resourceMemoryPercentageName": "volcano.sh/vgpu-memory-percentage",
        "knownMigGeometries": [
            {
                "models": ["A100"],
                "allowedGeometries": [
                    {"group": "group1", "geometries": [{"name": "1g", "memory": 10, "count": 2}]},
                    {"group": "group2", "geometries": [{"name": "2g", "memory": 24, "count": 1}]},
                ],
            }
        ],
    }
}


@pytest.fixture
def a_vgpu_node(a_node):
    def make(name: str, register: str, **labels: str) -> dict[str, Any]:
        counts = {"volcano.sh/vgpu-number": "100", "volcano.sh/vgpu-memory": "100000", "volcano.sh/vgpu-cores": "800"}
        node = a_node(name, extra=counts)
        node["metadata"]["annotations"] = {"volcano.sh/node-vgpu-register": register}
        return node

    return make


@pytest.fixture
def a_card_pod(a_pod):
    def make(name: str, **more: Any) -> dict[str, Any]:
        limits = {key: str(value) for key, value in more.pop("limits").items()}
        return a_pod(name, limits=limits, extra=limits, **more)

    return make


def vgpu(memory: int, number: int = 1) -> dict[str, int]:
    return {"volcano.sh/vgpu-number": number, "volcano.sh/vgpu-memory": memory}


# -- MIG ---------------------------------------------------------------------------------------------------------------
def test_a_slice_of_the_first_geometry_that_has_one_is_taken_and_the_group_then_stays(asked, a_vgpu_node, a_card_pod):
    nodes = [a_vgpu_node("n1", "gpu,9,40,NVIDIA-A100,true,mig:")]
    pods = [a_card_pod(name, limits=vgpu(memory)) for name, memory in {"big": 20, "small": 8, "other": 8}.items()]
    given = asked("deviceshare", arguments=VGPU | {"deviceshare.DeviceConfig": GEOMETRIES}, nodes=nodes, pods=pods)

    given.place("big", "n1")

    assert given.task("big").bind_annotations[IDS] == "gpu[group2-0],NVIDIA-A100,24,0:"
    assert given.fits("small") == []
    given.lift("big")
    given.place("small", "n1")
    given.place("other", "n1")
    told = [given.task(name).bind_annotations[IDS] for name in ("small", "other")]
    assert told == ["gpu[group1-0],NVIDIA-A100,10,0:", "gpu[group1-1],NVIDIA-A100,10,0:"]
    assert given.fits("big") == []


def test_slices_in_use_are_known_from_the_pods_annotations_also_while_pods_are_deleted(asked, a_vgpu_node, a_card_pod):
    held = {"on": "n1", "annotations": {IDS: "gpu[group1-1],NVIDIA-A100,10,0:"}}
    nodes = [a_vgpu_node("n1", "gpu,9,40,NVIDIA-A100,true,mig:")]
    pods = [a_card_pod("old", limits=vgpu(8), **held), *(a_card_pod(name, limits=vgpu(8)) for name in "pq")]
    given = asked("deviceshare", arguments=VGPU | {"deviceshare.DeviceConfig": GEOMETRIES}, nodes=nodes, pods=pods)

    given.place("p", "n1")

    assert given.task("p").bind_annotations[IDS].startswith("gpu[group1-0]")
    assert given.fits("q") == []


def test_a_container_of_one_pod_never_gets_the_slice_of_another(asked, a_vgpu_node, a_card_pod):
    pod = a_card_pod("p", limits=vgpu(8))
    pod["spec"]["containers"] = pod["spec"]["containers"] * 2
    nodes = [a_vgpu_node("n1", "gpu,9,40,NVIDIA-A100,true,mig:")]
    given = asked("deviceshare", arguments=VGPU | {"deviceshare.DeviceConfig": GEOMETRIES}, nodes=nodes, pods=[pod])

    given.place("p", "n1")

    assert given.task("p").bind_annotations[IDS] == "gpu[group1-0],NVIDIA-A100,10,0:;gpu[group1-1],NVIDIA-A100,10,0:"


def test_cards_of_known_models_have_geometries_without_a_configuration(asked, a_vgpu_node, a_card_pod):
    nodes = [a_vgpu_node("n1", "gpu,9,40960,NVIDIA-A100-SXM4-40GB,true,mig:")]
    pods = [a_card_pod(f"p{place}", limits=vgpu(4000)) for place in range(8)]
    given = asked("deviceshare", arguments=VGPU, nodes=nodes, pods=pods)

    for place in range(7):
        assert given.place(f"p{place}", "n1") is None
    assert given.fits("p7") == []


def test_a_percentage_of_memory_counts_where_the_configuration_names_its_resource(asked, a_vgpu_node, a_card_pod):
    nodes = [a_vgpu_node("n1", "gpu,9,1000,NVIDIA-T4,true,hami-core:")]
    limits = {"volcano.sh/vgpu-number": 1, "volcano.sh/vgpu-memory-percentage": 40}
    pods = [a_card_pod(name, limits=limits) for name in "pqr"]
    given = asked("deviceshare", arguments=VGPU | {"deviceshare.DeviceConfig": GEOMETRIES}, nodes=nodes, pods=pods)

    given.place("p", "n1")
    given.place("q", "n1")

    assert given.task("p").bind_annotations[IDS] == "gpu,NVIDIA-T4,400,0:"
    assert given.reasons("r") == {"hami-vgpuDeviceSharing error": 1}


# -- registers that cannot be read -------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("register", "reason"),
    [
        ("a,1,1:", "card 1 has 3 of 6 fields"),
        ("a,²,1,NVIDIA,true,x:", "card 1: users is no whole number: '²'"),
        ("a,1,99999999999999999999,NVIDIA,true,x:", "card 1: memory is no whole number: '99999999999999999999'"),
        ("a,1,1,NVIDIA,true,x:a,1,1,NVIDIA,true,x:", "names a twice"),
    ],
)
def test_a_register_of_another_version_is_a_reason_on_the_node(asked, a_vgpu_node, a_card_pod, register, reason):
    given = asked(
        "deviceshare", arguments=VGPU, nodes=[a_vgpu_node("n1", register)], pods=[a_card_pod("p", limits=vgpu(1))]
    )

    (told,) = given.reasons("p")
    assert told.startswith("the node's volcano.sh/node-vgpu-register ")
    assert told.endswith(reason)


@pytest.mark.parametrize(
    "register",
    ["[", "[1]", '[{"id": 5}]', '[{"id": "a", "devmem": -1}]', '[{"id": "a", "devmem": 1, "custominfo": {"NetworkID": []}}]', "x,1:"],
)  # fmt: skip
def test_a_json_register_of_another_version_is_a_reason_too(asked, a_node, a_card_pod, register):
    node = a_node("n1", extra={"huawei.com/Ascend910B3": "8"})
    node["metadata"]["annotations"] = {"hami.io/node-register-Ascend910B3": register}
    given = asked(
        "deviceshare", arguments=ASCEND, nodes=[node], pods=[a_card_pod("p", limits={"huawei.com/Ascend910B3": 1})]
    )

    (told,) = given.reasons("p")
    assert "hami.io/node-register-Ascend910B3 cannot be read" in told


# -- Ascend, as HAMi registers it --------------------------------------------------------------------------------------
@pytest.fixture
def an_ascend_node(a_node):
    def make(name: str, word: str, networks: list[int], memory: int = 65536, **annotations: str) -> dict[str, Any]:
        node = a_node(name, extra={f"huawei.com/{word}": str(len(networks) * 4)})
        cards = [
            {"id": f"{name}-{place}", "count": 4, "devmem": memory, "devcore": 20, "type": word, "health": True,
             "custominfo": {"NetworkID": network}}
            for place, network in enumerate(networks)
        ]  # fmt: skip
        node["metadata"]["annotations"] = {f"hami.io/node-register-{word}": json.dumps(cards), **annotations}
        return node

    return make


def test_memory_of_an_npu_is_rounded_up_to_a_template(asked, an_ascend_node, a_card_pod):
    limits = {"huawei.com/Ascend910B3": 1, "huawei.com/Ascend910B3-memory": 20000}
    pods = [a_card_pod(name, limits=limits) for name in "pqr"]
    given = asked("deviceshare", arguments=ASCEND, nodes=[an_ascend_node("n1", "Ascend910B3", [0])], pods=pods)

    given.place("p", "n1")
    given.place("q", "n1")

    told = given.task("p").bind_annotations
    assert told["hami.io/Ascend910B3-devices-allocated"] == "n1-0,Ascend910B3,32768,0:;"
    assert json.loads(told["huawei.com/Ascend910B3"]) == [{"UUID": "n1-0", "temp": "vir10_3c_32g"}]
    assert told["hami.io/bind-phase"] == "allocating"
    assert given.reasons("r") == {"no ascend device available": 1}


def test_several_npus_are_taken_from_the_network_with_most_of_them(asked, an_ascend_node, a_card_pod):
    pods = [a_card_pod("p", limits={"huawei.com/Ascend910B3": 3})]
    node = an_ascend_node("n1", "Ascend910B3", [0, 0, 1, 1, 1])
    given = asked("deviceshare", arguments=ASCEND, nodes=[node], pods=pods)

    given.place("p", "n1")

    ids = given.task("p").bind_annotations["hami.io/Ascend910B3-devices-allocated"].rstrip(":;").split(":")
    assert [each.split(",")[0] for each in ids] == ["n1-2", "n1-3", "n1-4"]


def test_parts_of_several_npus_are_refused_with_the_reason(asked, an_ascend_node, a_card_pod):
    limits = {"huawei.com/Ascend310P": 2, "huawei.com/Ascend310P-memory": 3000}
    node = an_ascend_node("n1", "Ascend310P", [0, 0], 21527)
    given = asked("deviceshare", arguments=ASCEND, nodes=[node], pods=[a_card_pod("p", limits=limits)])

    assert list(given.reasons("p")) == [
        "vNPU does not support partial memory allocation when requesting multiple devices"
    ]


def test_a_share_that_is_not_rounded_needs_a_node_that_offers_it(asked, an_ascend_node, a_card_pod):
    limits = {"huawei.com/Ascend310P": 1, "huawei.com/Ascend310P-memory": 4000, "huawei.com/Ascend310P-core": 10}
    pods = [a_card_pod("p", limits=limits, annotations={"huawei.com/vnpu-mode": "hami-core"})]
    nodes = [
        an_ascend_node("hard", "Ascend310P", [0], 21527),
        an_ascend_node("soft", "Ascend310P", [0], 21527, **{"hami-vnpu-core": "true"}),
    ]
    given = asked("deviceshare", arguments=ASCEND, nodes=nodes, pods=pods)

    assert given.fits("p") == ["soft"]
    given.place("p", "soft")
    assert given.task("p").bind_annotations["hami.io/Ascend310P-devices-allocated"] == "soft-0,Ascend310P,4000,10:;"


def test_whole_npus_of_one_pod_are_on_one_ring(asked, a_node, a_card_pod):
    arguments = {"deviceshare.Families": "ascend-rings"}
    held = {"on": "n1", "annotations": {"huawei.com/Ascend910": "Ascend910-0"}}
    limits = {"huawei.com/Ascend910": 4}
    pods = [
        a_card_pod("old", limits={"huawei.com/Ascend910": 1}, **held),
        a_card_pod("p", limits=limits),
        a_card_pod("q", limits=limits),
    ]
    given = asked(
        "deviceshare", arguments=arguments, nodes=[a_node("n1", extra={"huawei.com/Ascend910": "8"})], pods=pods
    )

    given.place("p", "n1")

    assert given.task("p").bind_annotations["huawei.com/Ascend910"] == "Ascend910-4,Ascend910-5,Ascend910-6,Ascend910-7"
    assert given.reasons("q") == {"not enough Ascend910 on one ring": 1}


# -- Ascend 310P, as MindCluster registers it --------------------------------------------------------------------------
@pytest.fixture
def a_chip_node(a_node):
    def make(name: str, cores: int = 16) -> dict[str, Any]:
        node = a_node(name, extra={"huawei.com/npu-core": str(cores)})
        node["metadata"]["labels"] = {"accelerator": "huawei-Ascend310P", "servertype": "Ascend310P-8"}
        return node

    return make


def chip_pod(make: Any, name: str, cores: int, **labels: str) -> dict[str, Any]:
    labels = {"ring-controller.atlas": "ascend-310P", **{f"vnpu-{key}": value for key, value in labels.items()}}
    return make(name, limits={"huawei.com/npu-core": cores}, labels=labels)


def test_cores_of_a_chip_are_given_by_templates_the_fullest_chip_first(asked, a_chip_node, a_card_pod):
    pods = [
        chip_pod(a_card_pod, "one", 1),
        chip_pod(a_card_pod, "four", 4, level="high"),
        chip_pod(a_card_pod, "decoder", 4, dvpp="yes"),
        chip_pod(a_card_pod, "chip", 8),
    ]
    given = asked("deviceshare", arguments=CHIPS, nodes=[a_chip_node("n1")], pods=pods)

    for name in ("one", "four", "chip"):
        assert given.place(name, "n1") is None
    told = {name: given.task(name).bind_annotations["huawei.com/npu-core"] for name in ("one", "four", "chip")}
    assert told == {"one": "0-vir01", "four": "0-vir04", "chip": "1"}
    assert given.reasons("decoder") == {"no chip has enough free cores": 1}


def test_where_a_template_does_not_fit_one_with_fewer_cpus_is_taken(asked, a_chip_node, a_card_pod):
    pods = [chip_pod(a_card_pod, f"p{place}", 4, level="high") for place in range(2)]
    given = asked("deviceshare", arguments=CHIPS, nodes=[a_chip_node("n1", 8)], pods=pods)

    assert given.place("p0", "n1") is None
    assert given.place("p1", "n1") is None
    told = [given.task(f"p{place}").bind_annotations["huawei.com/npu-core"] for place in range(2)]
    assert told == ["0-vir04", "0-vir04_3c"]


# -- other vendors -----------------------------------------------------------------------------------------------------
@pytest.mark.parametrize("name", sorted(VENDORS))
def test_every_vendor_shares_cards_by_number_and_memory(asked, a_node, a_card_pod, name):
    family = VENDORS[name]
    node = a_node("n1", extra={family.count: "20"})
    kind = f"{family.type_word or name}-X"
    card = {"id": "c", "count": 10, "devmem": 98304, "devcore": 100, "type": kind, "health": True}
    node["metadata"]["annotations"] = {
        family.register: json.dumps([{**card, "id": f"c{place}", "health": place < 2} for place in range(3)])
    }
    pods = [a_card_pod(each, limits={family.count: 2, family.memory: 49152}) for each in "pqr"]
    given = asked("deviceshare", arguments={"deviceshare.Families": name}, nodes=[node, a_node("plain")], pods=pods)

    given.place("p", "n1")
    given.place("q", "n1")

    text = f"c0,{kind},49152,0:c1,{kind},49152,0:;"
    assert (
        given.task("p").bind_annotations[family.assigned] == given.task("p").bind_annotations[family.copies[0]] == text
    )
    assert given.fits("r") == []


def test_cards_of_one_numa_node_where_the_pod_asks_for_it(asked, a_node, a_card_pod):
    register = "".join(f"g{place},10,1000,100,NVIDIA-V100,{place % 2},true:" for place in range(4))
    node = a_node("n1", extra={"nvidia.com/gpu": "40"})
    node["metadata"]["annotations"] = {"hami.io/node-nvidia-register": register}
    bound = {"nvidia.com/numa-bind": "true"}
    pods = [a_card_pod(name, limits={"nvidia.com/gpu": 2}, annotations=bound) for name in "pq"]
    pods.append(a_card_pod("three", limits={"nvidia.com/gpu": 3}, annotations=bound))
    given = asked("deviceshare", arguments={"deviceshare.Families": "nvidia"}, nodes=[node], pods=pods)

    assert given.fits("three") == []
    given.place("p", "n1")
    told = given.task("p").bind_annotations["hami.io/vgpu-devices-allocated"]
    assert {part.split(",")[0] for part in told.rstrip(":;").split(":")} in ({"g0", "g2"}, {"g1", "g3"})


# -- the device configuration ------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "the text: is no map"),
        ("nvidia: {knownMigGeometries: 5}", "nvidia.knownMigGeometries: is no list"),
        (
            "nvidia: {knownMigGeometries: [{allowedGeometries: [{group: a-b}]}]}",
            "nvidia.knownMigGeometries[0].allowedGeometries[0].group: 'a-b' contains a hyphen",
        ),
        ("vnpus: [{chipName: x}]", "vnpus[0].commonWord: is not stated"),
        ("vnpus: [{commonWord: x, templates: [{memory: -1}]}]", "vnpus[0].templates[0].memory: is no number from 0: '-1'"),
    ],
)  # fmt: skip
def test_a_configuration_that_cannot_be_read_says_which_field_is_wrong(text, reason):
    with pytest.raises(InvalidDeviceConfig) as raised:
        device_config(text)
    assert str(raised.value) == reason


def test_a_configuration_renames_resources_and_states_chips():
    config = device_config(
        "hygon: {resourceCountName: hygon.com/hcu}\n"
        "vnpus: {hamiVnpuCore: true, configs: [{commonWord: AscendX, resourceName: huawei.com/X, memoryAllocatable: 8,"
        " templates: [{name: b, memory: 4}, {name: a, memory: 2}]}]}\n"
    )

    hygon = next(family for family in config.vendors if family.name == "hygon")
    assert (hygon.count, hygon.needs, hygon.memory) == ("hygon.com/hcu", ("hygon.com/hcu",), "hygon.com/dcumem")
    (chip,) = config.ascend
    assert (chip.count, chip.cores, chip.soft_default) == ("huawei.com/X", "huawei.com/X-core", True)
    assert [template.name for template in chip.templates] == ["a", "b"]


def test_a_card_that_is_cut_while_pods_share_it_gives_no_slice_until_they_are_gone(asked, a_vgpu_node, a_card_pod):
    held = {"on": "n1", "annotations": {IDS: "gpu,NVIDIA-A100,10,0:"}}
    nodes = [a_vgpu_node("n1", "gpu,9,40,NVIDIA-A100,true,mig:")]
    pods = [*(a_card_pod(name, limits=vgpu(8), **held) for name in ("a", "b")), a_card_pod("new", limits=vgpu(8))]
    given = asked("deviceshare", arguments=VGPU | {"deviceshare.DeviceConfig": GEOMETRIES}, nodes=nodes, pods=pods)

    assert given.fits("new") == []
    given.evict("a")
    assert given.fits("new") == []
    given.evict("b")
    assert given.fits("new") == ["n1"]
