"""What makes a container see its cards, by vendor."""

from __future__ import annotations

import pytest

from volcano.embedded.agent.devices.cards import MachineCard, restricted, variables_of


def cards(vendor: str, *visible: str) -> list[MachineCard]:
    return [MachineCard(f"{vendor}-{name}", vendor, "r", place, name) for place, name in enumerate(visible)]


@pytest.mark.parametrize(
    ("vendor", "visible", "variables"),
    [
        (
            "nvidia",
            ("GPU-a", "GPU-b"),
            {"CUDA_VISIBLE_DEVICES": "GPU-a,GPU-b", "NVIDIA_VISIBLE_DEVICES": "GPU-a,GPU-b"},
        ),
        ("nvidia", (), {"CUDA_VISIBLE_DEVICES": "", "NVIDIA_VISIBLE_DEVICES": "void"}),
        ("amd", ("GPU-a", "GPU-b"), {"ROCR_VISIBLE_DEVICES": "GPU-a,GPU-b", "HIP_VISIBLE_DEVICES": "0,1"}),
        ("amd", (), {"ROCR_VISIBLE_DEVICES": "", "HIP_VISIBLE_DEVICES": "-1"}),
        ("ascend", ("1", "3"), {"ASCEND_RT_VISIBLE_DEVICES": "1,3", "ASCEND_VISIBLE_DEVICES": "1,3"}),
        ("ascend", (), {"ASCEND_RT_VISIBLE_DEVICES": "-1", "ASCEND_VISIBLE_DEVICES": "void"}),
    ],
)
def test_a_container_sees_its_cards_or_none(vendor, visible, variables):
    assert variables_of(vendor, cards(vendor, *visible)) == variables


@pytest.mark.parametrize(
    ("stated", "left"),
    [(None, 2), ("0", 1), ("gpu-b", 1), ("GPU-a,GPU-b", 2), ("-1", 0), ("", 0), ("7", 0), ("NoDevFiles", 0)],
)
def test_the_environment_of_the_agent_limits_its_cards(stated, left):
    environment = {} if stated is None else {"CUDA_VISIBLE_DEVICES": stated}

    assert len(restricted(cards("nvidia", "GPU-a", "GPU-b"), environment)) == left
