"""Assignments: the annotations that name a pod's cards, written when it is bound and read again after a restart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import lru_cache
from typing import Final

import msgspec

from volcano.api.device_families import AssignmentForm, DeviceFamily
from volcano.scheduler.core.card_slices import WHOLE_CHIP

MAX_ASSIGNMENT_CHARACTERS: Final = 256 * 1024
MAX_NUMBER_DIGITS: Final = 15


@dataclass(slots=True, frozen=True)
class CardPart:
    """A part of a card that a pod has; `slice`: which one, of a card that is cut."""

    card: str
    memory: float
    cores: float
    type: str = ""
    slice: str = ""


def encoded(family: DeviceFamily, containers: Sequence[Sequence[CardPart]]) -> str:
    if family.assignment is AssignmentForm.INDEXES:
        return ",".join(sorted((part.card for parts in containers for part in parts), key=int))
    if family.assignment is AssignmentForm.CHIPS:
        return ",".join(_chip(part) for parts in containers for part in parts)
    each = [
        "".join(f"{_sliced(part)},{part.type},{part.memory:.0f},{part.cores:.0f}:" for part in parts)
        for parts in containers
    ]
    return "".join(f"{text};" for text in each) if family.assignment is AssignmentForm.HAMI else ";".join(each)


def _chip(part: CardPart) -> str:
    template = part.slice.partition("#")[0]
    return f"{part.card}-{template}" if template and template != WHOLE_CHIP else part.card


def _sliced(part: CardPart) -> str:
    return f"{part.card}[{part.slice}]" if part.slice else part.card


def annotations_for(
    family: DeviceFamily, node: str, containers: Sequence[Sequence[CardPart]], now: datetime
) -> dict[str, str]:
    text, seconds = encoded(family, containers), str(int(now.timestamp()))
    told = {
        family.node_key: node,
        family.time_key: seconds,
        family.assigned: text,
        **dict.fromkeys(family.copies, text),
        family.phase_key: "allocating",
        family.bind_time_key: seconds,
        family.predicate_time_key: str(int(now.timestamp() * 1e9)),
    }
    if family.details_key:
        told[family.details_key] = _details(family, containers)
    told.pop("", None)
    return told


def _details(family: DeviceFamily, containers: Sequence[Sequence[CardPart]]) -> str:
    """For the runtime of Ascend cards: the template, or how much memory and how many cores a share has."""
    sizes = {template.memory: template.name for template in family.templates}
    found: list[dict[str, str | int]] = []
    for part in (part for parts in containers for part in parts):
        if part.memory in sizes:
            found.append({"UUID": part.card, "temp": sizes[part.memory]})
        else:
            found.append({"UUID": part.card, "memory": int(part.memory), "core": int(part.cores)})
    return msgspec.json.encode(found).decode()


def decoded(family: DeviceFamily, text: str) -> tuple[CardPart, ...]:
    """Which cards a pod was given, and how much of each; what cannot be read is left out."""
    if len(text) > MAX_ASSIGNMENT_CHARACTERS:
        return ()
    return READERS[family.assignment](text)


@lru_cache(maxsize=65536)
def _listed(text: str) -> tuple[CardPart, ...]:
    found = []
    for entry in text.replace(";", ":").split(":"):
        fields = entry.split(",")
        if len(fields) >= 4 and _is_number(fields[2]) and _is_number(fields[3]):
            card, _, cut = fields[0].partition("[")
            found.append(CardPart(card, float(fields[2]), float(fields[3]), fields[1], cut.removesuffix("]")))
    return tuple(found)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_NUMBER_DIGITS


@lru_cache(maxsize=65536)
def _indexes(text: str) -> tuple[CardPart, ...]:
    return tuple(CardPart(part.strip(), 0.0, 0.0) for part in text.split(",") if part.strip())


@lru_cache(maxsize=65536)
def _chips(text: str) -> tuple[CardPart, ...]:
    """`0,1`, `Ascend910-0,Ascend910-1` or `0-vir04`."""
    found = []
    for part in (part.strip() for part in text.split(",")):
        number, _, template = part.partition("-")
        if number.isascii() and number.isdigit():
            found.append(CardPart(number, 0.0, 0.0, slice=template or WHOLE_CHIP))
        elif part:
            found.append(CardPart(part, 0.0, 0.0))
    return tuple(found)


READERS: Final = {
    AssignmentForm.VOLCANO: _listed,
    AssignmentForm.HAMI: _listed,
    AssignmentForm.INDEXES: _indexes,
    AssignmentForm.CHIPS: _chips,
}
