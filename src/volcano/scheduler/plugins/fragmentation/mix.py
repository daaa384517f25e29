"""Mix: which shapes of pods are typical here. What waits, runs and has just ended counts, each shape by its pods."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final

import msgspec
import numpy as np

from volcano.scheduler.core.cards import CardAccount, Portion
from volcano.scheduler.core.node_affinity import demanded, demands_labels
from volcano.scheduler.core.node_table import Mask, NodeTable
from volcano.scheduler.core.taints import repelled
from volcano.scheduler.model import Job, Resources, Task

MAX_TYPICAL_SHAPES: Final = 160
MAX_SELECTORS: Final = 32
"""Different demands of nodes' labels and taints that are told apart; those of rarer shapes count as none."""


@dataclass(slots=True, eq=False)
class TypicalShape:
    request: Resources
    portions: tuple[tuple[Portion, ...], ...]  # of the cards of each account
    task: Task  # any one of them
    selector: Hashable
    weight: float


def typical_shapes(jobs: Iterable[Job], accounts: Iterable[CardAccount]) -> list[TypicalShape]:
    """The most frequent ones. Shapes that ask the same of a node are one, whatever their namespace or image."""
    known = list(accounts)
    counted: dict[int, tuple[int, Task]] = {}
    for job in jobs:
        for task in job.tasks.values():
            number = task.shape.number
            seen = counted.get(number)
            counted[number] = (1, task) if seen is None else (seen[0] + 1, seen[1])
    found: dict[Hashable, TypicalShape] = {}
    for count, task in counted.values():
        portions = tuple(account.portions(task) for account in known)
        selector = _selector(task)
        key = (tuple(sorted(task.request.amounts.items())), portions, selector)
        shape = found.get(key)
        if shape is None:
            found[key] = TypicalShape(task.request, portions, task, selector, float(count))
        else:
            shape.weight += count
    ranked = sorted(found.items(), key=lambda item: (-item[1].weight, repr(item[0])))
    return [shape for _, shape in ranked[:MAX_TYPICAL_SHAPES]]


def _selector(task: Task) -> Hashable:
    spec = task.pod.spec
    required = spec.affinity.node_affinity if spec.affinity is not None else None
    return msgspec.json.encode((spec.node_selector, required, spec.tolerations))


def admitted(table: NodeTable, shapes: list[TypicalShape]) -> tuple[list[int], list[Mask]]:
    """For each shape the place of its mask, and the masks: nodes whose labels and taints admit such a pod."""
    masks: list[Mask] = [np.ones(len(table), dtype=bool)]
    places: dict[Hashable, int] = {}
    chosen: list[int] = []
    for shape in shapes:
        place = places.get(shape.selector)
        if place is None:
            place = places[shape.selector] = _place(table, shape, masks)
        chosen.append(place)
    return chosen, masks


def _place(table: NodeTable, shape: TypicalShape, masks: list[Mask]) -> int:
    pod = shape.task.pod
    mask = ~repelled(table, pod.spec.tolerations)
    if demands_labels(pod):
        mask &= demanded(table, pod)
    for place, known in enumerate(masks):
        if np.array_equal(known, mask):
            return place
    if len(masks) > MAX_SELECTORS:
        return 0
    masks.append(mask)
    return len(masks) - 1
