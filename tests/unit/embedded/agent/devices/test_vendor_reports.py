"""Reads what the vendors' tools print."""

from __future__ import annotations

import json

import pytest

from volcano.embedded.agent.devices.vendor_reports import (
    UnreadableReport,
    amd_cards,
    ascend_cards,
    nvidia_cards,
    pci_bus,
    rocm_cards,
)

NPU_TABLE = """
+------------------------------------------------------------------------------------------------+
| npu-smi 23.0.rc2                 Version: 23.0.rc2                                             |
+---------------------------+---------------+----------------------------------------------------+
| NPU   Name                | Health        | Power(W)    Temp(C)           Hugepages-Usage(page)|
| Chip                      | Bus-Id        | AICore(%)   Memory-Usage(MB)  HBM-Usage(MB)        |
+===========================+===============+====================================================+
| 0     910B3               | OK            | 93.6        40                0    / 0             |
| 0                         | 0000:C1:00.0  | 0           0    / 0          3161 / 65536         |
+===========================+===============+====================================================+
| 1     910B3               | Alarm         | 93.6        40                0    / 0             |
| 0                         | 0000:C2:00.0  | 0           0    / 0          3161 / 65536         |
+===========================+===============+====================================================+
| 2     310P3               | OK            | NA          40                0    / 0             |
| 0     5                   | 0000:01:00.0  | 0           1699 / 21534                           |
+===========================+===============+====================================================+
+---------------------------+---------------+----------------------------------------------------+
| NPU     Chip              | Process id    | Process name             | Process memory(MB)      |
+===========================+===============+====================================================+
| No running processes found in NPU 0                                                            |
+===========================+===============+====================================================+
"""


def test_the_query_of_nvidia_smi():
    text = """0, GPU-9a2b6f4c-0d1e-4f5a-8b9c-0123456789ab, 81559, 00000000:3B:00.0, NVIDIA A100-SXM4-80GB
1, GPU-aaaaaaaa-0d1e-4f5a-8b9c-0123456789ab, [N/A], 00000001:86:00.0, NVIDIA Foo, with a comma
"""

    cards, faults = nvidia_cards(text)

    first, second = cards
    assert faults == []
    assert first.id == "nvidia-9a2b6f4c-0d1e-4f5a-8b9c-0123456789ab"
    assert (first.index, first.model, first.memory_bytes, first.bus) == (
        0, "NVIDIA A100-SXM4-80GB", 81559 * 2**20, "0000:3b:00.0",
    )  # fmt: skip
    assert first.visible == first.uuid == "GPU-9a2b6f4c-0d1e-4f5a-8b9c-0123456789ab"
    assert (second.memory_bytes, second.model, second.bus) == (0, "NVIDIA Foo, with a comma", "0001:86:00.0")


def test_a_card_that_is_lost_is_a_fault_and_no_card():
    cards, faults = nvidia_cards("0, [GPU is lost], [GPU is lost], [GPU is lost], [GPU is lost]")

    assert cards == []
    assert len(faults) == 1 and "GPU is lost" in faults[0]


@pytest.mark.parametrize("text", ["No devices were found", "0, GPU-x", "\x00\x01"])
def test_other_text_of_nvidia_smi_is_refused(text):
    with pytest.raises(UnreadableReport):
        nvidia_cards(text)


def test_amd_smi_with_and_without_its_outer_object():
    rows = [
        {
            "gpu": 0,
            "asic": {"market_name": "AMD Instinct MI300X", "asic_serial": "0xABC0123456789DEF"},
            "bus": {"bdf": "0000:0c:00.0"},
            "vram": {"size": {"value": 196592, "unit": "MB"}},
        },
        {"gpu": 1, "asic": {}, "bus": {"bdf": "0000:22:00.0"}, "vram": None},
    ]

    for document in (rows, {"gpu_data": rows}):
        first, second = amd_cards(json.dumps(document))

        assert (first.id, first.visible) == ("amd-abc0123456789def", "GPU-abc0123456789def")
        assert (first.model, first.memory_bytes) == ("AMD Instinct MI300X", 196592 * 2**20)
        assert (second.id, second.visible) == ("amd-0000-22-00-0", "1")


def test_rocm_smi_after_a_warning():
    document = {
        "card1": {"Unique ID": "0x2", "Card Series": "MI250", "PCI Bus": "0000:0D:00.0"},
        "card0": {"Unique ID": "0x1", "Card series": "MI250", "VRAM Total Memory (B)": "68702699520"},
        "system": {"Driver version": "6.3"},
    }

    cards = rocm_cards("WARNING: AMD GPU device(s) is/are in a low-power state\n" + json.dumps(document))

    assert [(card.index, card.visible, card.bus, card.memory_bytes) for card in cards] == [
        (0, "GPU-0000000000000001", "", 68702699520),
        (1, "GPU-0000000000000002", "0000:0d:00.0", 0),
    ]


@pytest.mark.parametrize("text", ["", "no GPU", "{", "[1, 2]x", '{"gpu_data": 3}', "[" * 100_000])
def test_other_text_of_amds_tools_is_refused(text):
    with pytest.raises(UnreadableReport):
        amd_cards(text)


def test_the_table_of_npu_smi():
    cards, faults = ascend_cards(NPU_TABLE)

    assert [(card.id, card.resource, card.index, card.memory_bytes // 2**20) for card in cards] == [
        ("ascend-0000-c1-00-0", "huawei.com/Ascend910", 0, 65536),
        ("ascend-0000-01-00-0", "huawei.com/Ascend310P", 5, 21534),
    ]
    assert faults == ["the Ascend 910B3 at 0000:c2:00.0 is in state Alarm"]


def test_addresses_are_named_as_sys_names_them():
    assert pci_bus("00000000:3B:00.0") == "0000:3b:00.0"
    assert pci_bus("3b:00.0") == "0000:3b:00.0"
    assert pci_bus("somewhere") == ""
