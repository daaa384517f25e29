"""GpuShare: whole GPUs by number, or their memory in parts, as the older volcano device plugin registers them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Final

import numpy as np

from volcano.api.core import Container
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.core.cards import Card, Portion
from volcano.scheduler.model import Node, Task
from volcano.scheduler.plugins.deviceshare.family import CardPart, Family

MEMORY, NUMBER = "volcano.sh/gpu-memory", "volcano.sh/gpu-number"
INDEX: Final = "volcano.sh/gpu-index"
PREDICATE_TIME: Final = "volcano.sh/predicate-time"
UNHEALTHY: Final = "volcano.sh/gpu-unhealthy-ids"


class GpuShare(Family):
    name = "GpuShare"
    resource_names = (MEMORY, NUMBER)

    def __init__(self, *, by_number: bool) -> None:
        super().__init__()
        self._by_number = by_number
        self.shared = not by_number
        self.refusal = "GpuNumber no enough gpu number" if by_number else "GpuShare no enough gpu memory"

    def portions_of(self, task: Task) -> tuple[Portion, ...]:
        asked = self._demand(task)
        if not asked:
            return ()
        return (Portion(asked, alone=True),) if self._by_number else (Portion(1, float(asked)),)

    def _demand(self, task: Task) -> int:
        spec, name = task.pod.spec, NUMBER if self._by_number else MEMORY
        return max(_limit(spec.containers, name), *(_limit([c], name) for c in spec.init_containers), 0)

    def cards_on(self, node: Node) -> tuple[Card, ...]:
        memory, number = node.capacity[MEMORY] / 1000, int(node.capacity[NUMBER] / 1000)
        if memory <= 0 or number <= 0:
            return ()
        broken = {part.strip() for part in node.annotations.get(UNHEALTHY, "").split(",")}
        return tuple(Card(str(id), float(memory // number), np.inf) for id in range(number) if str(id) not in broken)

    def held_by(self, task: Task) -> list[CardPart]:
        text = task.pod.annotations.get(INDEX) or task.bind_annotations.get(INDEX, "")
        memory = 0.0 if self._by_number else float(self._demand(task))
        return [CardPart(part.strip(), memory, 0.0) for part in text.split(",") if part.strip()]

    def annotations_for(self, task: Task, taken: list[list[CardPart]], now: datetime) -> dict[str, str]:
        cards = sorted((held.card for container in taken for held in container), key=int)
        return {PREDICATE_TIME: str(int(now.timestamp() * 1e9)), INDEX: ",".join(cards)}


def _limit(containers: Iterable[Container], name: str) -> int:
    found = 0
    for container in containers:
        try:
            found += parse_quantity((container.resources.limits or {}).get(name, 0)).value
        except QuantityError:
            continue
    return found
