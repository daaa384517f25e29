"""Accelerators and their vendors as data: names of resources and classes, variables and device files. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

import msgspec

DRIVER: Final = "devices.volcano.sh"
"""The driver of the ResourceSlices that an agent publishes. Drivers of the vendors have names of their own."""
MAX_CARDS: Final = 128
"""Devices in one ResourceSlice, as Kubernetes limits them."""


class Vendor(msgspec.Struct, frozen=True):
    """What the cards of one vendor have in common."""

    name: str
    device_class: str
    card_files: str  # a pattern of paths below /dev that belong to its cards alone; empty where others have such too
    restriction: str  # the variable by which the agent's own environment limits which cards it has
    resources: tuple[str, ...]


class MachineCard(msgspec.Struct, frozen=True):
    """One accelerator. `id` stays the same when others come and go, and is a name of a device in a ResourceSlice."""

    id: str
    vendor: str
    resource: str
    index: int
    visible: str
    """As the vendor's variables name it: the UUID where they accept one, since indices depend on what is visible."""
    uuid: str = ""
    model: str = ""
    memory_bytes: int = 0
    bus: str = ""
    numa: int = -1
    files: tuple[str, ...] = ()
    """Paths below /dev that belong to this card alone."""


NVIDIA: Final = Vendor("nvidia", "nvidia-gpu.volcano.sh", r"nvidia\d+", "CUDA_VISIBLE_DEVICES", ("nvidia.com/gpu",))
AMD: Final = Vendor("amd", "amd-gpu.volcano.sh", "", "ROCR_VISIBLE_DEVICES", ("amd.com/gpu",))
ASCEND: Final = Vendor(
    "ascend",
    "ascend-npu.volcano.sh",
    r"davinci\d+",
    "ASCEND_RT_VISIBLE_DEVICES",
    ("huawei.com/Ascend910", "huawei.com/Ascend310P", "huawei.com/Ascend310"),
)
VENDORS: Final[Mapping[str, Vendor]] = {vendor.name: vendor for vendor in (NVIDIA, AMD, ASCEND)}
ACCELERATOR_RESOURCES: Final = frozenset(name for vendor in VENDORS.values() for name in vendor.resources)


def variables_of(vendor: str, cards: Sequence[MachineCard]) -> dict[str, str]:
    """What makes a container see these cards of a vendor and no others; without cards it sees none."""
    listed = ",".join(card.visible for card in cards)
    match vendor:
        case "nvidia":  # "void": the container runtime of NVIDIA adds nothing either
            return {"CUDA_VISIBLE_DEVICES": listed, "NVIDIA_VISIBLE_DEVICES": listed or "void"}
        case "amd":  # HIP counts within what ROCR shows; an empty value would mean all to it
            within = ",".join(str(place) for place in range(len(cards)))
            return {"ROCR_VISIBLE_DEVICES": listed, "HIP_VISIBLE_DEVICES": within or "-1"}
        case "ascend":  # in ascending order; a list ends at the first number that does not exist
            return {"ASCEND_RT_VISIBLE_DEVICES": listed or "-1", "ASCEND_VISIBLE_DEVICES": listed or "void"}
        case _:
            return {}


def restricted(cards: Sequence[MachineCard], environment: Mapping[str, str]) -> tuple[MachineCard, ...]:
    """The cards that the agent's own environment leaves to it, as a batch system that started it may limit them."""
    kept = []
    for card in cards:
        stated = environment.get(VENDORS[card.vendor].restriction)
        names = None if stated is None else [each.strip() for each in stated.split(",")]
        if names is None or any(_names(name, card) for name in names):
            kept.append(card)
    return tuple(kept)


def _names(name: str, card: MachineCard) -> bool:
    if name.isdecimal():
        return int(name) == card.index
    return bool(name) and not name.startswith("-") and card.visible.lower().startswith(name.lower())
