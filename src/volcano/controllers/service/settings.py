"""The settings of a Volcano installation's controllers, and its feature gates.

The command's flags are read in app.controllers_command.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta, tzinfo
from typing import Final

import msgspec

from volcano.api.jobs.run_times import RunTimes
from volcano.api.meta import Key
from volcano.controllers.sharding.settings import DEFAULTS

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


class ControllerSettings(msgspec.Struct, frozen=True):
    scheduler_names: tuple[str, ...] = ("volcano",)
    inherit_owner_annotations: bool = True
    max_requeue: int = 15
    gates: Mapping[str, bool] = msgspec.field(default_factory=lambda: GATES)
    local_zone: tzinfo = UTC
    controller_configmap: Key = Key("volcano-system", "volcano-controller-configmap")
    sharding_configmap: Key = Key("volcano-system", "volcano-sharding-configmap")
    scheduler_configs: tuple[str, ...] = DEFAULTS
    shard_sync_period: timedelta = timedelta(seconds=60)
    follows_nodes: bool = True
    run_times: RunTimes | None = None  # what is known of past runs from elsewhere, such as the history

    def has(self, gate: str) -> bool:
        return self.gates[gate]


def effective_gates(given: Mapping[str, bool]) -> dict[str, bool]:
    """Every gate with its value. AllAlpha sets them all, AllBeta none; a gate's own name takes precedence."""
    unknown = [name for name in given if name not in GATES and name not in STAGES]
    if unknown:
        raise UnknownGate(f"unrecognized feature gate: {unknown[0]}; known: {', '.join((*GATES, *STAGES))}")
    return {name: given.get(name, given.get(ALL_ALPHA, default)) for name, default in GATES.items()}
