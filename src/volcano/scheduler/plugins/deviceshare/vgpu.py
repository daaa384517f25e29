"""vGPU: NVIDIA cards shared by memory and cores, as the volcano-vgpu device plugin registers them."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import datetime
from functools import lru_cache
from typing import Final

import numpy as np

from volcano.api.core import Container
from volcano.api.quantity import QuantityError, parse_quantity
from volcano.scheduler.core.cards import UNSTATED, Card, Portion
from volcano.scheduler.core.node_table import Mask
from volcano.scheduler.framework.session import Session
from volcano.scheduler.model import EPSILON, Node, Task
from volcano.scheduler.plugins.deviceshare.family import CardPart, Family

COUNT, MEMORY, CORES = "volcano.sh/vgpu-number", "volcano.sh/vgpu-memory", "volcano.sh/vgpu-cores"
REGISTER: Final = "volcano.sh/node-vgpu-register"
IDS: Final = "volcano.sh/vgpu-ids-new"
MODE: Final = "volcano.sh/vgpu-mode"
USE_ID, AVOID_ID = "volcano.sh/vgpu-use-gpuuuid", "volcano.sh/vgpu-nouse-gpuuuid"
USE_TYPE, AVOID_TYPE = "nvidia.com/use-gputype", "nvidia.com/nouse-gputype"
FILTERS: Final = (MODE, USE_ID, AVOID_ID, USE_TYPE, AVOID_TYPE)
GROUP_POLICY: Final = "volcano.sh/vgpu-podgroup-policy"
HAMI_CORE: Final = "hami-core"


class VirtualGpus(Family):
    name = "hamivgpu"
    resource_names = (COUNT, MEMORY, CORES)
    refusal = "hami-vgpuDeviceSharing error"
    ascending = False

    def open(self, session: Session) -> None:
        self._allowed: dict[tuple[str, ...], Mask] = {}
        super().open(session)

    # -- pods ------------------------------------------------------------------------------------------------------
    def portions_of(self, task: Task) -> tuple[Portion, ...]:
        portions = tuple(_portion(container) for container in task.pod.spec.containers)
        return portions if any(portion.count for portion in portions) else ()

    def key(self, task: Task) -> Hashable:
        annotations = task.pod.annotations
        group = self._group_of(task) if self.keeps_apart(task) else ""
        return (*(annotations.get(name, "") for name in FILTERS), group, self._rules_of(task))

    def keeps_apart(self, task: Task) -> bool:
        return task.pod.annotations.get(GROUP_POLICY) == "spread"

    def allows(self, task: Task) -> Mask:
        stated = tuple(task.pod.annotations.get(name, "") for name in FILTERS)
        if stated not in self._allowed:
            self._allowed[stated] = self._passing(*stated)
        return self._allowed[stated]

    def _passing(self, mode: str, use_id: str, avoid_id: str, use_type: str, avoid_type: str) -> Mask:
        use, avoid = _listed(use_id), _listed(avoid_id)
        used, avoided = _listed(use_type), _listed(avoid_type)
        types = {kind: _fits_type(kind, used, avoided) for kind in {card.type for card in self.cards.of}}
        if not (mode or use or avoid):
            return np.array([types[card.type] for card in self.cards.of], dtype=bool)
        return np.array(
            [
                types[card.type] and (not mode or card.mode == mode) and _fits_id(card.id, use, avoid)
                for card in self.cards.of
            ],
            dtype=bool,
        )

    # -- nodes -----------------------------------------------------------------------------------------------------
    def cards_on(self, node: Node) -> tuple[Card, ...]:
        if any(node.allocatable[name] < EPSILON for name in (COUNT, MEMORY, CORES)):
            return ()
        return registered(node.annotations.get(REGISTER, ""))

    # -- annotations ----------------------------------------------------------------------------------------------
    def held_by(self, task: Task) -> list[CardPart]:
        text = task.pod.annotations.get(IDS) or task.bind_annotations.get(IDS, "")
        return [CardPart(*part) for part in decoded(text)]

    def annotations_for(self, task: Task, taken: list[list[CardPart]], now: datetime) -> dict[str, str]:
        ids = ";".join(
            "".join(f"{held.card},{held.type},{held.memory:.0f},{held.cores:.0f}:" for held in container)
            for container in taken
        )
        seconds = str(int(now.timestamp()))
        return {
            "volcano.sh/vgpu-node": task.node,
            "volcano.sh/vgpu-time": seconds,
            IDS: ids,
            "volcano.sh/devices-to-allocate": ids,
            "volcano.sh/bind-phase": "allocating",
            "volcano.sh/bind-time": seconds,
        }


@lru_cache(maxsize=4096)
def registered(text: str) -> tuple[Card, ...]:
    """`uuid,count,memory,type,health,mode:…`; nothing when an entry cannot be read."""
    cards = []
    for entry in text.split(":"):
        fields = [field.strip() for field in entry.split(",")]
        if entry.strip() and (len(fields) < 6 or not fields[1].isdigit() or not fields[2].isdigit()):
            return ()
        if entry.strip():
            cards.append(Card(fields[0], float(fields[2]), float(fields[1]), fields[3], HAMI_CORE))
    return tuple(cards)


@lru_cache(maxsize=65536)
def decoded(text: str) -> tuple[tuple[str, float, float], ...]:
    """Which cards a pod was given, and how much of each; what cannot be read is left out."""
    found = []
    for entry in text.replace(";", ":").split(":"):
        fields = entry.split(",")
        if len(fields) >= 4 and fields[2].isdigit() and fields[3].isdigit():
            found.append((fields[0], float(fields[2]), float(fields[3])))
    return tuple(found)


def _portion(container: Container) -> Portion:
    limits, requests = container.resources.limits or {}, container.resources.requests or {}
    if COUNT not in limits and MEMORY not in limits:
        return Portion(0)
    memory = _whole(limits.get(MEMORY, requests.get(MEMORY)))
    count = _whole(limits[COUNT]) if COUNT in limits else 1
    cores = _whole(limits.get(CORES, requests.get(CORES)))
    return Portion(count, float(memory), UNSTATED if memory else 100, float(cores))


def _whole(text: str | int | float | None) -> int:
    try:
        return parse_quantity(text).value if text is not None else 0
    except QuantityError:
        return 0


def _listed(text: str | None) -> list[str]:
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def _fits_id(id: str, use: list[str], avoid: list[str]) -> bool:
    if not use and not avoid:
        return True
    return bool(id) and id not in avoid and (not use or id in use)


def _fits_type(kind: str, use: list[str], avoid: list[str]) -> bool:
    spelt = kind.lower()
    if "NVIDIA" not in kind or any(part.lower() in spelt for part in avoid):
        return False
    return not use or any(part.lower() in spelt for part in use)
