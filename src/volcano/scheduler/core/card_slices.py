"""Slices: cards that are cut into parts of fixed sizes (MIG instances, templates of NPU chips).

The state of such a card is the set of its slices in use. States are numbered, so that many cards are answered at once:
what a request becomes on a card follows from the number of its state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Protocol, TypeAlias

import numpy as np

from volcano.api.device_families import MigGeometry
from volcano.scheduler.core.node_table import Column, Rows

InUse: TypeAlias = "frozenset[str]"
UNCUT: Final = -1
"""The state of a card that is not cut."""
UNSLICED: Final = "?"
"""What a pod has of a card that was not cut when it came: as long as it is there, no slice is given."""


@dataclass(slots=True, frozen=True)
class Slice:
    """A part of a card that a request would get; `memory` is what it takes of the card."""

    label: str
    memory: float


class Slicing(Protocol):
    """How cards of one kind are cut. Equal ones are one."""

    def cut(self, used: InUse, memory: float, template: str) -> Slice | None:
        """The smallest free slice for so much memory (or of this template)."""
        ...

    def label(self, used: InUse, told: str) -> str:
        """The slice that a pod says it has, under a label of its own."""
        ...


@dataclass(slots=True, frozen=True)
class MigSlicing:
    """Cards in MIG mode: cut by one group of instances at a time; while nothing is used, the group may change."""

    geometry: MigGeometry
    factor: int = 1

    def cut(self, used: InUse, memory: float, template: str) -> Slice | None:
        need, active = memory * self.factor, {label.rpartition("-")[0] for label in used}
        for group in self.geometry.groups:
            if active and active != {group.name}:
                continue
            first = 0
            found: tuple[float, str] | None = None
            for instance in group.instances:
                free = next(
                    (slot for slot in range(instance.count) if f"{group.name}-{first + slot}" not in used), None
                )
                if free is not None and instance.memory >= need and (found is None or instance.memory < found[0]):
                    found = instance.memory, f"{group.name}-{first + free}"
                first += instance.count
            if found is not None:
                return Slice(found[1], found[0] / self.factor)
        return None

    def label(self, used: InUse, told: str) -> str:
        return _numbered(used, told) if told == UNSLICED else told


@dataclass(slots=True, frozen=True)
class ChipTemplate:
    """What a template takes of an NPU chip; `dvpp`: yes, no, or null when it does not matter."""

    cores: int
    cpus: int
    dvpp: str = "null"


CHIP_TEMPLATES: Final = {
    "vir01": ChipTemplate(1, 1),
    "vir02": ChipTemplate(2, 2),
    "vir02_1c": ChipTemplate(2, 1),
    "vir04": ChipTemplate(4, 4),
    "vir04_3c": ChipTemplate(4, 3),
    "vir04_3c_ndvpp": ChipTemplate(4, 3, "no"),
    "vir04_4c_dvpp": ChipTemplate(4, 4, "yes"),
}
WHOLE_CHIP: Final = "whole"
CPUS_OF_A_CHIP: Final = 7
MOST_CORES_BY_SEGMENTS: Final = {3: 3, 4: 1}
"""Of a 310P chip that has so many segments already: the most cores that one more may have."""


@dataclass(slots=True, frozen=True)
class ChipSlicing:
    """Ascend 310P chips: segments by templates, limited by cores, cpus, the decoder (DVPP) and their number."""

    cores: int

    def cut(self, used: InUse, memory: float, template: str) -> Slice | None:
        if not template:
            return None if used else Slice(WHOLE_CHIP, float(self.cores))
        asked = CHIP_TEMPLATES[template]
        if WHOLE_CHIP in used:
            return None
        held = [CHIP_TEMPLATES[name] for label in used if (name := label.partition("#")[0]) in CHIP_TEMPLATES]
        if len(held) < len(used):
            return None  # a template that is not known
        if sum(each.cores for each in held) + asked.cores > self.cores:
            return None
        if sum(each.cpus for each in held) + asked.cpus > CPUS_OF_A_CHIP:
            return None
        if asked.cores > MOST_CORES_BY_SEGMENTS.get(len(held), self.cores if len(held) < 3 else 0):
            return None
        decoders = {each.dvpp for each in held}
        if "yes" in decoders and asked.dvpp != "no":
            return None
        if asked.dvpp == "yes" and "null" in decoders:
            return None
        return Slice(self.label(used, template), float(asked.cores))

    def label(self, used: InUse, told: str) -> str:
        return told if told == WHOLE_CHIP else _numbered(used, told)


def _numbered(used: InUse, told: str) -> str:
    return next(label for number in range(len(used) + 1) if (label := f"{told}#{number}") not in used)


class SliceStates:
    """The states of all cards, as numbers; −1 for cards that are not cut."""

    def __init__(self, slicings: Sequence[Slicing | None]) -> None:
        self._kinds: dict[Slicing, int] = {}
        self._slicings: list[Slicing] = []
        self._numbers: dict[tuple[int, InUse], int] = {}
        self._states: list[tuple[int, InUse]] = []
        self._cuts: dict[tuple[int, float, str], Slice | None] = {}
        self.now: Rows = np.array([self._begin(slicing) for slicing in slicings], dtype=np.intp)

    def _begin(self, slicing: Slicing | None) -> int:
        if slicing is None:
            return UNCUT
        kind = self._kinds.get(slicing)
        if kind is None:
            kind = self._kinds[slicing] = len(self._slicings)
            self._slicings.append(slicing)
        return self._number(kind, frozenset())

    def _number(self, kind: int, used: InUse) -> int:
        number = self._numbers.get((kind, used))
        if number is None:
            number = self._numbers[kind, used] = len(self._states)
            self._states.append((kind, used))
        return number

    def cut(self, state: int, memory: float, template: str) -> Slice | None:
        key = (state, memory, template)
        if key not in self._cuts:
            kind, used = self._states[state]
            self._cuts[key] = self._slicings[kind].cut(used, memory, template)
        return self._cuts[key]

    def fitting(self, states: Rows, memory: Column, template: str) -> tuple[Column, Rows]:
        """What the slice would take of each card, and the card's state with it.

        Of uncut cards it takes what is asked; where no slice is free, more than there is.
        """
        taken, after = memory.copy(), states.copy()
        cut = np.flatnonzero(states != UNCUT)
        if len(cut):
            pairs, same = np.unique(states[cut] + 1j * memory[cut], return_inverse=True)  # one answer for equal cards
            found = [self.cut(int(pair.real), float(pair.imag), template) for pair in pairs]
            sizes = np.array([np.inf if each is None else each.memory for each in found])
            states_after = [
                int(pair.real) if each is None else self.after(int(pair.real), each.label)
                for pair, each in zip(pairs, found, strict=True)
            ]
            taken[cut], after[cut] = sizes[same], np.array(states_after, dtype=np.intp)[same]
        return taken, after

    def after(self, state: int, label: str) -> int:
        kind, used = self._states[state]
        return self._number(kind, used | {label})

    def without(self, state: int, label: str) -> int:
        kind, used = self._states[state]
        return self._number(kind, used - {label})

    def label(self, state: int, told: str) -> str:
        kind, used = self._states[state]
        return self._slicings[kind].label(used, told)

    def in_use(self, card: int) -> InUse:
        state = int(self.now[card])
        return self._states[state][1] if state != UNCUT else frozenset()
