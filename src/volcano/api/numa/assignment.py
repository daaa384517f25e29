"""Which CPUs a pod gets on a machine, container after container, as a kubelet's CPU and topology managers decide it.

The scheduler uses it to see where a pod fits, the node agent to pin the pod: with the same free CPUs both get the same.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from volcano.api.numa.cpus import Machine
from volcano.api.numa.hints import Hint, hints_for, merged
from volcano.api.pods.quality import GUARANTEED, quality_of_service
from volcano.api.pods.requests import PodResources
from volcano.api.quantity import QuantityError, parse_quantity

POLICY_KEY: Final = "volcano.sh/numa-topology-policy"
DECISION_KEY: Final = "volcano.sh/topology-decision"
CPU_POLICY: Final = "CPUManagerPolicy"
TOPOLOGY_POLICY: Final = "TopologyManagerPolicy"
STATIC: Final = "static"
_CPU: Final = "cpu"
CpuWish: TypeAlias = tuple[tuple[str, int], ...]
"""Containers with the whole cpus they ask for."""


@dataclass(frozen=True)
class CpuState:
    """All that decides about a pod on a node; equal for nodes that are built alike and have the same cpus free."""

    machine: Machine
    free: frozenset[int]
    reserved: frozenset[int]
    policy: str

    def without(self, cpus: frozenset[int]) -> CpuState:
        return CpuState(self.machine, self.free - cpus, self.reserved, self.policy)


@dataclass(frozen=True)
class CpuFit:
    """The cpus a pod would get, or the container that cannot be served."""

    containers: tuple[tuple[str, frozenset[int]], ...] = ()
    refused: str | None = None

    @property
    def cpus(self) -> frozenset[int]:
        return frozenset().union(*(cpus for _, cpus in self.containers))


def wish_of(spec: PodResources) -> CpuWish | None:
    """None for pods that share their cpus with others anyway."""
    if quality_of_service(spec) != GUARANTEED:
        return None
    return tuple((each.name, _whole(each.resources.requests or each.resources.limits)) for each in spec.containers)


def assign(state: CpuState, wish: CpuWish) -> CpuFit:
    """Container after container, as the kubelet's topology manager would."""
    free, given = state.free - state.reserved, []
    for name, count in wish:
        hints = hints_for(state.machine, free, count) if count else [Hint(None, True)]
        hint, admitted = merged(state.policy, [hints], state.machine.numa_nodes)
        if not admitted:
            return CpuFit(refused=name)
        near = free & frozenset[int]().union(
            *(state.machine.on_numa[n] for n in hint.nodes or state.machine.numa_nodes)
        )
        first = state.machine.take(near, min(count, len(near))) or frozenset()
        rest = state.machine.take(free - first, count - len(first))
        taken = first | rest if rest is not None else frozenset()
        free = free - taken
        given.append((name, taken))
    return CpuFit(tuple(given))


def reserved_cpus(machine: Machine, amount: str) -> frozenset[int]:
    """The cpus that no pod gets for itself, for an amount like 1500m."""
    try:
        count = math.ceil(parse_quantity(amount).milli / 1000)
    except QuantityError:
        count = 0
    return machine.take(machine.ids, count) or frozenset()


def decision_text(machine: Machine, cpus: frozenset[int]) -> str:
    """How many cpus of each NUMA node were chosen, as an annotation of the pod says it."""
    counts = {node: len(cpus & machine.on_numa[node]) for node in machine.numa_nodes}
    return json.dumps({"numa": {str(node): {_CPU: str(count)} for node, count in counts.items() if count}})


def decided_nodes(text: str) -> frozenset[int]:
    """The NUMA nodes that a decision names; none where it cannot be read."""
    try:
        nodes = json.loads(text)["numa"]
        return frozenset(int(node) for node in nodes)
    except (ValueError, TypeError, KeyError, RecursionError):
        return frozenset()


def _whole(requests: Any) -> int:
    """Only whole cpus are pinned."""
    try:
        milli = parse_quantity((requests or {}).get(_CPU, 0)).milli
    except QuantityError:
        return 0
    return milli // 1000 if milli % 1000 == 0 else 0
