"""Reads what the tools of vendors print about their cards. Pure; files of cards are added by detection."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from typing import Any, Final

from volcano.embedded.agent.devices.cards import AMD, ASCEND, NVIDIA, MachineCard

NVIDIA_QUERY: Final = ("--query-gpu=index,uuid,memory.total,pci.bus_id,name", "--format=csv,noheader,nounits")
AMD_QUERY: Final = ("static", "--asic", "--bus", "--vram", "--json")
ROCM_QUERY: Final = ("--showuniqueid", "--showproductname", "--showbus", "--showmeminfo", "vram", "--json")
MEBIBYTE: Final = 2**20
_MEMORY_UNITS: Final = {"B": 1, "KB": 2**10, "MB": 2**20, "GB": 2**30}
_GPU_UUID: Final = re.compile(r"GPU-[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}")
_BUS: Final = re.compile(r"(?:([0-9a-fA-F]{4,8}):)?([0-9a-fA-F]{2}:[0-9a-fA-F]{2}\.[0-7])")
_NPU_MODELS: Final = (
    ("910", "huawei.com/Ascend910"),
    ("310P", "huawei.com/Ascend310P"),
    ("310", "huawei.com/Ascend310"),
)
_NPU_FAULTS: Final = frozenset({"ALARM", "CRITICAL", "UNKNOWN"})


class UnreadableReport(ValueError):
    """A tool printed something else than it documents."""


def nvidia_cards(text: str) -> tuple[list[MachineCard], list[str]]:
    """From nvidia-smi's query: the usable cards, and a text for each that is not."""
    cards, faults = [], []
    for line in filter(None, map(str.strip, text.splitlines())):
        values = [value.strip() for value in line.split(",", 4)]
        if len(values) < 5:
            raise UnreadableReport(f"a card has five values, not {len(values)}: {line[:80]!r}")
        number, uuid, memory, bus, model = values
        if not number.isdecimal() or _GPU_UUID.fullmatch(uuid) is None:
            faults.append(f"an NVIDIA card that reports {line[:80]!r} is not usable")
            continue
        cards.append(
            MachineCard(
                id=f"nvidia-{uuid.removeprefix('GPU-').lower()}",
                vendor=NVIDIA.name,
                resource=NVIDIA.resources[0],
                index=int(number),
                visible=uuid,
                uuid=uuid,
                model=model,
                memory_bytes=int(memory) * MEBIBYTE if memory.isdecimal() else 0,
                bus=pci_bus(bus),
            )
        )
    return cards, faults


def amd_cards(text: str) -> list[MachineCard]:
    """From amd-smi's static information."""
    document = _json(text)
    rows = document.get("gpu_data") if isinstance(document, dict) else document
    if not isinstance(rows, list):
        raise UnreadableReport("no list of GPUs")
    cards = []
    for row in rows:
        part = {name: _object(row, name) for name in ("asic", "bus", "vram")}
        size = part["vram"].get("size")
        memory = size if isinstance(size, dict) else {}
        cards.append(
            _amd_card(
                index=_number(_object({"row": row}, "row").get("gpu")),
                unique=str(part["asic"].get("asic_serial", "")),
                model=str(part["asic"].get("market_name", "")),
                bus=str(part["bus"].get("bdf", "")),
                memory=_number(memory.get("value")) * _MEMORY_UNITS.get(str(memory.get("unit", "MB")).upper(), 1),
            )
        )
    return cards


def rocm_cards(text: str) -> list[MachineCard]:
    """From rocm-smi, the older tool of AMD."""
    document = _json(text)
    if not isinstance(document, dict):
        raise UnreadableReport("no object of cards")
    cards = []
    for name, row in document.items():
        number = re.fullmatch(r"card(\d+)", name)
        if number is None or not isinstance(row, dict):
            continue
        known = {key.lower(): str(value) for key, value in row.items()}
        cards.append(
            _amd_card(
                index=int(number[1]),
                unique=known.get("unique id", ""),
                model=known.get("card series") or known.get("card model", ""),
                bus=known.get("pci bus", ""),
                memory=_number(known.get("vram total memory (b)")),
            )
        )
    return sorted(cards, key=lambda card: card.index)


