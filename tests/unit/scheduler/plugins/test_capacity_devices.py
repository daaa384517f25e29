"""capacity: quotas of devices that pods claim."""

from __future__ import annotations

from typing import Any

import pytest

from volcano.scheduler.plugins.capacity.devices import demand_of
from volcano.testing.clusters import Cluster, cluster, gang, running, share

PLUGINS = "gang; capacity"
GPU = "deviceclass/gpu.com"
JSON = dict[str, Any]


def claim(name: str, count: int | None = 1, kind: str = "gpu.com", **more: Any) -> JSON:
    exactly = {"deviceClassName": kind, **({"count": count} if count is not None else {}), **more}
    request = {"name": "r", "exactly": exactly}
    return {"metadata": {"name": name, "namespace": "default"}, "spec": {"devices": {"requests": [request]}}}


def given(claims: list[JSON], uses: dict[str, list[str]], capability: str, **jobs: Any) -> Cluster:
    """`uses`: pod → claims."""
    of = cluster(
        nodes={"n1": "cpu=64"},
        jobs=jobs,
        queues={"q": share(capability=capability)},
        objects={"resourceClaims": claims},
    )
    for pod in of.objects["pods"]:
        names = uses.get(pod["metadata"]["name"], [])
        pod["spec"]["resourceClaims"] = [{"name": f"c{i}", "resourceClaimName": n} for i, n in enumerate(names)]
    return of


def test_a_queue_does_not_hold_more_devices_than_its_quota() -> None:
    claims = [claim(name, 2) for name in ("a", "b")]

    outcome = given(claims, {"j-0": ["a"], "j-1": ["b"]}, f"{GPU}=3", j=gang(2, min=0, queue="q")).schedule(
        plugins=PLUGINS
    )

    assert set(outcome.binds) == {"j-0"}


def test_what_already_runs_counts_and_is_told_in_the_queues_status() -> None:
    claims = [claim("a", 2), claim("b", 1)]
    jobs = {"old": running(["n1"], queue="q"), "new": gang(1, queue="q")}

    within = given(claims, {"old-0": ["a"], "new-0": ["b"]}, f"{GPU}=3", **jobs).schedule(plugins=PLUGINS)
    beyond = given(claims, {"old-0": ["a"], "new-0": ["b"]}, f"{GPU}=2", **jobs).schedule(plugins=PLUGINS)

    assert (set(within.binds), set(beyond.binds)) == ({"new-0"}, set())
    assert within.decisions.queue_allocated["q"][GPU] == 3000.0


def test_a_claim_that_pods_share_is_charged_once() -> None:
    uses = {"j-0": ["a"], "j-1": ["a"], "j-2": ["a", "a"]}

    outcome = given([claim("a", 2)], uses, f"{GPU}=2", j=gang(3, queue="q")).schedule(plugins=PLUGINS)

    assert len(outcome.binds) == 3


def test_a_class_the_queue_does_not_speak_of_is_not_limited() -> None:
    claims = [claim("a", 100, kind="nic.com")]

    assert given(claims, {"j-0": ["a"]}, f"{GPU}=1", j=gang(1, queue="q")).schedule(plugins=PLUGINS).binds


def test_capacity_of_devices_is_limited_by_dimension() -> None:
    def binds(capability: str, memory: str = "10Gi") -> bool:
        claims = [claim("a", 2, capacity={"requests": {"memory": memory}})]
        return bool(given(claims, {"j-0": ["a"]}, capability, j=gang(1, queue="q")).schedule(plugins=PLUGINS).binds)

    assert binds(f"{GPU}=4, memory.{GPU}=20Gi")
    assert not binds(f"{GPU}=4, memory.{GPU}=19Gi")
    assert not binds(f"{GPU}=4")  # a dimension that is not listed may not be had
    assert not binds(f"cores.{GPU}=9")


@pytest.mark.parametrize(
    "argument", ["capacity.DynamicResourceAllocationEnable", "capacity.DRAConsumableCapacityEnable"]
)
def test_counting_can_be_switched_off(argument: str) -> None:
    claims = [claim("a", 2, capacity={"requests": {"memory": "10Gi"}})]
    of = given(claims, {"j-0": ["a"]}, f"memory.{GPU}=1Gi", j=gang(1, queue="q"))

    assert not of.schedule(plugins=PLUGINS).binds
    assert of.schedule(plugins=PLUGINS, arguments={"capacity": {argument: False}}).binds


def test_jobs_that_would_exceed_a_quota_do_not_enter_and_those_let_in_count() -> None:
    claims = [claim(name, 1) for name in "abc"]
    uses = {f"{name}-0": [name] for name in "abc"}
    jobs = {name: gang(1, queue="q", min_resources="cpu=1") for name in "abc"}

    outcome = given(claims, uses, f"{GPU}=2", **jobs).schedule("enqueue", PLUGINS)

    assert sorted(outcome.phases.values()) == ["Inqueue", "Inqueue", "Pending"]
    assert "insufficient dra-resource-exceeded" in "".join(outcome.why.values())


def test_of_each_role_its_minimum_counts() -> None:
    job = gang(2, roles=("a", "b"), role_minimums={"a": 3}, queue="q", min_resources="cpu=1")
    of = given([claim("x", 1)], {"j-0": ["x"]}, f"{GPU}=2", j=job)

    assert of.schedule("enqueue", PLUGINS).phases["j"] == "Pending"


def test_what_is_counted_of_a_claim() -> None:
    from volcano.api.core import ResourceClaim

    def demand(*requests: JSON) -> dict[str, int]:
        return dict(demand_of(ResourceClaim(spec={"devices": {"requests": list(requests)}}), capacity=True))

    exactly = {"deviceClassName": "gpu.com"}
    assert demand({"exactly": exactly}, {"exactly": {**exactly, "count": 0}}) == {GPU: 2}
    assert demand({"exactly": {**exactly, "allocationMode": "All"}}, {"firstAvailable": [exactly]}) == {}
    assert demand_of(None, capacity=True) == {}


def test_evicting_gives_devices_back() -> None:
    of = given([claim("a", 1)], {"old-0": ["a"]}, f"{GPU}=1", old=running(["n1"], queue="q"))
    session = of.session(PLUGINS)
    (task,) = session.snapshot.tasks.values()
    (plugin,) = session.ask.plugins("allocatable")

    session.moves.evict(task)
    freed = plugin.allocatable(session.queues["q"], task)
    session.moves.reinstate(task)

    assert freed
    assert plugin._devices.accounts["q"].held == {GPU: 1}
