"""Which pods get CPUs of their own, on which NUMA nodes, and that no CPU is given twice."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.cpu_trees import NAMES, as_folder, recorded
from volcano.api.decode import decode
from volcano.api.kubelet import AgentPod
from volcano.api.numa.assignment import CpuState, assign, decision_text, wish_of
from volcano.api.numa.cpus import Machine, format_cpus, parse_cpus
from volcano.embedded.agent.cpus.cpu_pool import CpuPolicies, CpuPool
from volcano.embedded.agent.cpus.cpu_tree import read_machine
from volcano.embedded.agent.grants.pod_grant import Ungranted

SINGLE, BEST = "single-numa-node", "best-effort"


@pytest.fixture(scope="module")
def machines(tmp_path_factory) -> dict[str, Machine]:
    return {name: read_machine(as_folder(recorded(name), tmp_path_factory.mktemp(name))) for name in NAMES}


def a_pod(*cpus: str, guaranteed: bool = True, decision: str = "") -> AgentPod:
    def made(place: int, amount: str) -> Any:
        limits = {"cpu": amount, "memory": "1Gi"}
        return {"name": f"c{place}", "resources": {"limits": limits, "requests": limits if guaranteed else {}}}

    annotations = {"volcano.sh/topology-decision": decision} if decision else {}
    containers = [made(place, amount) for place, amount in enumerate(cpus)]
    body = {"metadata": {"name": "p", "uid": "p", "annotations": annotations}, "spec": {"containers": containers}}
    if not guaranteed:
        containers[0]["resources"] = {"requests": {"cpu": cpus[0]}}
    return decode(AgentPod, msgspec.json.encode(body))


def a_pool(machine: Machine, policy: str = "none", reserved: str = "1") -> CpuPool:
    return CpuPool(machine, CpuPolicies("static", policy, reserved))


def chosen(pool: CpuPool, pod: AgentPod, held: str = "") -> dict[str, str]:
    return {name: format_cpus(each.cpus) for name, each in pool.choose(pod, parse_cpus(held)).items()}


def test_only_guaranteed_pods_with_whole_cpus_under_the_static_policy(machines):
    machine = machines["two-sockets"]

    assert chosen(a_pool(machine), a_pod("2")) == {"c0": "1,21"}
    assert chosen(a_pool(machine), a_pod("1500m")) == {}
    assert chosen(a_pool(machine), a_pod("2", guaranteed=False)) == {}
    assert chosen(CpuPool(machine, CpuPolicies()), a_pod("2")) == {}
    assert chosen(a_pool(machine), a_pod("2", "500m", "1")) == {"c0": "1,21", "c2": "20"}


@pytest.mark.parametrize(
    ("reserved", "count", "fits"),
    [("1", 20, True), ("1", 21, False), ("1500m", 20, True), ("40", 1, False)],
)
def test_a_numa_node_is_enough_or_the_pod_waits(machines, reserved, count, fits):
    pool, pod = a_pool(machines["two-sockets"], SINGLE, reserved), a_pod(str(count))

    if fits:
        (cpus,) = chosen(pool, pod).values()
        assert len({pool.machine.by_id[cpu].numa for cpu in parse_cpus(cpus)}) == 1
    else:
        with pytest.raises(Ungranted, match=f"{count} CPUs cannot be pinned with policy {SINGLE}"):
            chosen(pool, pod)


def test_free_cpus_on_two_nodes_do_not_make_one(machines):
    machine = machines["two-sockets"]
    held = format_cpus(machine.take(machine.on_numa[0], 8) | machine.take(machine.on_numa[1], 8))

    with pytest.raises(Ungranted):
        chosen(a_pool(machine, SINGLE), a_pod("16"), held)
    assert len(parse_cpus(chosen(a_pool(machine, BEST), a_pod("16"), held)["c0"])) == 16


def test_the_node_that_the_scheduler_decided_on_comes_first(machines):
    pool = a_pool(machines["four-numa-nodes"], SINGLE)
    decision = json.dumps({"numa": {"2": {"cpu": "4"}}})

    cpus = parse_cpus(chosen(pool, a_pod("4", decision=decision))["c0"])
    assert {pool.machine.by_id[cpu].numa for cpu in cpus} == {2}
    held = format_cpus(pool.machine.on_numa[2])
    assert {
        pool.machine.by_id[cpu].numa for cpu in parse_cpus(chosen(pool, a_pod("4", decision=decision), held)["c0"])
    } != {2}
    assert chosen(pool, a_pod("4", decision="{")) == chosen(pool, a_pod("4"))


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(NAMES),
    policy=st.sampled_from(["none", BEST, "restricted", SINGLE]),
    steps=st.lists(st.tuples(st.booleans(), st.integers(1, 12)), max_size=25),
)
def test_no_cpu_is_given_twice_and_the_scheduler_comes_to_the_same(machines, name, policy, steps):
    pool, given_out = a_pool(machines[name], policy), {}
    for number, (is_start, value) in enumerate(steps):
        held = frozenset(cpu for cpus in given_out.values() for cpu in cpus)
        if not is_start:
            given_out.pop(next(iter(given_out), None), None)
            continue
        state = CpuState(pool.machine, pool.machine.ids - held, pool.reserved, policy)
        foreseen = assign(state, wish_of(a_pod(str(value)).spec)).cpus
        try:
            (grant,) = pool.choose(a_pod(str(value), decision=decision_text(pool.machine, foreseen)), held).values()
        except Ungranted:
            assert len(foreseen) < value
            continue
        cpus = frozenset(grant.cpus)
        assert len(cpus) == value and not cpus & held and not cpus & pool.reserved
        assert cpus == foreseen
        assert pool.shared(held | cpus) >= pool.reserved
        given_out[number] = cpus


def test_texts_of_cpus_go_there_and_back():
    for text in ("", "0", "0-3,8", "1,3,5-6"):
        assert format_cpus(parse_cpus(text)) == text
