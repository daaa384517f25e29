"""A whole system on virtual time: a Reservation keeps nodes for its holder, says so, and bad ones are refused."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from tests.stories.builders import a_job, a_task
from volcano.api.errors import BadRequest
from volcano.api.jobs.expected_starts import ExpectedStarts
from volcano.api.meta import Key
from volcano.api.reservation import Reservation
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import resource_type
from volcano.api.times import timestamp
from volcano.cli.expected_starts import PATH
from volcano.machinery.transport import Request
from volcano.testing.system import VirtualSystem, on_virtual_time

RESERVATIONS = resource_type(Reservation)
ONE_CPU = {"cpu": "1", "memory": "8Gi", "pods": "10"}


def window(system: VirtualSystem, minutes: int, **spec: Any) -> dict[str, Any]:
    start = timestamp(system.clock.now() + timedelta(minutes=minutes))
    return {"metadata": {"name": "kept"}, "spec": {"start": start, "duration": "10m", **spec}}


async def node_names(system: VirtualSystem) -> list[str]:
    body = (await system.client.raw(Request("GET", "/api/v1/nodes"))).body
    return sorted(node["metadata"]["name"] for node in msgspec.json.decode(body)["items"])


async def status_of(system: VirtualSystem) -> dict[str, Any]:
    return dict((await system.client.get_json(RESERVATIONS, Key("", "kept"))).get("status") or {})


def test_in_the_window_the_nodes_are_for_the_holder_and_afterwards_for_all() -> None:
    @on_virtual_time(nodes=2, capacity=ONE_CPU)
    async def story(system: VirtualSystem) -> None:
        nodes = await node_names(system)
        await system.client.create(resource_type(Queue), {"metadata": {"name": "demo"}, "spec": {"weight": 1}})
        await system.client.create(RESERVATIONS, window(system, 5, queue="demo", nodes=nodes))
        begun = system.clock.now()
        await system.apply(a_job("short", a_task(replicas=1, lasts="60s"), runningEstimate="60s"))
        await system.apply(a_job("long", a_task(replicas=1, lasts="60s"), runningEstimate="20m"))
        await system.until(lambda: system.phase("short") == "Completed")

        assert system.phase("long") == "Pending"
        [group] = [group for group in system.mirror.all(PodGroup) if group.name.startswith("long")]
        said = " ".join(each.message for each in group.status.conditions)
        assert "reservation kept keeps the room for queue demo" in said, said
        before = await status_of(system)
        assert (before["phase"], before["nodeCount"], before["kept"]["cpu"]) == ("Waiting", 2, "2")
        starts = msgspec.json.decode((await system.client.raw(Request("GET", PATH))).body, type=ExpectedStarts)
        expected = starts.jobs["default/long"].start
        assert expected is not None
        assert abs(expected - (begun + timedelta(minutes=15))) < timedelta(seconds=5)

        await system.clock.sleep(begun + timedelta(minutes=6) - system.clock.now())
        assert (await status_of(system))["phase"] == "Active"
        await system.apply(a_job("ours", a_task(replicas=1, lasts="60s"), runningEstimate="20m", queue="demo"))
        await system.until(lambda: system.phase("ours") == "Completed")
        assert system.phase("long") == "Pending"

        await system.until(lambda: system.phase("long") == "Running")
        assert abs(system.clock.now() - (begun + timedelta(minutes=15))) < timedelta(seconds=5)
        await system.clock.sleep(timedelta(seconds=2))
        assert await status_of(system) == {"phase": "Ended"}


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"duration": "0s"}, 'spec.duration: Invalid value: "0s"'),
        ({"start": "2001-01-01T00:00:00Z"}, "the window has ended at 2001-01-01T00:10:00Z"),
        ({"nodes": ["nowhere"]}, 'spec.nodes[0]: Not found: "nowhere"'),
        ({"queue": "nowhere"}, 'spec.queue: Not found: "nowhere"'),
        ({"resources": {"cpu": "3"}}, 'spec.resources[cpu]: Invalid value: "3": exceeds the 2 of the cluster'),
    ],
)
def test_bad_ones_are_refused_on_create_and_on_update(spec: dict[str, Any], problem: str) -> None:
    @on_virtual_time(nodes=2, capacity=ONE_CPU)
    async def story(system: VirtualSystem) -> None:
        good = window(system, 5, queue="default", resources={"cpu": "1"})
        bad = {"metadata": {"name": "bad"}, "spec": {**good["spec"], **spec}}

        with pytest.raises(BadRequest) as on_create:
            await system.client.create(RESERVATIONS, bad)
        await system.client.create(RESERVATIONS, good)
        with pytest.raises(BadRequest) as on_update:
            await system.client.patch(RESERVATIONS, Key("", "kept"), {"spec": spec})

        assert problem in str(on_create.value)
        assert problem in str(on_update.value)
