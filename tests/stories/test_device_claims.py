"""Devices of ResourceClaims: gangs get all of theirs or none, no device is given twice, and what is done is given back."""

from __future__ import annotations

import contextlib
from datetime import timedelta
from typing import Any

import pytest

from tests.stories.builders import a_job, a_task
from volcano.api.core import DeviceClass, ResourceClaim, ResourceClaimTemplate, ResourceSlice
from volcano.api.errors import NotFound
from volcano.api.meta import Key
from volcano.api.scheme import resource_type

WITHIN = timedelta(seconds=40)


@pytest.fixture
def unique(request: pytest.FixtureRequest) -> str:
    """Classes and slices have no namespace, so each story names its own."""
    return f"{abs(hash(request.node.nodeid)) % 10**8}"


async def offer(system: Any, unique: str, devices: int, *, generation: int = 1, **reach: Any) -> None:
    """A pool of so many devices, reachable from all nodes unless it is said otherwise, and the class that selects it."""
    listed = [{"name": f"d{number}", "attributes": {"index": {"int": number}}} for number in range(devices)]
    pool = {"name": f"pool-{unique}", "generation": generation, "resourceSliceCount": 1}
    spec = {"driver": driver(unique), "pool": pool, **(reach or {"allNodes": True}), "devices": listed}
    name = f"slice-{unique}-{generation}"
    await system.apply({**kind_of(ResourceSlice), "metadata": {"name": name}, "spec": spec})
    if generation == 1:
        expression = f'device.driver == "{driver(unique)}"'
        selectors = [{"cel": {"expression": expression}}]
        await system.apply(
            {**kind_of(DeviceClass), "metadata": {"name": f"class-{unique}"}, "spec": {"selectors": selectors}}
        )


def driver(unique: str) -> str:
    """Of this story alone: others may have devices in the same cluster."""
    return f"d{unique}.example.com"


def kind_of(kind: type) -> dict[str, str]:
    row = resource_type(kind)
    return {"apiVersion": row.api_version, "kind": row.kind}


def asking(unique: str, count: int = 1, **more: Any) -> dict[str, Any]:
    exactly = {"deviceClassName": f"class-{unique}", "allocationMode": "ExactCount", "count": count, **more}
    return {"devices": {"requests": [{"name": "r", "exactly": exactly}]}}


async def template(system: Any, unique: str, **more: Any) -> None:
    spec = {"spec": asking(unique, **more)}
    await system.apply({**kind_of(ResourceClaimTemplate), "metadata": {"name": "one"}, "spec": spec})


def claiming(task: dict[str, Any], **source: str) -> dict[str, Any]:
    task["template"]["spec"]["resourceClaims"] = [
        {"name": "device", **(source or {"resourceClaimTemplateName": "one"})}
    ]
    return task


async def claims(system: Any) -> list[ResourceClaim]:
    return list((await system.client.list(ResourceClaim, system.namespace)).items)


def devices_of(listed: list[ResourceClaim]) -> list[str]:
    allocations = [(claim.status or {}).get("allocation") or {} for claim in listed]
    return sorted(r["device"] for a in allocations for r in a.get("devices", {}).get("results", ()))


async def clean_up(system: Any, unique: str) -> None:
    for kind, names in (
        (ResourceSlice, (f"slice-{unique}-1", f"slice-{unique}-2")),
        (DeviceClass, (f"class-{unique}",)),
    ):
        for name in names:
            with contextlib.suppress(NotFound):
                await system.client.delete(resource_type(kind), Key("", name))


@pytest.mark.hosts("embedded")  # what it waits for is said of a cluster without other jobs
def test_a_gang_waits_until_every_pod_can_have_its_device(host, unique):
    @host
    async def story(system):
        await offer(system, unique, 3)
        await template(system, unique)
        await system.apply(a_job("gang", claiming(a_task(replicas=4))))
        await system.until(lambda: system.job("gang").status.state.message)
        await system.settle()

        assert [pod.spec.node_name for pod in system.pods("gang")] == [""] * 4
        message = system.job("gang").status.state.message
        assert message == f"3 of the 4 devices of class class-{unique} that it needs together exist"
        assert devices_of(await claims(system)) == []

        await offer(system, unique, 4, generation=2)
        await system.client.delete(resource_type(ResourceSlice), Key("", f"slice-{unique}-1"))
        await system.until(lambda: system.phase("gang") == "Running", within=WITHIN)

        assert devices_of(await claims(system)) == ["d0", "d1", "d2", "d3"]
        await clean_up(system, unique)


@pytest.mark.hosts("embedded")
def test_a_gang_that_asks_for_devices_alone_waits_as_a_whole(host, unique):
    @host
    async def story(system):
        await offer(system, unique, 3)
        await template(system, unique)
        task = claiming(a_task(replicas=4))
        del task["template"]["spec"]["containers"][0]["resources"]
        await system.apply(a_job("gang", task))
        await system.settle()

        assert [pod.spec.node_name for pod in system.pods("gang")] == [""] * 4


@pytest.mark.hosts("embedded")
def test_devices_that_their_driver_must_confirm_are_not_used_and_that_is_said(host, unique):
    @host
    async def story(system):
        await offer(system, unique, 1)
        waiting = {"bindingConditions": ["attached"], "bindingFailureConditions": ["broken"]}
        pool = {"name": f"switch-{unique}", "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": driver(unique), "pool": pool, "allNodes": True, "devices": [{"name": "far", **waiting}]}
        await system.apply({**kind_of(ResourceSlice), "metadata": {"name": f"switch-{unique}"}, "spec": spec})
        await template(system, unique)
        await system.apply(a_job("gang", claiming(a_task(replicas=2))))
        await system.until(lambda: system.job("gang").status.state.message)
        await system.settle()

        assert system.job("gang").status.state.message == (
            f"1 of the 2 devices of class class-{unique} that it needs together can be used; 1 more would have to be "
            "confirmed by their driver before a pod is bound (bindingConditions)"
        )
        assert devices_of(await claims(system)) == []


def test_devices_of_finished_pods_are_given_to_the_next_job(host, unique):
    @host
    async def story(system):
        await offer(system, unique, 2)
        await template(system, unique)
        await system.apply(a_job("first", claiming(a_task(replicas=2, lasts="2s"))))
        await system.apply(a_job("second", claiming(a_task(replicas=2, lasts="1s"))))

        await system.until(lambda: system.phase("first") == system.phase("second") == "Completed", within=WITHIN)
        await clean_up(system, unique)


def test_pods_that_share_a_claim_run_where_its_device_is(host, unique):
    @host
    async def story(system):
        await system.apply(a_job("probe", a_task(lasts="1s")))
        await system.until(lambda: system.phase("probe") == "Completed", within=WITHIN)
        (node,) = {pod.spec.node_name for pod in system.pods("probe")}  # one that takes pods of this story
        await offer(system, unique, 1, nodeName=node)
        await system.apply({**kind_of(ResourceClaim), "metadata": {"name": "shared"}, "spec": asking(unique)})
        await system.apply(a_job("gang", claiming(a_task(replicas=3), resourceClaimName="shared")))
        await system.until(lambda: system.phase("gang") == "Running", within=WITHIN)

        (claim,) = await claims(system)
        assert {pod.spec.node_name for pod in system.pods("gang")} == {node}
        users = {user["uid"] for user in (claim.status or {})["reservedFor"]}
        assert users == {pod.uid for pod in system.pods("gang")}
        await clean_up(system, unique)
