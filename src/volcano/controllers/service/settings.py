"""The settings of a Volcano installation's controllers; its feature gates are gates'.

The command's flags are read in app.controllers_command.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, timedelta, tzinfo

import msgspec

from volcano.api.jobs.run_times import RunTimes
from volcano.api.meta import Key
from volcano.controllers.service.gates import GATES
from volcano.controllers.sharding.settings import DEFAULTS


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
