"""The metrics of the embedded components on loopback ports, and as Endpoints of their Services."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import aiohttp
import pytest

from volcano.api.core import Endpoints
from volcano.api.errors import NotFound
from volcano.api.meta import Key
from volcano.app import metrics_ports
from volcano.app.system import LocalService, System
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.https_server import bind

KEY = Key("volcano-system", "volcano-scheduler")


@dataclass
class Ports:
    scheduler: int
    controllers: int


@pytest.fixture
def ports(monkeypatch: pytest.MonkeyPatch) -> Ports:
    """Free ports instead of 8080 and 8081, which another program may have."""
    sockets = [bind("127.0.0.1", None) for _ in range(2)]
    found = Ports(*(each.getsockname()[1] for each in sockets))
    for each in sockets:
        each.close()
    for name, service, port in (
        ("SCHEDULER_SERVICE", "volcano-scheduler", found.scheduler),
        ("CONTROLLERS_SERVICE", "volcano-controllers-service", found.controllers),
    ):
        monkeypatch.setattr(metrics_ports, name, LocalService(service, service, port))
    return found


@pytest.fixture
async def system() -> AsyncIterator[System]:
    clock = SystemClock()
    server = ApiServer(MemoryStore(), clock=clock)
    await server.start()
    yield System(server, clock)
    await server.close()


async def fetched(port: int, path: str, method: str = "GET") -> tuple[int, str]:
    async with aiohttp.ClientSession() as session, session.request(method, f"http://127.0.0.1:{port}{path}") as answer:
        return answer.status, await answer.text()


async def endpoints(system: System) -> Endpoints:
    return await system.client("test").get(Endpoints, KEY)


async def test_both_components_have_a_page_and_endpoints(system: System, ports: Ports):
    async with metrics_ports.metrics_ports(system):
        scheduler, controllers = (
            await fetched(ports.scheduler, "/metrics"),
            await fetched(ports.controllers, "/metrics"),
        )
        subsets = (await endpoints(system)).subsets

    assert (scheduler[0], controllers[0]) == (200, 200)
    assert "volcano_" in scheduler[1]
    assert subsets[0]["addresses"] == [{"ip": "127.0.0.1"}]
    assert subsets[0]["ports"][0]["port"] == ports.scheduler


async def test_what_acts_is_not_served_without_a_user(system: System, ports: Ports):
    async with metrics_ports.metrics_ports(system):
        simulated = await fetched(ports.scheduler, "/simulate", "POST")
        state = await fetched(ports.scheduler, "/state")

    assert (simulated[0], state[0]) == (404, 404)


async def test_a_port_of_another_program_is_left_out(system: System, ports: Ports, caplog: pytest.LogCaptureFixture):
    async with metrics_ports.metrics_ports(system):
        pass
    taken = bind("127.0.0.1", ports.scheduler)

    async with metrics_ports.metrics_ports(system):
        with pytest.raises(NotFound):
            await endpoints(system)
    taken.close()

    assert f"port {ports.scheduler} is in use" in caplog.text
