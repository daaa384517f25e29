"""Which CPUs a pod gets for itself, and which the others share. Pure."""

from __future__ import annotations

import msgspec

from volcano.api.kubelet import AgentPod
from volcano.api.numa.assignment import (
    DECISION_KEY,
    STATIC,
    CpuFit,
    CpuState,
    CpuWish,
    assign,
    decided_nodes,
    reserved_cpus,
    wish_of,
)
from volcano.api.numa.cpus import Machine
from volcano.embedded.agent.grants.pod_grant import ContainerGrant, Ungranted

REFUSED = "TopologyAffinityError"


class CpuPolicies(msgspec.Struct, frozen=True):
    """As a kubelet's configuration has them; `reserved` is an amount of CPUs that no pod gets for itself."""

    manager: str = "none"
    topology: str = "none"
    reserved: str = "0"

    @property
    def is_static(self) -> bool:
        return self.manager == STATIC


class CpuPool:
    """The CPUs of one node. With the policy `none` all pods share all of them."""

    def __init__(self, machine: Machine, policies: CpuPolicies) -> None:
        self.machine, self.policies = machine, policies

    @property
    def reserved(self) -> frozenset[int]:
        return reserved_cpus(self.machine, self.policies.reserved)

    def shared(self, held: frozenset[int]) -> frozenset[int]:
        """What pods without CPUs of their own run on: never empty, since the reserved ones are never given away."""
        return (self.machine.ids - held) or self.machine.ids

    def choose(self, pod: AgentPod, held: frozenset[int]) -> dict[str, ContainerGrant]:
        """CPUs for the containers of a Guaranteed pod that ask for whole ones; Ungranted where none can be had.

        The NUMA nodes that the scheduler decided on come first; where they no longer have enough, others serve as far
        as the node's own policy admits it.
        """
        wish = wish_of(pod.spec) if self.policies.is_static else None
        if not wish or not any(count for _, count in wish):
            return {}
        state = CpuState(self.machine, self.machine.ids - held, self.reserved, self.policies.topology)
        fit = self._near(state, wish, decided_nodes(pod.metadata.annotations.get(DECISION_KEY, "")))
        wanted = sum(count for _, count in wish)
        if len(fit.cpus) < wanted:
            free, policy = len(state.free - state.reserved), self.policies.topology
            raise Ungranted(REFUSED, f"{wanted} CPUs cannot be pinned with policy {policy}: {free} are free")
        return {name: ContainerGrant(cpus=tuple(sorted(cpus))) for name, cpus in fit.containers if cpus}

    def _near(self, state: CpuState, wish: CpuWish, nodes: frozenset[int]) -> CpuFit:
        near = frozenset[int]().union(*(self.machine.on_numa.get(node, frozenset()) for node in nodes))
        if near:
            fit = assign(CpuState(state.machine, state.free & near, state.reserved, state.policy), wish)
            if len(fit.cpus) == sum(count for _, count in wish):
                return fit
        return assign(state, wish)
