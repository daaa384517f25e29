"""What a node's slice says of its cards."""

from __future__ import annotations

from volcano.embedded.agent.devices.cards import MachineCard
from volcano.embedded.agent.devices.slices import device, device_class, slice_body


def test_a_device_has_what_claims_select_by():
    card = MachineCard(
        "nvidia-1", "nvidia", "nvidia.com/gpu", 1, "GPU-1", "GPU-1", "A" * 80, 81920 * 2**20, "0000:3b:00.0", 1
    )

    assert device(card) == {
        "name": "nvidia-1",
        "attributes": {
            "vendor": {"string": "nvidia"},
            "model": {"string": "A" * 64},
            "uuid": {"string": "GPU-1"},
            "pciBusID": {"string": "0000:3b:00.0"},
            "index": {"int": 1},
            "numaNode": {"int": 1},
        },
        "capacity": {"memory": {"value": "80Gi"}},
    }


def test_what_is_not_known_is_left_out():
    assert device(MachineCard("ascend-0", "ascend", "huawei.com/Ascend910", 0, "0")) == {
        "name": "ascend-0",
        "attributes": {"vendor": {"string": "ascend"}, "index": {"int": 0}},
    }


def test_the_slice_belongs_to_its_node_and_the_class_to_its_vendor():
    body = slice_body("n", "uid", [MachineCard("x", "amd", "amd.com/gpu", 0, "0")], 7)

    assert body["metadata"]["ownerReferences"][0]["uid"] == "uid"
    assert body["spec"]["pool"] == {"name": "n", "generation": 7, "resourceSliceCount": 1}
    assert device_class("amd")["metadata"]["name"] == "amd-gpu.volcano.sh"
