"""metrics.k8s.io: simulated pods use a share of their request; nodes that do not answer are left out."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import msgspec
import pytest

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request

ROOT = "/apis/metrics.k8s.io/v1beta1"


class Site:
    def __init__(self, server: ApiServer) -> None:
        self._server = server

    async def ask(self, method: str, path: str, body: Any = None, **query: str) -> tuple[int, Any]:
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        answer = await self._server.handle(Request(method, path, tuple(query.items()), headers, raw, ADMIN))
        return answer.status, msgspec.json.decode(answer.body)

    async def node(self, name: str, runtime: str, port: int = 0) -> None:
        endpoint = {"daemonEndpoints": {"kubeletEndpoint": {"Port": port}}} if port else {}
        addresses = [{"type": "InternalIP", "address": "127.0.0.1"}]
        status = {"nodeInfo": {"containerRuntimeVersion": f"{runtime}://1"}, "addresses": addresses, **endpoint}
        assert (await self.ask("POST", "/api/v1/nodes", {"metadata": {"name": name}}))[0] == 201
        assert (await self.ask("PATCH", f"/api/v1/nodes/{name}/status", {"status": status}))[0] == 200

    async def pod(self, name: str, node: str, phase: str = "Running", **requests: str) -> None:
        containers = [{"name": "c", "image": "i", "resources": {"requests": requests}}]
        body = {
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {"nodeName": node, "containers": containers},
        }
        path = "/api/v1/namespaces/default/pods"
        assert (await self.ask("POST", path, body))[0] == 201
        assert (await self.ask("PATCH", f"{path}/{name}/status", {"status": {"phase": phase}}))[0] == 200


@pytest.fixture
async def site() -> AsyncIterator[Site]:
    server = ApiServer(MemoryStore(), clock=SystemClock())
    await server.start()
    yield Site(server)
    await server.close()


async def test_a_simulated_pod_uses_half_of_what_it_requests(site: Site):
    await site.node("sim-0", "simulated")
    await site.pod("a", "sim-0", cpu="3", memory="1Gi")
    await site.pod("b", "sim-0", cpu="500m", memory="1Mi")
    await site.pod("done", "sim-0", "Succeeded", cpu="4")

    _, pods = await site.ask("GET", f"{ROOT}/namespaces/default/pods")
    _, nodes = await site.ask("GET", f"{ROOT}/nodes")

    used = {item["metadata"]["name"]: item["containers"] for item in pods["items"]}
    assert used == {
        "a": [{"name": "c", "usage": {"cpu": "1500000000n", "memory": "524288Ki"}}],
        "b": [{"name": "c", "usage": {"cpu": "250000000n", "memory": "512Ki"}}],
    }
    (node,) = nodes["items"]
    assert node["usage"] == {"cpu": "1750000000n", "memory": "524800Ki"}
    assert (pods["kind"], nodes["kind"]) == ("PodMetricsList", "NodeMetricsList")


async def test_one_pod_and_a_selection_can_be_asked_for(site: Site):
    await site.node("sim-0", "simulated")
    await site.pod("a", "sim-0", cpu="1")
    await site.pod("b", "sim-0", cpu="1")

    status, one = await site.ask("GET", f"{ROOT}/namespaces/default/pods/a")
    _, some = await site.ask("GET", f"{ROOT}/pods", labelSelector="app=b")

    assert (status, one["kind"], one["metadata"]["name"]) == (200, "PodMetrics", "a")
    assert [item["metadata"]["name"] for item in some["items"]] == ["b"]


async def test_a_node_that_does_not_answer_is_left_out(site: Site):
    await site.node("far", "process", port=1)
    await site.pod("a", "far", cpu="1")

    _, nodes = await site.ask("GET", f"{ROOT}/nodes")
    status, missing = await site.ask("GET", f"{ROOT}/namespaces/default/pods/a")

    assert nodes["items"] == []
    assert (status, missing["message"]) == (404, 'pods.metrics.k8s.io "a" not found')


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("POST", f"{ROOT}/nodes", 405),
        ("DELETE", f"{ROOT}/nodes/n", 405),
        ("GET", f"{ROOT}/services", 404),
        ("GET", "/apis/metrics.k8s.io/v1/nodes", 404),
    ],
)
async def test_what_is_not_measured_is_refused(site: Site, method: str, path: str, status: int):
    assert (await site.ask(method, path, {} if method == "POST" else None))[0] == status


async def test_a_selector_that_is_none_is_a_bad_request(site: Site):
    assert (await site.ask("GET", f"{ROOT}/pods", labelSelector="a in b"))[0] == 400


async def test_discovery_lists_the_metrics(site: Site):
    _, groups = await site.ask("GET", "/apis")
    _, resources = await site.ask("GET", ROOT)

    assert "metrics.k8s.io" in {group["name"] for group in groups["groups"]}
    assert [(r["name"], r["kind"], r["verbs"]) for r in resources["resources"]] == [
        ("nodes", "NodeMetrics", ["get", "list"]),
        ("pods", "PodMetrics", ["get", "list"]),
    ]
