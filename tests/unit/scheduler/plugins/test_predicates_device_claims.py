"""Claims of devices in a cycle: Volcano's own cases (TestAllocateWithDRA of v1.15), and gangs on nodes with few devices."""

from __future__ import annotations

from typing import Any

from volcano.api.core.devices import CLAIM_PROTECTION
from volcano.api.meta import Key
from volcano.scheduler.actions import ACTIONS
from volcano.scheduler.core.assemble import snapshot_from
from volcano.scheduler.framework.config import parse_config
from volcano.scheduler.framework.decisions import Decisions
from volcano.scheduler.framework.record import ClaimRelease
from volcano.scheduler.loop import cycle
from volcano.scheduler.model import SeededChance

DRIVER = "gpu.example.com"
CONFIG = parse_config(
    """
actions: "allocate"
tiers:
- plugins:
  - {name: gang}
  - {name: predicates, arguments: {predicate.DynamicResourceAllocationEnable: true}}
""",
    known_actions=ACTIONS,
)


def a_node(name: str) -> dict[str, Any]:
    has = {"cpu": "8", "memory": "16Gi", "pods": "10"}
    return {"metadata": {"name": name}, "status": {"allocatable": has, "capacity": has}}


def a_slice(node: str, devices: int) -> dict[str, Any]:
    pool = {"name": f"pool-{node}", "generation": 1, "resourceSliceCount": 1}
    listed = [{"name": f"gpu-{number}"} for number in range(devices)]
    spec = {"driver": DRIVER, "pool": pool, "nodeName": node, "devices": listed}
    return {"metadata": {"name": f"slice-{node}"}, "spec": spec}


def a_class(expression: str) -> dict[str, Any]:
    return {"metadata": {"name": "gpu"}, "spec": {"selectors": [{"cel": {"expression": expression}}]}}


def a_claim(name: str, count: int = 1) -> dict[str, Any]:
    exactly = {"deviceClassName": "gpu", "allocationMode": "ExactCount", "count": count}
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"metadata": {"name": name, "namespace": "ns", "uid": f"uid-{name}"}, "spec": spec}


def a_pod(name: str, claim: str, template: str = "") -> dict[str, Any]:
    needs = {"requests": {"cpu": "1", "memory": "1Gi"}, "claims": [{"name": "gpu"}]}
    entry = {"name": "gpu", **({"resourceClaimTemplateName": template} if template else {"resourceClaimName": claim})}
    status: dict[str, Any] = {"phase": "Pending"}
    if template:
        status["resourceClaimStatuses"] = [{"name": "gpu", "resourceClaimName": claim}]
    annotations = {"scheduling.k8s.io/group-name": "g"}
    metadata = {"name": name, "namespace": "ns", "uid": f"uid-{name}", "annotations": annotations}
    return {
        "metadata": metadata,
        "spec": {"containers": [{"resources": needs}], "resourceClaims": [entry]},
        "status": status,
    }


def decided(
    devices: dict[str, int], pods: list[Any], claims: list[Any], expression: str = "true", names: Any = None
) -> Decisions:
    group = {"metadata": {"name": "g", "namespace": "ns"}, "status": {"phase": "Inqueue"}}
    group["spec"] = {"queue": "q", "minMember": len(pods)}
    lists = {
        "queues": [{"metadata": {"name": "q"}, "spec": {"weight": 1}, "status": {"state": "Open"}}],
        "podGroups": [group],
        "nodes": [a_node(name) for name in devices],
        "resourceSlices": [a_slice(name, count) for name, count in devices.items()],
        "deviceClasses": [a_class(expression)],
        "resourceClaims": claims,
        "pods": pods,
    }
    snapshot = snapshot_from(lists)
    snapshot.scheduler_names = names
    return cycle(snapshot, CONFIG, SeededChance(0))


def nodes_of(decisions: Decisions) -> dict[str, str]:
    return {bind.task: bind.node for bind in decisions.binds}


# -- Volcano's table ---------------------------------------------------------------------------------------------------
def test_a_pod_with_a_claim_is_bound_where_the_device_is():
    found = decided({"n1": 1}, [a_pod("p1", "claim1")], [a_claim("claim1")], f"device.driver == '{DRIVER}'")

    assert nodes_of(found) == {"ns/p1": "n1"}
    (choice,) = found.devices["uid-p1"]
    assert choice.is_new
    assert choice.allocation["devices"]["results"] == [
        {"request": "gpu", "driver": DRIVER, "pool": "pool-n1", "device": "gpu-0"}
    ]


def test_a_selector_that_fails_on_a_device_keeps_the_pod_waiting():
    found = decided({"n1": 1}, [a_pod("p1", "claim1")], [a_claim("claim1")], 'device.attributes["some-driver"].healthy')

    assert nodes_of(found) == {}
    assert found.groups["ns/g"].phase == "Inqueue"


