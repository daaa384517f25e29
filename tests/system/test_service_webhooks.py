"""Webhooks named by a Service: reached at its endpoint, trusted by the service's name; and conversion by such a one."""

from __future__ import annotations

import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.contract.bodies import a_config
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.certificates import Authority, write_private
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request, Response

ADMISSION = "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
CONFIGS = "/api/v1/namespaces/default/configmaps"
V1, V2 = (f"/apis/example.com/{version}/namespaces/default/machines" for version in ("v1", "v2"))
LINES = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}


class Site:
    """An API server, and the pod of a Service `hooks` in `tools` whose certificate names the service alone."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.bundle = ""
        self.hosts: list[str] = []
        self.reviews: list[dict[str, Any]] = []
        self.failure = ""

    def client_config(self, **fields: Any) -> dict[str, Any]:
        service = {"namespace": "tools", "name": "hooks", "path": "/hook", **fields}
        return {"service": service, "caBundle": self.bundle}

    async def send(self, method: str, path: str, body: Any = None, **query: str) -> Response:
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        raw = msgspec.json.encode(body) if body is not None else b""
        return await self.server.handle(Request(method, path, tuple(query.items()), headers, raw, ADMIN))

    async def body(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        answer = await self.send(method, path, body, **query)
        assert answer.status < 400, answer.body
        return msgspec.json.decode(answer.body)

    async def answer(self, request: web.Request) -> web.Response:
        review = await request.json()
        self.hosts.append(request.headers["host"])
        self.reviews.append(review)
        asked = review["request"]
        if review["kind"] == "AdmissionReview":
            return web.json_response({**review, "response": {"uid": asked["uid"], "allowed": True}})
        result = {"status": "Failed", "message": self.failure} if self.failure else {"status": "Success"}
        objects = [converted(obj, asked["desiredAPIVersion"]) for obj in asked["objects"]]
        return web.json_response(
            {**review, "response": {"uid": asked["uid"], "result": result, "convertedObjects": objects}}
        )


def converted(obj: dict[str, Any], version: str) -> dict[str, Any]:
    """Version 1 has `size: "3x4"`, version 2 `width` and `height`."""
    spec = dict(obj["spec"])
    if version.endswith("v2"):
        width, height = spec.pop("size").split("x")
        spec |= {"width": int(width), "height": int(height)}
    else:
        spec["size"] = f"{spec.pop('width')}x{spec.pop('height')}"
    return {**obj, "apiVersion": version, "spec": spec}


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[Site]:
    clock = SystemClock()
    authority = Authority(tmp_path, clock.now())
    pair = authority.issue("hooks", (), clock.now(), hosts=["hooks.tools.svc"])
    write_private(tmp_path / "hooks.pem", pair.certificate + pair.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "hooks.pem")
    server = ApiServer(MemoryStore(), clock=clock)
    await server.start()
    site = Site(server)
    site.bundle = base64.b64encode(authority.pair.certificate).decode()
    app = web.Application()
    app.add_routes([web.post("/hook", site.answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
    await site.body("POST", "/api/v1/namespaces", {"metadata": {"name": "tools"}})
    await make_service(site, "hooks", runner.addresses[0][1])
    yield site
    await runner.cleanup()
    await server.close()


async def make_service(site: Site, name: str, port: int) -> None:
    spec = {"ports": [{"name": "https", "port": 443, "targetPort": port}]}
    await site.body("POST", "/api/v1/namespaces/tools/services", {"metadata": {"name": name}, "spec": spec})
    subsets = [{"addresses": [{"ip": "127.0.0.1"}], "ports": [{"name": "https", "port": port}]}]
    await site.body("POST", "/api/v1/namespaces/tools/endpoints", {"metadata": {"name": name}, "subsets": subsets})


async def register(site: Site, **service: Any) -> None:
    rules = [{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}]
    webhook = {
        "name": "hooks.example.com", "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
        "clientConfig": site.client_config(**service),
    }  # fmt: skip
    await site.body("POST", ADMISSION, {"metadata": {"name": "hooks"}, "webhooks": [webhook]})


async def test_a_webhook_is_reached_at_an_endpoint_and_trusted_by_its_services_name(site: Site):
    await register(site)

    answer = await site.send("POST", CONFIGS, a_config("a"))

    assert answer.status == 201, answer.body
    assert site.hosts == ["hooks.tools.svc"]


async def test_a_certificate_for_another_service_is_refused(site: Site):
    port = msgspec.json.decode((await site.send("GET", "/api/v1/namespaces/tools/endpoints/hooks")).body)
    await make_service(site, "others", port["subsets"][0]["ports"][0]["port"])
    await register(site, name="others")

    answer = await site.send("POST", CONFIGS, a_config("a"))

    assert answer.status == 500
    assert b"others.tools.svc" in answer.body
    assert site.reviews == []


async def test_a_port_that_the_service_does_not_have_is_named(site: Site):
    await register(site, port=8443)

    answer = await site.send("POST", CONFIGS, a_config("a"))

    assert b'no service port 8443 found for service \\"hooks\\"' in answer.body


@pytest.fixture
async def machines(site: Site) -> Site:
    """A definition that stores v2 and serves both."""
    versions = [
        {"name": name, "served": True, "storage": name == "v2", "schema": {"openAPIV3Schema": LINES}}
        for name in ("v1", "v2")
    ]
    conversion = {
        "strategy": "Webhook",
        "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": site.client_config()},
    }
    names = {"plural": "machines", "singular": "machine", "kind": "Machine", "listKind": "MachineList"}
    spec = {"group": "example.com", "scope": "Namespaced", "names": names, "versions": versions}
    body = {"metadata": {"name": "machines.example.com"}, "spec": {**spec, "conversion": conversion}}
    await site.body("POST", DEFINITIONS, body)
    return site


def machine(name: str, **spec: Any) -> dict[str, Any]:
    version = "v1" if "size" in spec else "v2"
    return {"apiVersion": f"example.com/{version}", "kind": "Machine", "metadata": {"name": name}, "spec": spec}


async def test_an_object_is_read_and_listed_in_the_version_that_is_asked_for(machines: Site):
    made = await machines.body("POST", V1, machine("a", size="3x4"))
    await machines.body("POST", V2, machine("b", width=5, height=6))

    first = await machines.body("GET", f"{V2}/a")
    listed = await machines.body("GET", V1)

    assert (made["apiVersion"], made["spec"]) == ("example.com/v1", {"size": "3x4"})
    assert (first["apiVersion"], first["spec"]) == ("example.com/v2", {"width": 3, "height": 4})
    assert first["metadata"]["resourceVersion"] == made["metadata"]["resourceVersion"]
    assert [item["spec"]["size"] for item in listed["items"]] == ["3x4", "5x6"]
    assert {item["apiVersion"] for item in listed["items"]} == {"example.com/v1"}


async def test_an_object_is_changed_and_deleted_in_another_version_than_the_stored_one(machines: Site):
    await machines.body("POST", V2, machine("a", width=1, height=2))

    changed = await machines.body("PATCH", f"{V1}/a", {"spec": {"size": "7x8"}})
    stored = await machines.body("GET", f"{V2}/a")
    await machines.body("DELETE", f"{V1}/a")

    assert changed["spec"] == {"size": "7x8"}
    assert stored["spec"] == {"width": 7, "height": 8}
    assert (await machines.send("GET", f"{V2}/a")).status == 404


async def test_a_watch_tells_of_objects_in_its_version(machines: Site):
    await machines.body("POST", V2, machine("a", width=1, height=2))
    watch = await machines.send("GET", V1, watch="true")
    assert watch.stream is not None

    first = msgspec.json.decode(await anext(watch.stream))
    await machines.body("PATCH", f"{V2}/a", {"spec": {"width": 9}})
    second = msgspec.json.decode(await anext(watch.stream))
    await watch.stream.aclose()  # type: ignore[attr-defined]

    assert (first["type"], first["object"]["spec"]) == ("ADDED", {"size": "1x2"})
    assert (second["type"], second["object"]["spec"]) == ("MODIFIED", {"size": "9x2"})


async def test_what_the_webhook_cannot_convert_is_an_error_with_its_message(machines: Site):
    await machines.body("POST", V2, machine("a", width=1, height=2))
    machines.failure = "width is too wide"

    answer = await machines.send("GET", f"{V1}/a")

    assert answer.status == 500
    assert msgspec.json.decode(answer.body)["message"] == (
        "conversion webhook for example.com/v2, Kind=Machine failed: width is too wide"
    )
    assert (await machines.send("GET", f"{V2}/a")).status == 200
