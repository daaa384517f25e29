"""Finds the accelerators of this machine by the tools of their vendors, and their files below /dev and /sys."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Final, TypeVar

import msgspec

from volcano.embedded.agent.devices.cards import MAX_CARDS, MachineCard, restricted
from volcano.embedded.agent.devices.vendor_reports import (
    AMD_QUERY,
    NVIDIA_QUERY,
    ROCM_QUERY,
    UnreadableReport,
    amd_cards,
    ascend_cards,
    nvidia_cards,
    pci_bus,
    rocm_cards,
)
from volcano.embedded.agent.devices.vendor_tools import ToolFailed, ask, ask_nvml, has_nvml, has_tool
from volcano.embedded.agent.processes.device_files import is_card_file

DRIVER_FILES: Final = Path("/proc/driver/nvidia/gpus")
"""What NVIDIA's kernel module says of its cards, readable without its tools."""
PCI_DEVICES: Final = Path("/sys/bus/pci/devices")
DEVICE_FILES: Final = Path("/dev")
_FIELD: Final = re.compile(r"([A-Za-z ]+):\s*(.*)")
T = TypeVar("T")


class FoundCards(msgspec.Struct, frozen=True):
    """What one look at the machine found."""

    cards: tuple[MachineCard, ...] = ()
    vendors: frozenset[str] = frozenset()
    """Whose cards were looked for with an answer, even if there are none."""
    unknown: frozenset[str] = frozenset()
    """Whose tool failed: whether their cards are there is not known."""
    warnings: tuple[str, ...] = ()


def find_cards() -> FoundCards:
    """Never fails: a tool that does not work is a warning."""
    cards: list[MachineCard] = []
    answered, failed, warnings = set(), set(), []
    for vendor, find in (("nvidia", _nvidia), ("amd", _amd), ("ascend", _ascend)):
        try:
            found = find()
        except (ToolFailed, UnreadableReport, OSError) as error:
            failed.add(vendor)
            warnings.append(f"{vendor} accelerators are not used: {error}")
            continue
        if found is not None:
            answered.add(vendor)
            cards += found[0]
            warnings += found[1]
    usable = restricted(_distinct(cards), os.environ)
    if len(usable) > MAX_CARDS:
        warnings.append(f"of {len(usable)} accelerators {MAX_CARDS} are used")
    return FoundCards(usable[:MAX_CARDS], frozenset(answered), frozenset(failed), tuple(warnings))


def card_files(devices: Path = DEVICE_FILES) -> tuple[str, ...]:
    """The paths below /dev that belong to single cards."""
    found = []
    for folder in (devices, devices / "dri"):
        try:
            names = [each.relative_to(devices).as_posix() for each in folder.iterdir() if not each.is_dir()]
        except OSError:
            continue
        found += [name for name in names if is_card_file(name)]
    return tuple(sorted(found))


def _nvidia() -> tuple[list[MachineCard], list[str]] | None:
    if has_tool("nvidia-smi"):
        cards, faults = _read("nvidia-smi", ask("nvidia-smi", *NVIDIA_QUERY), nvidia_cards)
    elif has_nvml():
        cards, faults = _read("NVML", ask_nvml(), nvidia_cards)
    elif DRIVER_FILES.is_dir():
        cards, faults = nvidia_cards(_driver_report(DRIVER_FILES))
    else:
        return None
    return [_with_files(card, (f"nvidia{_minor(card)}", *_render_files(card))) for card in cards], faults


def _amd() -> tuple[list[MachineCard], list[str]] | None:
    if has_tool("amd-smi"):
        cards = _read("amd-smi", ask("amd-smi", *AMD_QUERY), amd_cards)
    elif has_tool("rocm-smi"):
        cards = _read("rocm-smi", ask("rocm-smi", *ROCM_QUERY), rocm_cards)
    else:
        return None
    return [_with_files(card, _render_files(card)) for card in cards], []


def _ascend() -> tuple[list[MachineCard], list[str]] | None:
    if not has_tool("npu-smi"):
        return None
    cards, faults = _read("npu-smi", ask("npu-smi", "info"), ascend_cards)
    return [_with_files(card, (f"davinci{card.index}",)) for card in cards], faults


def _read(tool: str, text: str, reader: Callable[[str], T]) -> T:
    try:
        return reader(text)
    except UnreadableReport as error:
        raise ToolFailed(f"{tool} printed what cannot be read: {error}") from error


def _distinct(cards: list[MachineCard]) -> list[MachineCard]:
    return list({card.id: card for card in cards}.values())


def _with_files(card: MachineCard, files: tuple[str, ...]) -> MachineCard:
    existing = tuple(name for name in files if (DEVICE_FILES / name).exists())
    return msgspec.structs.replace(card, files=existing, numa=_numa(card))


def _numa(card: MachineCard) -> int:
    try:
        return int((PCI_DEVICES / card.bus / "numa_node").read_text()) if card.bus else -1
    except (OSError, ValueError):
        return -1


def _render_files(card: MachineCard) -> tuple[str, ...]:
    try:
        names = sorted(each.name for each in (PCI_DEVICES / card.bus / "drm").iterdir()) if card.bus else []
    except OSError:
        return ()
    return tuple(f"dri/{name}" for name in names if is_card_file(f"dri/{name}"))


def _minor(card: MachineCard) -> int:
    """The number in the name of the card's file, which need not be its index."""
    for folder in _driver_folders(DRIVER_FILES):
        fields = _driver_fields(folder)
        if (
            card.bus
            and pci_bus(fields.get("Bus Location", "")) == card.bus
            and fields.get("Device Minor", "").isdecimal()
        ):
            return int(fields["Device Minor"])
    return card.index


def _driver_report(root: Path) -> str:
    """The kernel module's files in the form of nvidia-smi's query; they do not say how much memory a card has."""
    rows = [_driver_fields(folder) for folder in _driver_folders(root)]
    return "\n".join(
        f"{index}, {row.get('GPU UUID', '')}, , {row.get('Bus Location', '')}, {row.get('Model', '')}"
        for index, row in enumerate(rows)
    )


def _driver_folders(root: Path) -> list[Path]:
    try:
        return sorted(root.iterdir())[:MAX_CARDS]
    except OSError:
        return []


def _driver_fields(folder: Path) -> dict[str, str]:
    try:
        lines = (folder / "information").read_text(errors="replace").splitlines()
    except OSError:
        return {}
    matches = (_FIELD.match(line) for line in lines)
    return {match[1].strip(): match[2].strip() for match in matches if match is not None}
