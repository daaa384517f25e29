"""The policies, one file (or folder) per name in volcano-scheduler.conf."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from volcano.scheduler.framework.plugin import Plugin
from volcano.scheduler.plugins.binpack import Binpack
from volcano.scheduler.plugins.capacity import Capacity
from volcano.scheduler.plugins.cdp import Cooldown
from volcano.scheduler.plugins.conformance import Conformance
from volcano.scheduler.plugins.deviceshare import DeviceShare
from volcano.scheduler.plugins.drf import Drf
from volcano.scheduler.plugins.easy import Easy
from volcano.scheduler.plugins.extender import Extender
from volcano.scheduler.plugins.fragmentation import Fragmentation
from volcano.scheduler.plugins.gang import Gang
from volcano.scheduler.plugins.network_topology_aware import NetworkTopologyAware
from volcano.scheduler.plugins.nodegroup import NodeGroup
from volcano.scheduler.plugins.nodeorder import NodeOrder
from volcano.scheduler.plugins.numa_aware import NumaAware
from volcano.scheduler.plugins.overcommit import Overcommit
from volcano.scheduler.plugins.pdb import DisruptionBudgets
from volcano.scheduler.plugins.predicates import Predicates
from volcano.scheduler.plugins.priority import Priority
from volcano.scheduler.plugins.proportion import Proportion
from volcano.scheduler.plugins.rescheduling import Rescheduling
from volcano.scheduler.plugins.reservations import Reservations
from volcano.scheduler.plugins.resource_strategy_fit import ResourceStrategyFit
from volcano.scheduler.plugins.resourcequota import ResourceQuotas
from volcano.scheduler.plugins.sla import Sla
from volcano.scheduler.plugins.task_topology import TaskTopology
from volcano.scheduler.plugins.tdm import TimeDivision
from volcano.scheduler.plugins.usage import Usage

BUILT_IN: Final[tuple[type[Plugin], ...]] = (
    Binpack,
    Capacity,
    Conformance,
    Cooldown,
    DeviceShare,
    DisruptionBudgets,
    Drf,
    Easy,
    Extender,
    Fragmentation,
    Gang,
    NetworkTopologyAware,
    NodeGroup,
    NodeOrder,
    NumaAware,
    Overcommit,
    Predicates,
    Priority,
    Proportion,
    Rescheduling,
    Reservations,
    ResourceQuotas,
    ResourceStrategyFit,
    Sla,
    TaskTopology,
    TimeDivision,
    Usage,
)
PLUGINS: Final[Mapping[str, type[Plugin]]] = {plugin.name: plugin for plugin in BUILT_IN}
