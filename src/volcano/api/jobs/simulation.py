"""The scheduler's answer to POST /simulate: what would happen to pods or a job now."""

from __future__ import annotations

import msgspec


class SimulatedPod(msgspec.Struct, frozen=True, omit_defaults=True, rename="camel"):
    """Exactly one of: the node it would be bound to, the node whose room is promised to it, why it would wait."""

    node: str = ""
    waits_for: str = ""
    reason: str = ""
    message: str = ""


class SimulatedJob(msgspec.Struct, frozen=True, omit_defaults=True):
    phase: str
    why: str = ""


class SimulatedEviction(msgspec.Struct, frozen=True, rename={"preemptor": "for"}):
    pod: str
    node: str
    reason: str
    preemptor: str


class Simulation(msgspec.Struct, frozen=True):
    """Pods and jobs by namespace/name."""

    placed: int
    asked: int
    pods: dict[str, SimulatedPod]
    jobs: dict[str, SimulatedJob]
    evictions: list[SimulatedEviction]
