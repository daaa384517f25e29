"""Volcano's feature gates: their names, their defaults, and what flags make of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

POD_GATES_FEATURE: Final = "SchedulingGatesQueueAdmission"
GATES: Final[Mapping[str, bool]] = {
    "WorkLoadSupport": True,
    "VolcanoJobSupport": True,
    "QueueCommandSync": True,
    "PriorityClass": True,
    "CronVolcanoJobSupport": True,
    "PodDisruptionBudgetsSupport": True,
    "ResourceTopology": True,
    "CSIStorage": False,
    POD_GATES_FEATURE: False,
}
"""Volcano's feature gates with their defaults, all alpha; some concern the scheduler and admission only."""
ALL_ALPHA: Final = "AllAlpha"
STAGES: Final = (ALL_ALPHA, "AllBeta")


class UnknownGate(ValueError):
    """A feature gate that does not exist."""


def effective_gates(given: Mapping[str, bool]) -> dict[str, bool]:
    """Every gate with its value. AllAlpha sets them all, AllBeta none; a gate's own name takes precedence."""
    unknown = [name for name in given if name not in GATES and name not in STAGES]
    if unknown:
        raise UnknownGate(f"unrecognized feature gate: {unknown[0]}; known: {', '.join((*GATES, *STAGES))}")
    return {name: given.get(name, given.get(ALL_ALPHA, default)) for name, default in GATES.items()}
