"""Queue: a share of the cluster, with its limits and rights."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from volcano.api.scheduling import Queue as ApiQueue
from volcano.api.scheduling import QueueAffinity
from volcano.scheduler.model.resources import Resources
from volcano.scheduler.model.task import DAWN

UNCHARGED: Final = "pod:"
"""The name of the queue of pods that belong to no queue; no Queue object can have it."""
GREATEST_PRIORITY: Final = 2**31 - 1


@dataclass(slots=True, eq=False)
class Queue:
    name: str
    weight: int = 1
    priority: int = 0
    parent: str = ""
    state: str = "Open"
    reclaimable: bool = True
    created: datetime = DAWN
    capability: Resources | None = None
    deserved: Resources | None = None
    guarantee: Resources | None = None
    affinity: QueueAffinity | None = None
    hierarchy: str = ""
    hierarchy_weights: str = ""
    annotations: dict[str, str] = field(default_factory=dict)
    object: ApiQueue | None = None
    is_charged: bool = True  # False: nothing bounds it, and what it holds counts for no queue

    @property
    def is_open(self) -> bool:
        return self.state == "Open"

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"


def uncharged_queue() -> Queue:
    """Its pods are placed first, as a scheduler of their own would, and are not reclaimed."""
    return Queue(UNCHARGED, priority=GREATEST_PRIORITY, reclaimable=False, is_charged=False)
