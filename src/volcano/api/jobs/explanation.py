"""Details beside the reason why a job waits: the nodes left after each condition, and its place in its queue.

The scheduler fills them in (scheduler.explain) and sends them as a part of its answer to POST /explain.
"""

from __future__ import annotations

import msgspec


class NodeStage(msgspec.Struct, frozen=True, omit_defaults=True):
    """One condition of a pod, the number of nodes left after it, and how many nodes it ruled out for which cause."""

    condition: str
    nodes: int
    causes: dict[str, int] = {}


class TaskNodes(msgspec.Struct, frozen=True, rename="camel"):
    """The nodes for the pods of one task, condition by condition, in the order the scheduler checks them.

    `holds`: pods of this size on all suitable nodes if these were empty; `fits_now`: pods with room as nodes are.
    """

    task: str
    replicas: int
    pending: int
    needed: int
    stages: list[NodeStage]
    holds: int
    fits_now: int

    def __str__(self) -> str:
        return " → ".join(f"{stage.nodes} {stage.condition}" for stage in self.stages)

    @property
    def first_empty(self) -> NodeStage | None:
        return next((stage for stage in self.stages if stage.nodes == 0), None)


class QueueStanding(msgspec.Struct, frozen=True, omit_defaults=True):
    """The job's queue: its state ("" when there is no such queue), the job's place in it, and what is left of it."""

    name: str
    state: str
    position: int = 0  # from 1; 0 when the job does not wait in the queue
    waiting: int = 0
    ahead: list[str] = []
    amounts: dict[str, str] = {}  # resource → "3 of 12 free"
    holders: list[str] = []
