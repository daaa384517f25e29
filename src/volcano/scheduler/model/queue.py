"""Queue: a share of the cluster, with its limits and rights."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime

from volcano.api.scheduling import Queue as ApiQueue
from volcano.api.scheduling import QueueAffinity
from volcano.scheduler.model.resources import Resources
from volcano.scheduler.model.task import DAWN


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

    @property
    def is_open(self) -> bool:
        return self.state == "Open"

    def __repr__(self) -> str:
        return f"<Queue {self.name}>"