def _amd_card(*, index: int, unique: str, model: str, bus: str, memory: int) -> MachineCard:
    serial = unique.lower().removeprefix("0x")
    known = re.fullmatch(r"[0-9a-f]{1,16}", serial) is not None and int(serial, 16) > 0
    uuid = f"GPU-{serial.zfill(16)}" if known else ""
    return MachineCard(
        id=f"amd-{serial.zfill(16)}" if known else _by_place(AMD.name, pci_bus(bus), index),
        vendor=AMD.name,
        resource=AMD.resources[0],
        index=index,
        visible=uuid or str(index),
        uuid=uuid,
        model=model,
        memory_bytes=memory,
        bus=pci_bus(bus),
    )


def ascend_cards(text: str) -> tuple[list[MachineCard], list[str]]:
    """From the table of `npu-smi info`: two rows for each chip, the second with its address and its memory."""
    cards: list[MachineCard] = []
    faults: list[str] = []
    for first, second in _chips(text.splitlines()):
        index = len(cards) + len(faults)
        device = second[0].split()
        if len(device) > 1 and device[1].isdecimal():
            index = int(device[1])  # cards with several chips: chip and device
        model, bus = first[0].split()[1], pci_bus(second[1])
        resource = next((name for prefix, name in _NPU_MODELS if model.upper().startswith(prefix)), "")
        if not resource or first[1].strip().upper() in _NPU_FAULTS:
            state = f"is in state {first[1].strip()}" if resource else "is of an unknown model"
            faults.append(f"the Ascend {model} at {bus} {state}")
            continue
        sizes = [int(size) for size in re.findall(r"\d+\s*/\s*(\d+)", "|".join(second[2:]))]
        cards.append(
            MachineCard(
                id=_by_place(ASCEND.name, bus, index),
                vendor=ASCEND.name,
                resource=resource,
                index=index,
                visible=str(index),
                model=f"Ascend {model}",
                memory_bytes=max(sizes, default=0) * MEBIBYTE,
                bus=bus,
            )
        )
    return cards, faults


def _chips(lines: Iterable[str]) -> list[tuple[list[str], list[str]]]:
    found: list[tuple[list[str], list[str]]] = []
    first: list[str] | None = None
    for line in lines:
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if len(cells) < 3:
            first = None
        elif first is None and re.fullmatch(r"\d+\s+\S+", cells[0]) and not _BUS.fullmatch(cells[1]):
            first = cells
        elif first is not None and _BUS.fullmatch(cells[1]):
            found.append((first, cells))
            first = None
    return found


def pci_bus(text: str) -> str:
    """An address as /sys names it; empty where it is not one."""
    match = _BUS.fullmatch(text.strip())
    return f"{(match[1] or '0000')[-4:]}:{match[2]}".lower() if match is not None else ""


def _by_place(vendor: str, bus: str, index: int) -> str:
    return f"{vendor}-{re.sub(r'[^0-9a-f]', '-', bus)}" if bus else f"{vendor}-{index}"


def _json(text: str) -> Any:
    """Tools may print warnings before the document."""
    starts = [place for place in (text.find("{"), text.find("[")) if place >= 0]
    try:
        return json.loads(text[min(starts) :]) if starts else json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableReport(f"no JSON: {error}") from error


def _object(row: Any, name: str) -> dict[str, Any]:
    value = row.get(name) if isinstance(row, dict) else None
    if value is not None and not isinstance(value, dict):
        raise UnreadableReport(f"{name} is not an object")
    return value or {}


def _number(value: Any) -> int:
    try:
        return max(0, int(value))
    except (TypeError, ValueError, OverflowError):
        return 0
