"""The Numatopology of a node, as the agent publishes it. Pure."""

from __future__ import annotations

from collections.abc import Mapping

from volcano.api.meta import JSON
from volcano.api.numa.assignment import CPU_POLICY, TOPOLOGY_POLICY
from volcano.api.numa.cpus import format_cpus
from volcano.embedded.agent.cpus.cpu_pool import CpuPool
from volcano.embedded.agent.grants.pod_grant import PodGrant


def numatopology_spec(pool: CpuPool, grants: Mapping[str, PodGrant]) -> JSON:
    """Free are all CPUs that no pod has for itself, the reserved ones included: a scheduler subtracts those."""
    held = frozenset(cpu for grant in grants.values() for cpu in grant.cpus)
    machine, policies = pool.machine, pool.policies
    allocations = [_pod(uid, grant) for uid, grant in sorted(grants.items()) if grant.cpus]
    return {
        "policies": {CPU_POLICY: policies.manager, TOPOLOGY_POLICY: policies.topology},
        "resReserved": {"cpu": policies.reserved},
        "numares": {"cpu": {"allocatable": format_cpus(machine.ids - held), "capacity": len(machine.ids)}},
        "cpuDetail": {str(cpu.id): _detail(cpu.numa, cpu.socket, cpu.core) for cpu in machine.cpus},
        **({"podAllocations": allocations} if allocations else {}),
    }


def _pod(uid: str, grant: PodGrant) -> JSON:
    containers = [
        {"name": name, "allocations": {"cpu": format_cpus(frozenset(each.cpus))}}
        for name, each in sorted(grant.containers.items())
        if each.cpus
    ]
    return {"uid": uid, "containerAllocations": containers}


def _detail(numa: int, socket: int, core: int) -> JSON:
    """Zeros are left out, as Volcano's exporter does."""
    return {name: value for name, value in (("numa", numa), ("socket", socket), ("core", core)) if value}