# -- gangs -------------------------------------------------------------------------------------------------------------
def a_gang(size: int, count: int = 1) -> tuple[list[Any], list[Any]]:
    names = [f"p{number}" for number in range(size)]
    return [a_pod(name, f"c-{name}", "template") for name in names], [a_claim(f"c-{name}", count) for name in names]


def test_a_gang_spreads_over_nodes_that_have_one_device_each():
    pods, claims = a_gang(4)
    found = decided({f"n{number}": 1 for number in range(4)}, pods, claims)

    assert sorted(nodes_of(found).values()) == ["n0", "n1", "n2", "n3"]


def test_a_gang_fills_nodes_of_different_sizes_without_giving_a_device_twice():
    pods, claims = a_gang(6, count=2)
    found = decided({"n0": 5, "n1": 2, "n2": 7, "n3": 1}, pods, claims)

    assert sorted(nodes_of(found).values()) == ["n0", "n0", "n1", "n2", "n2", "n2"]
    results = [r for choices in found.devices.values() for c in choices for r in c.allocation["devices"]["results"]]
    assert len({(r["pool"], r["device"]) for r in results}) == len(results) == 12


def test_a_gang_that_lacks_one_device_gets_none():
    pods, claims = a_gang(4)
    found = decided({"n0": 2, "n1": 1}, pods, claims)

    assert nodes_of(found) == {}
    assert not found.devices


def test_a_gang_that_shares_a_claim_goes_where_its_device_is():
    found = decided({"n0": 1, "n1": 1}, [a_pod(f"p{n}", "shared") for n in range(3)], [a_claim("shared")])

    (node,) = set(nodes_of(found).values())
    assert len(nodes_of(found)) == 3
    (allocation,) = {str(choice.allocation) for choices in found.devices.values() for choice in choices}
    assert f"pool-{node}" in allocation


def test_a_claim_that_asks_for_what_is_unknown_keeps_its_pod_waiting():
    claim = a_claim("c")
    claim["spec"]["devices"]["requests"][0]["exactly"]["allocationMode"] = "Most"
    found = decided({"n0": 1}, [a_pod("p", "c")], [claim])

    assert nodes_of(found) == {}
    (notice,) = found.pods
    assert "unsupported count mode Most" in notice.message


# -- what a bind that failed, or a scheduler that was killed, leaves ---------------------------------------------------
def allocated(claim: dict[str, Any], node: str, *users: str, device: str = "gpu-0") -> dict[str, Any]:
    result = {"request": "gpu", "driver": DRIVER, "pool": f"pool-{node}", "device": device}
    here = {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [node]}]}
    allocation = {"devices": {"results": [result]}, "nodeSelector": {"nodeSelectorTerms": [here]}}
    claim["status"] = {"allocation": allocation, "reservedFor": [{"resource": "pods", "uid": uid} for uid in users]}
    claim["metadata"]["finalizers"] = [CLAIM_PROTECTION]
    return claim


def test_devices_of_a_pod_that_still_has_no_node_are_released_when_its_gang_cannot_start():
    pods, claims = a_gang(3)
    allocated(claims[0], "n0", "uid-p0")
    found = decided({"n0": 2}, pods, claims)

    assert nodes_of(found) == {}
    assert found.claim_releases == (ClaimRelease(Key("ns", "c-p0"), ("uid-p0",), frees=True),)


def test_a_pod_with_devices_on_a_node_that_is_gone_gets_others():
    found = decided({"n1": 1}, [a_pod("p0", "c-p0", "template")], [allocated(a_claim("c-p0"), "n0", "uid-p0")])

    assert nodes_of(found) == {"ns/p0": "n1"}
    assert found.devices["uid-p0"][0].replaces
    assert not found.claim_releases


def test_a_claim_that_a_running_pod_shares_loses_only_the_user_without_a_node():
    running = a_pod("p0", "shared")
    running["spec"]["nodeName"], running["status"]["phase"] = "n0", "Running"
    waiting = a_pod("p1", "shared")
    waiting["spec"]["nodeSelector"] = {"no": "such"}
    claim = allocated(a_claim("shared"), "n0", "uid-p0", "uid-p1")
    found = decided({"n0": 1}, [running, waiting], [claim])

    assert found.claim_releases == (ClaimRelease(Key("ns", "shared"), ("uid-p1",), frees=False),)


def test_devices_that_nobody_uses_any_more_are_released():
    found = decided({"n0": 1}, [], [allocated(a_claim("left"), "n0")])

    assert found.claim_releases == (ClaimRelease(Key("ns", "left"), (), frees=True),)


def test_a_claim_that_another_scheduler_reserves_is_left_alone():
    foreign = a_pod("p9", "c9")
    foreign["spec"]["schedulerName"] = "default-scheduler"
    found = decided({"n0": 1}, [foreign], [allocated(a_claim("c9"), "n0", "uid-p9")], names=frozenset({"volcano"}))

    assert found.claim_releases == ()
