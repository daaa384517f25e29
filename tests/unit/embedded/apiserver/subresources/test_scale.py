"""scale: whatever a client sends, and whatever a custom object has where its definition says, no answer is a 5xx."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import VirtualClock
from volcano.machinery.transport import Request

SETS = "/apis/apps/v1/namespaces/default/replicasets"
THINGS = "/apis/example.org/v1/namespaces/default/things"
SET = {
    "metadata": {"name": "one"},
    "spec": {
        "replicas": 0,
        "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "busybox"}]}},
    },
}
ANYTHING = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
DEFINITION = {
    "metadata": {"name": "things.example.org"},
    "spec": {
        "group": "example.org",
        "scope": "Namespaced",
        "names": {"kind": "Thing", "plural": "things"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {"openAPIV3Schema": {"type": "object", "properties": {"spec": ANYTHING, "status": ANYTHING}}},
                "subresources": {
                    "scale": {
                        "specReplicasPath": ".spec.inner.replicas",
                        "statusReplicasPath": ".status.replicas",
                        "labelSelectorPath": ".spec.labels",
                    }
                },
            }
        ],
    },
}


@pytest.fixture
async def server() -> ApiServer:
    server = ApiServer(MemoryStore(), clock=VirtualClock())
    assert await send(server, "POST", "/api/v1/namespaces", {"metadata": {"name": "default"}}) in (201, 409)
    return server


async def send(server: ApiServer, method: str, path: str, body: Any = None, media: str = "application/json") -> int:
    raw = b"" if body is None else msgspec.json.encode(body)
    request = Request(method, path, headers={"content-type": media}, body=raw, user=ADMIN)
    return (await server.handle(request)).status


@pytest.mark.parametrize(
    "body",
    [{"spec": [1]}, {"spec": "x"}, {"metadata": "x"}, {"metadata": [1]}, {"spec": {"replicas": 2**63}}],
    ids=repr,
)
async def test_a_scale_of_wrong_types_is_a_bad_request(server: ApiServer, body: Any):
    assert await send(server, "POST", SETS, SET) == 201

    assert await send(server, "PUT", f"{SETS}/one/scale", body) == 400
    for media in ("merge-patch", "strategic-merge-patch"):
        assert await send(server, "PATCH", f"{SETS}/one/scale", body, f"application/{media}+json") == 400
    assert await send(server, "PUT", f"{SETS}/one/scale", {"spec": {"replicas": 2}}) == 200


@pytest.mark.parametrize("inner", [None, "text", [1], 5], ids=repr)
@pytest.mark.parametrize("labels", [{"matchLabels": {"a": 1}}, {"matchExpressions": 5}, {"a": 5}], ids=repr)
async def test_a_custom_object_may_have_anything_at_its_paths(server: ApiServer, inner: Any, labels: Any):
    definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
    assert await send(server, "POST", definitions, DEFINITION) == 201
    thing = {"metadata": {"name": "one"}, "spec": {"inner": inner, "labels": labels}}
    assert await send(server, "POST", THINGS, thing) == 201

    assert await send(server, "GET", f"{THINGS}/one/scale") == 200
    wanted = 200 if inner is None else 400
    assert await send(server, "PUT", f"{THINGS}/one/scale", {"spec": {"replicas": 2}}) == wanted
