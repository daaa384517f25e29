"""resize and ephemeralcontainers change their part of a pod and nothing else, within what may be there."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import VirtualClock
from volcano.machinery.transport import Request

PODS = "/api/v1/namespaces/safe/pods"
SAFE = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
POD = {
    "metadata": {"name": "one"},
    "spec": {
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "c", "image": "busybox", "securityContext": SAFE}],
    },
}
MERGE, STRATEGIC = "application/merge-patch+json", "application/strategic-merge-patch+json"
UNSAFE: list[dict[str, Any]] = [
    {"hostPID": True},
    {"hostNetwork": True},
    {"volumes": [{"name": "v", "hostPath": {"path": "/"}}]},
    {"serviceAccountName": "other"},
    {"securityContext": {"runAsUser": 0, "runAsNonRoot": None}},
    {"nodeName": "elsewhere"},
    {"containers": [{"name": "c", "image": "other", "command": ["sh"], "securityContext": {"privileged": True}}]},
]


@pytest.fixture
async def server() -> ApiServer:
    server = ApiServer(MemoryStore(), clock=VirtualClock())
    space = {"metadata": {"name": "safe", "labels": {"pod-security.kubernetes.io/enforce": "restricted"}}}
    assert (await send(server, "POST", "/api/v1/namespaces", space))[0] == 201
    status, body = await send(server, "POST", PODS, POD)
    assert status == 201, body
    return server


async def send(
    server: ApiServer, method: str, path: str, body: Any = None, media: str = "application/json"
) -> tuple[int, Any]:
    raw = b"" if body is None else msgspec.json.encode(body)
    headers = {"content-type": media}
    response = await server.handle(Request(method, path, headers=headers, body=raw, user=ADMIN))
    return response.status, msgspec.json.decode(response.body)


@pytest.mark.parametrize("change", UNSAFE, ids=lambda change: next(iter(change)))
@pytest.mark.parametrize("part", ["resize", "ephemeralcontainers"])
@pytest.mark.parametrize("way", ["patch", "update", "apply"])
async def test_nothing_else_changes(server: ApiServer, part: str, change: dict[str, Any], way: str):
    _, before = await send(server, "GET", f"{PODS}/one")
    path = f"{PODS}/one/{part}"
    if way == "patch":
        await send(server, "PATCH", path, {"metadata": {"labels": {"a": "b"}}, "spec": change}, STRATEGIC)
    elif way == "update":
        await send(server, "PUT", path, {**before, "spec": {**before["spec"], **change}})
    else:
        given = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "one"}, "spec": change}
        await send(server, "PATCH", f"{path}?x", given, "application/apply-patch+yaml")

    _, after = await send(server, "GET", f"{PODS}/one")

    assert after["spec"] == before["spec"]
    assert after["metadata"].get("labels") == before["metadata"].get("labels")


async def test_resize_changes_resources(server: ApiServer):
    wanted = {"requests": {"cpu": "2"}, "limits": {"cpu": "2"}}
    change = {"spec": {"containers": [{"name": "c", "resources": wanted}]}}

    assert (await send(server, "PATCH", f"{PODS}/one/resize", change, STRATEGIC))[0] == 200
    _, pod = await send(server, "GET", f"{PODS}/one")
    assert pod["spec"]["containers"][0]["resources"] == wanted
    for amount in ("-1", "x", "1e"):
        bad = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": amount}}}]}}
        assert (await send(server, "PATCH", f"{PODS}/one/resize", bad, STRATEGIC))[0] in (400, 422)


async def test_ephemeral_containers_are_added_within_the_rules(server: ApiServer):
    path = f"{PODS}/one/ephemeralcontainers"

    def adding(**container: Any) -> dict[str, Any]:
        return {"spec": {"ephemeralContainers": [{"name": "e", "image": "busybox", **container}]}}

    assert (await send(server, "PATCH", path, adding(securityContext={"privileged": True}), STRATEGIC))[0] == 403
    assert (await send(server, "PATCH", path, adding(securityContext=SAFE, ports=[{"containerPort": 1}]), STRATEGIC))[
        0
    ] == 422
    assert (await send(server, "PATCH", path, adding(securityContext=SAFE), STRATEGIC))[0] == 200
    assert (await send(server, "PATCH", path, {"spec": {"ephemeralContainers": []}}, MERGE))[0] == 422
    added = {"spec": {"ephemeralContainers": [{"name": "f", "image": "busybox", "securityContext": SAFE}]}}
    assert (await send(server, "PATCH", f"{PODS}/one", added, STRATEGIC))[0] == 422


async def test_resize_is_within_the_quota_and_the_limits(server: ApiServer):
    quota = {"metadata": {"name": "q"}, "spec": {"hard": {"requests.cpu": "3"}}}
    limits = {"metadata": {"name": "l"}, "spec": {"limits": [{"type": "Container", "max": {"memory": "1Gi"}}]}}
    assert (await send(server, "POST", "/api/v1/namespaces/safe/resourcequotas", quota))[0] == 201
    assert (await send(server, "POST", "/api/v1/namespaces/safe/limitranges", limits))[0] == 201

    async def resized(cpu: str, memory: str) -> int:
        amounts = {"cpu": cpu, "memory": memory}
        change = {"spec": {"containers": [{"name": "c", "resources": {"requests": amounts, "limits": amounts}}]}}
        return (await send(server, "PATCH", f"{PODS}/one/resize", change, STRATEGIC))[0]

    assert await resized("2", "1Gi") == 200
    assert await resized("3", "1Gi") == 200
    assert await resized("4", "1Gi") == 403
    assert await resized("1", "2Gi") == 403
