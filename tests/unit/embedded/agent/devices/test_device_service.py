"""What the API server is told of cards, at the start and as they come and go."""

from __future__ import annotations

import asyncio
from typing import Any

from volcano.api.core import DeviceClass, Node, ResourceSlice
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.embedded.agent.devices.cards import MachineCard
from volcano.embedded.agent.devices.detection import FoundCards
from volcano.embedded.agent.devices.device_service import DeviceService
from volcano.embedded.agent.devices.inventory import CardInventory
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import InProcess, User

SLICES = resource_type(ResourceSlice)


def cards(*numbers: int) -> FoundCards:
    made = (MachineCard(f"nvidia-{n}", "nvidia", "nvidia.com/gpu", n, f"GPU-{n}") for n in numbers)
    return FoundCards(tuple(made), frozenset({"nvidia"}))


async def a_node(capacity: dict[str, str]) -> Client:
    server = ApiServer(MemoryStore(), clock=SystemClock())
    await server.start()
    client = Client(InProcess(server.handle, User("admin", ("system:masters",))))
    status = {"capacity": capacity, "allocatable": capacity}
    await client.create(resource_type(Node), {"metadata": {"name": "n"}, "status": status})
    return client


async def amounts(client: Client) -> Any:
    node = await client.get_json(resource_type(Node), Key("", "n"))
    assert node["status"]["capacity"] == node["status"]["allocatable"]
    return node["status"]["capacity"]


async def pool(client: Client) -> tuple[int, list[str]]:
    (found,) = (await client.list_json(SLICES))["items"]
    return found["spec"]["pool"]["generation"], [each["name"] for each in found["spec"]["devices"]]


def test_a_card_that_disappears_leaves_capacity_and_slice_and_comes_back():
    async def story() -> None:
        client = await a_node({"cpu": "4", "nvidia.com/gpu": "2"})
        inventory, held = CardInventory(cards(0, 1, 2), ["n"], by_claims=1), set()
        service = DeviceService(
            client, SystemClock(), {"n": {"cpu": "4", "nvidia.com/gpu": "2"}}, inventory, lambda: frozenset(held)
        )
        assert await service.publish()
        assert await amounts(client) == {"cpu": "4", "nvidia.com/gpu": "2"}
        assert await pool(client) == (1, ["nvidia-2"])
        assert (await client.list_json(resource_type(DeviceClass)))["items"][0]["metadata"]["name"].startswith("nvidia")

        held.add("nvidia-1")
        service.take(cards(0))
        assert await service.publish()
        assert await amounts(client) == {"cpu": "4", "nvidia.com/gpu": "2"}  # one is gone, and still with its pod
        assert (await client.list_json(SLICES))["items"] == []
        held.clear()
        assert await service.publish()
        assert await amounts(client) == {"cpu": "4", "nvidia.com/gpu": "1"}

        service.take(cards(0, 1, 2))
        assert await service.publish()
        assert await amounts(client) == {"cpu": "4", "nvidia.com/gpu": "2"}
        assert (await pool(client))[1] == ["nvidia-2"]

    asyncio.run(story())


def test_a_slice_gets_a_new_generation_only_when_its_devices_change():
    async def story() -> None:
        client = await a_node({"cpu": "4"})
        inventory = CardInventory(cards(0, 1), ["n"], by_claims=2)
        service = DeviceService(client, SystemClock(), {"n": {"cpu": "4"}}, inventory, frozenset)
        for _ in range(2):
            assert await service.publish()
            assert await pool(client) == (1, ["nvidia-0", "nvidia-1"])

        service.take(cards(1))
        assert await service.publish()
        assert await pool(client) == (2, ["nvidia-1"])

    asyncio.run(story())


def test_what_an_earlier_run_published_is_removed():
    async def story() -> None:
        client = await a_node({"cpu": "4", "nvidia.com/gpu": "2", "example.com/other": "1", "amd.com/gpu": "1"})
        registered = {"cpu": "4", "amd.com/gpu": "1"}  # the last is a pretence of --node-resources
        await DeviceService(client, SystemClock(), {"n": registered}, None, frozenset).run()

        assert await amounts(client) == {"cpu": "4", "example.com/other": "1", "amd.com/gpu": "1"}

    asyncio.run(story())
