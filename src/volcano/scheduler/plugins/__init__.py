"""The policies, one file (or folder) per name in volcano-scheduler.conf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.plugins.capacity import Capacity
from volcano.scheduler.plugins.cdp import Cooldown
from volcano.scheduler.plugins.conformance import Conformance
from volcano.scheduler.plugins.drf import Drf
from volcano.scheduler.plugins.gang import Gang
from volcano.scheduler.plugins.overcommit import Overcommit
from volcano.scheduler.plugins.pdb import DisruptionBudgets
from volcano.scheduler.plugins.priority import Priority
from volcano.scheduler.plugins.proportion import Proportion
from volcano.scheduler.plugins.resourcequota import ResourceQuotas
from volcano.scheduler.plugins.sla import Sla

BUILT_IN: Final[tuple[type[Plugin], ...]] = (
    Capacity,
    Conformance,
    Cooldown,
    DisruptionBudgets,
    Drf,
    Gang,
    Overcommit,
    Priority,
    Proportion,
    ResourceQuotas,
    Sla,
)
PLUGINS: Final[Mapping[str, type[Plugin]]] = {plugin.name: plugin for plugin in BUILT_IN}
