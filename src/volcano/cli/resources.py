"""The kinds that commands speak of, found in the scheme once."""

from __future__ import annotations

from typing import Final

from volcano.api.resource_types import ResourceType, find_resource_type


def _row(group: str, kind: str) -> ResourceType:
    found = find_resource_type(group, kind)
    assert found is not None, f"{kind} is in the scheme"
    return found


JOBS: Final = _row("batch.volcano.sh", "Job")
COMMANDS: Final = _row("bus.volcano.sh", "Command")
QUEUES: Final = _row("scheduling.volcano.sh", "Queue")
POD_GROUPS: Final = _row("scheduling.volcano.sh", "PodGroup")
JOB_FLOWS: Final = _row("flow.volcano.sh", "JobFlow")
JOB_TEMPLATES: Final = _row("flow.volcano.sh", "JobTemplate")
PODS: Final = _row("", "Pod")
CONFIG_MAPS: Final = _row("", "ConfigMap")
NODES: Final = _row("", "Node")
RESERVATIONS: Final = _row("reservation.volcano.sh", "Reservation")
EVENTS: Final = _row("", "Event")
