"""The API server as a Service of its own cluster: there from the start, and true after it has moved."""

from __future__ import annotations

import msgspec

from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN
from volcano.embedded.apiserver.upkeep.own_service import publish
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request

SERVICE = "/api/v1/namespaces/default/services/kubernetes"
ENDPOINTS = "/api/v1/namespaces/default/endpoints/kubernetes"
SLICE = "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes"


async def read(server: ApiServer, path: str) -> dict:
    answer = await server.handle(Request("GET", path, user=ADMIN))
    assert answer.status == 200, answer.body
    return msgspec.json.decode(answer.body)


async def test_the_service_leads_to_where_the_server_listens_now():
    server = ApiServer(MemoryStore(), clock=SystemClock())
    await server.start()

    await publish(server.handle, "10.1.2.3", 6443, b"authority")
    first = await read(server, SERVICE)
    await publish(server.handle, "10.1.2.4", 7443, b"authority")

    service = await read(server, SERVICE)
    assert service["spec"]["clusterIP"] == first["spec"]["clusterIP"] == "10.96.0.1"
    assert [(p["name"], p["port"], p["targetPort"]) for p in service["spec"]["ports"]] == [("https", 443, 7443)]
    assert service["metadata"]["uid"] == first["metadata"]["uid"]
    subset = (await read(server, ENDPOINTS))["subsets"][0]
    assert ([a["ip"] for a in subset["addresses"]], subset["ports"][0]["port"]) == (["10.1.2.4"], 7443)
    found = await read(server, SLICE)
    assert found["metadata"]["labels"]["kubernetes.io/service-name"] == "kubernetes"
    assert (found["endpoints"][0]["addresses"], found["ports"][0]["port"]) == (["10.1.2.4"], 7443)
    await server.close()


async def test_publishing_the_same_again_changes_nothing():
    server = ApiServer(MemoryStore(), clock=SystemClock())
    await server.start()
    await publish(server.handle, "::1", 6443, b"authority")
    before = [(await read(server, path))["metadata"]["resourceVersion"] for path in (SERVICE, ENDPOINTS, SLICE)]

    await publish(server.handle, "::1", 6443, b"authority")

    assert [(await read(server, path))["metadata"]["resourceVersion"] for path in (SERVICE, ENDPOINTS, SLICE)] == before
    assert (await read(server, SLICE))["addressType"] == "IPv6"
    await server.close()


async def test_a_server_that_cannot_keep_its_service_starts_all_the_same(caplog):
    server = ApiServer(MemoryStore(), clock=SystemClock())
    await server.start()
    other = {"metadata": {"name": "other"}, "spec": {"clusterIP": "10.96.0.1", "ports": [{"port": 80}]}}
    headers = {"content-type": "application/json"}
    path = SERVICE.removesuffix("/kubernetes")
    made = await server.handle(Request("POST", path, headers=headers, body=msgspec.json.encode(other), user=ADMIN))
    assert made.status == 201

    await publish(server.handle, "10.1.2.3", 6443, b"authority")

    assert "already allocated" in caplog.text
    await server.close()
