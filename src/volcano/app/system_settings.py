"""What the embedded system is made of: the settings of its components, which are imported later."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import tzinfo
from typing import Final

import msgspec

from volcano.app.settings import SCHEDULER_CONFIGMAP
from volcano.controllers.service.choice import DEFAULT_CONTROLLERS
from volcano.controllers.service.gates import GATES

MASTERS: Final = ("system:masters", "system:authenticated")
"""The groups of components that run in the API server's own process."""


class SystemSettings(msgspec.Struct, frozen=True):
    """What the embedded system is made of, apart from its nodes."""

    scheduler_conf: str = ""  # a file; the ConfigMap when empty
    scheduler_configmap: str = SCHEDULER_CONFIGMAP
    plugins_dir: str = ""
    scheduler_names: tuple[str, ...] = ("volcano",)
    adopt_plain_pods: bool = True
    gates: Mapping[str, bool] = msgspec.field(default_factory=lambda: GATES)
    sharding_mode: str = "none"
    shard_name: str = "volcano"
    root_certificate: str = ""  # by which pods know the API server
    controllers: tuple[str, ...] = tuple(DEFAULT_CONTROLLERS.split(","))  # as --controllers lists them
    workers: int = 8
    local_zone: tzinfo | None = None  # of CronJobs that name none; this process's
