"""numa-aware: a pod goes only where the kubelet would give it cpus as it wants them."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import given as over
from hypothesis import strategies as st

from volcano.api.numa.cpus import Cpu, Machine, parse_cpus
from volcano.api.numa.hints import Hint, hints_for, merged
from volcano.scheduler.core.node_view import NodeView

EIGHT = Machine(tuple(Cpu(id, id // 4, id // 4, id // 2) for id in range(8)))
EVERYTHING = frozenset(range(8))
SINGLE = "single-numa-node"


# -- which cpus --------------------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("free", "count", "hints"),
    [
        ("0-7", 4, [({0}, True), ({1}, True), ({0, 1}, False)]),
        ("1-7", 4, [({1}, True), ({0, 1}, False)]),
        ("0-7", 5, [({0, 1}, True)]),
        ("0-7", 9, []),
        ("2-5", 4, [({0, 1}, False)]),
    ],
)
def test_hints_are_all_sets_of_numa_nodes_with_enough_free(
    free: str, count: int, hints: list[tuple[set[int], bool]]
) -> None:
    found = hints_for(EIGHT, parse_cpus(free), count)

    assert [(hint.nodes, hint.preferred) for hint in found] == [(frozenset(nodes), p) for nodes, p in hints]


@pytest.mark.parametrize(
    ("free", "count", "taken"),
    [("0-3", 4, "0-3"), ("0-7", 5, "0-4"), ("1-7", 5, "1,4-7"), ("0-7", 2, "0-1"), ("1,2-3", 1, "1"), ("0-7", 0, "")],
)
def test_whole_sockets_and_cores_are_taken_before_single_cpus(free: str, count: int, taken: str) -> None:
    assert EIGHT.take(parse_cpus(free), count) == parse_cpus(taken)


def test_more_than_there_is_cannot_be_taken() -> None:
    assert EIGHT.take(parse_cpus("1-7"), 8) is None


@settings(max_examples=100, deadline=None)
@over(st.frozensets(st.integers(0, 7)), st.integers(0, 8))
def test_exactly_as_many_are_taken_as_asked_for_and_only_free_ones(free: frozenset[int], count: int) -> None:
    taken = EIGHT.take(free, count)

    assert (taken is None) == (count > len(free))
    assert taken is None or (len(taken) == count and taken <= free)


def hints(*stated: tuple[set[int], bool]) -> list[Hint]:
    return [Hint(frozenset(nodes), preferred) for nodes, preferred in stated]


BOTH, ZERO, ONE = ({0, 1}, False), ({0}, True), ({1}, True)


@pytest.mark.parametrize(
    ("cpu", "gpu", "best_effort", "single"),
    [
        ([BOTH, ZERO], [BOTH, ZERO], ({0}, True), ({0}, True)),
        ([BOTH, ONE], [BOTH, ONE], ({1}, True), ({1}, True)),
        ([BOTH, ZERO, ONE], [BOTH, ZERO, ONE], ({0}, True), ({0}, True)),
        ([BOTH, ZERO], [BOTH, ONE], ({0}, False), ({0, 1}, False)),
        ([BOTH, ZERO], [({0, 1}, True)], ({0}, True), ({0, 1}, False)),
        ([({0, 1}, True)], [({0, 1}, True)], ({0, 1}, True), ({0, 1}, False)),
    ],
)
def test_policies_choose_what_all_resources_agree_on(cpu: Any, gpu: Any, best_effort: Any, single: Any) -> None:
    wishes = [hints(*cpu), hints(*gpu)]

    loose, admitted = merged("best-effort", wishes, (0, 1))
    strict, strictly = merged("restricted", wishes, (0, 1))
    lonely, alone = merged(SINGLE, wishes, (0, 1))

    assert admitted
    assert (loose, strictly) == (strict, strict.preferred)
    assert (loose.nodes, loose.preferred) == (frozenset(best_effort[0]), best_effort[1])
    assert (lonely.nodes, lonely.preferred, alone) == (frozenset(single[0]), single[1], single[1])


# -- nodes -------------------------------------------------------------------------------------------------------------
def topology(name: str, policy: str = SINGLE, free: str = "0-7", **more: Any) -> dict[str, Any]:
    detail = {str(cpu.id): {"numa": cpu.numa, "socket": cpu.socket, "core": cpu.core} for cpu in EIGHT.cpus}
    policies = {"CPUManagerPolicy": more.pop("manager", "static"), "TopologyManagerPolicy": policy}
    numares = {"cpu": {"allocatable": free, "capacity": 8}}
    return {"metadata": {"name": name}, "spec": {"policies": policies, "numares": numares, "cpuDetail": detail, **more}}


@pytest.fixture
def a_pinned_pod(a_pod):
    def make(name: str, cpu: str = "4", policy: str = SINGLE, **more: Any) -> dict[str, Any]:
        annotations = {"volcano.sh/numa-topology-policy": policy} if policy else {}
        return a_pod(name, cpu=cpu, limits={"cpu": cpu, "memory": "1Gi"}, annotations=annotations, **more)

    return make


@pytest.fixture
def numa(asked, a_node):
    def make(pods: list[Any], *topologies: dict[str, Any], **arguments: Any) -> Any:
        nodes = [a_node(item["metadata"]["name"], cpu="8") for item in topologies] or [a_node("plain", cpu="8")]
        return asked("numa-aware", arguments=arguments, nodes=nodes, pods=pods, numatopologies=list(topologies))

    return make


def test_a_pod_fits_where_one_numa_node_has_all_its_cpus(numa, a_pinned_pod):
    given = numa([a_pinned_pod("p")], topology("whole"), topology("torn", free="2-5"))

    assert given.fits("p") == ["whole"]
    assert given.reasons("p") == {"container  cannot be assigned by numa": 1}


@pytest.mark.parametrize(
    ("node", "reason"),
    [
        (None, "numa info is empty"),
        (topology("n", manager="none"), "cpu manager policy isn't static"),
        (
            topology("n", policy="restricted"),
            "task topology policy[single-numa-node] is different with node[restricted]",
        ),
        (topology("n", cpuDetail={}), "no topo information"),
        (topology("n", numares={}), "cpu allocatable map is empty"),
    ],
)
def test_a_node_that_cannot_keep_the_policy_says_why(numa, a_pinned_pod, node, reason):
    given = numa([a_pinned_pod("p")], *([node] if node else []))

    assert given.fits("p") == []
    assert given.reasons("p") == {reason: 1}


def test_pods_without_a_policy_are_judged_by_the_nodes_own(numa, a_pinned_pod, a_pod):
    pods = [a_pinned_pod("pinned", policy=""), a_pod("shared", cpu="4")]
    given = numa(
        pods,
        topology("torn", free="2-5"),
        topology("loose", free="2-5", policy="best-effort"),
        topology("none", policy="none"),
    )

    assert given.fits("pinned") == ["loose", "none"]
    assert given.fits("shared") == ["torn", "loose", "none"]


def test_cpus_given_in_this_session_are_gone_until_they_are_given_back(numa, a_pinned_pod):
    given = numa([a_pinned_pod(name) for name in "pqr"], topology("n"))

    given.place("p", "n")
    given.place("q", "n")
    full = given.fits("r")
    given.lift("q")

    assert full == []
    assert given.fits("r") == ["n"]


def test_a_bound_pod_is_told_how_many_cpus_it_has_on_each_numa_node(numa, a_pinned_pod):
    given = numa([a_pinned_pod("p", cpu="5", policy="restricted")], topology("n", policy="restricted"))

    given.place("p", "n")

    told = json.loads(given.task("p").bind_annotations["volcano.sh/topology-decision"])
    assert told == {"numa": {"0": {"cpu": "4"}, "1": {"cpu": "1"}}}


def test_reserved_cpus_are_not_given(numa, a_pinned_pod):
    given = numa([a_pinned_pod("p"), a_pinned_pod("q")], topology("n", resReserved={"cpu": "1500m"}))

    given.place("p", "n")

    assert given.fits("q") == []


def test_fewer_numa_nodes_score_higher(numa, a_pinned_pod):
    pods = [a_pinned_pod("p", policy="best-effort")]
    given = numa(
        pods, topology("torn", free="2-5", policy="best-effort"), topology("whole", policy="best-effort"), weight=3
    )

    assert given.scores("p") == {"torn": 0.0, "whole": 150.0}


def test_what_was_bound_stays_taken_until_the_node_reports_it(numa, a_pinned_pod, asked, a_node):
    nodes = [a_node("n", cpu="8")]
    bound = a_pinned_pod("p", on="n")

    def fits(**more: Any) -> list[str]:
        given = asked(
            "numa-aware", nodes=nodes, pods=[bound, a_pinned_pod("q")], numatopologies=[topology("n", **more)]
        )
        given.session.restore()
        given.session.snapshot.memory["numa-aware"] = {"n": {"uid-p": [4, 5, 6, 7], "gone": [0, 1, 2, 3]}}
        for plugin in given.plugins:
            plugin.open(given.session)
        return given.fits("q")

    assert fits(free="4-7") == []
    assert fits(free="0-3") == ["n"]
    assert fits(free="4-7", podAllocations=[{"uid": "uid-p"}]) == ["n"]
    assert fits(free="4-7", podAllocations=[{"name": "p", "namespace": "ns"}]) == ["n"]


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@over(st.frozensets(st.integers(0, 7)), st.integers(1, 4), st.sampled_from(["best-effort", "restricted", SINGLE]))
def test_imagined_copies_are_answered_as_real_ones_would_be(numa, a_pinned_pod, free, count, policy):
    text = ",".join(map(str, sorted(free)))
    given = numa([a_pinned_pod(f"p{i}", str(count), policy) for i in range(4)], topology("n", policy, text))
    (plugin,), task = given.plugins, given.task("p3")
    view = NodeView(given.session.table, np.zeros(3, dtype=np.intp), task=task, copies=np.arange(3))
    refused = sum((cause.refused for cause in plugin.node_filter(task, view)), np.zeros(3, dtype=bool))

    for copy in range(3):
        assert bool(given.fits("p3")) == (not refused[copy])
        if refused[copy]:
            break
        given.place(f"p{copy}", "n")
