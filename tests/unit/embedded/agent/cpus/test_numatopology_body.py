"""What the agent publishes of its CPUs, and that the scheduler reads the same from it."""

from __future__ import annotations

import msgspec

from tests.cpu_trees import as_folder, recorded
from volcano.api.numa.cpus import machine_from, parse_cpus
from volcano.api.topology import NumatopologySpec
from volcano.embedded.agent.cpus.cpu_pool import CpuPolicies, CpuPool
from volcano.embedded.agent.cpus.cpu_tree import read_machine
from volcano.embedded.agent.cpus.numatopology_body import numatopology_spec
from volcano.embedded.agent.grants.pod_grant import ContainerGrant, PodGrant


def test_free_cpus_policies_and_the_pods_that_have_some(tmp_path):
    pool = CpuPool(read_machine(as_folder(recorded("one-socket"), tmp_path)), CpuPolicies("static", "restricted", "1"))
    grants = {
        "b": PodGrant({"main": ContainerGrant(cpus=(1, 2)), "side": ContainerGrant(cards=("x",))}),
        "a": PodGrant({"main": ContainerGrant(cpus=(3,))}),
        "c": PodGrant({"main": ContainerGrant(cards=("y",))}),
    }

    assert numatopology_spec(pool, grants) == {
        "policies": {"CPUManagerPolicy": "static", "TopologyManagerPolicy": "restricted"},
        "resReserved": {"cpu": "1"},
        "numares": {"cpu": {"allocatable": "0", "capacity": 4}},
        "cpuDetail": {"0": {}, "1": {"core": 1}, "2": {"core": 2}, "3": {"core": 3}},
        "podAllocations": [
            {"uid": "a", "containerAllocations": [{"name": "main", "allocations": {"cpu": "3"}}]},
            {"uid": "b", "containerAllocations": [{"name": "main", "allocations": {"cpu": "1-2"}}]},
        ],
    }


def test_the_scheduler_reads_the_same_machine(tmp_path):
    pool = CpuPool(read_machine(as_folder(recorded("four-numa-nodes"), tmp_path)), CpuPolicies())
    spec = msgspec.json.decode(msgspec.json.encode(numatopology_spec(pool, {})), type=NumatopologySpec)

    assert machine_from(spec).cpus == pool.machine.cpus
    assert parse_cpus(spec.numares["cpu"].allocatable) == pool.machine.ids
