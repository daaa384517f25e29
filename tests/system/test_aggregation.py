"""An extension API server behind an APIService: discovery, requests, identity, and what is said while it is away."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.system.test_service_webhooks import make_service
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.serving.serve import serve
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.certificates import Authority, write_private
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request, Response, User

API_SERVICES = "/apis/apiregistration.k8s.io/v1/apiservices"
NAME = "v1.things.example.com"
THINGS = "/apis/things.example.com/v1/namespaces/default/things"
DEADLINE_SECONDS = 20.0
AGGREGATED = {"accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
TINA = User("tina", ("system:masters", "testers"), extra={"scopes": ("read",)})


class ExtensionSite:
    """An API server, and an extension server that keeps what it is asked."""

    def __init__(self, server: ApiServer) -> None:
        self.server = server
        self.requests: list[web.Request] = []
        self.peers: list[str] = []
        self.bundle = ""

    async def send(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        user: User = ADMIN,
        headers: dict[str, str] | None = None,
        **query: str,
    ) -> Response:
        raw = msgspec.json.encode(body) if body is not None else b""
        given = {"content-type": "application/json", **(headers or {})}
        return await self.server.handle(Request(method, path, tuple(query.items()), given, raw, user))

    async def body(self, method: str, path: str, body: Any = None, **query: str) -> Any:
        answer = await self.send(method, path, body, **query)
        assert answer.status < 400, answer.body
        return msgspec.json.decode(answer.body)

    async def condition(self, reason: str) -> dict[str, Any]:
        """The condition, once it has this reason."""
        async with asyncio.timeout(DEADLINE_SECONDS):
            while True:
                obj = await self.body("GET", f"{API_SERVICES}/{NAME}")
                conditions = obj.get("status", {}).get("conditions") or [{}]
                if conditions[0].get("reason") == reason:
                    found: dict[str, Any] = conditions[0]
                    return found
                await asyncio.sleep(0.02)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.requests.append(request)
        assert request.transport is not None
        subject = dict(pair for part in request.transport.get_extra_info("peercert")["subject"] for pair in part)
        self.peers.append(subject["commonName"])
        if request.path == "/apis/things.example.com/v1":
            verbs = ["get", "list"]
            things = [
                {"name": "things", "singularName": "thing", "namespaced": True, "kind": "Thing", "verbs": verbs},
                {"name": "things/size", "singularName": "", "namespaced": True, "kind": "Size", "verbs": ["get"]},
            ]
            return web.json_response(
                {"kind": "APIResourceList", "groupVersion": "things.example.com/v1", "resources": things}
            )
        if request.query.get("watch"):
            stream = web.StreamResponse()
            await stream.prepare(request)
            await stream.write(b'{"type":"ADDED","object":{}}\n')
            return stream
        return web.json_response({"kind": "Thing", "body": (await request.read()).decode()}, status=203)


@pytest.fixture
async def site(tmp_path: Path) -> AsyncIterator[ExtensionSite]:
    clock = SystemClock()
    server = ApiServer(MemoryStore(), clock=clock)
    await server.start()
    pki = tmp_path / "pki"
    async with serve(server, pki=pki, clock=clock, port=None):
        authority = Authority(pki, clock.now())
        pair = authority.issue("things", (), clock.now(), hosts=["things.tools.svc"])
        write_private(tmp_path / "things.pem", pair.certificate + pair.key)
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(authority.certificate_path))
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_cert_chain(tmp_path / "things.pem")
        site = ExtensionSite(server)
        site.bundle = base64.b64encode(authority.pair.certificate).decode()
        app = web.Application()
        app.add_routes([web.route("*", "/{path:.*}", site.answer)])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context).start()
        await site.body("POST", "/api/v1/namespaces", {"metadata": {"name": "tools"}})
        await register(site)
        await site.condition("ServiceNotFound")
        await make_service(site, "things", runner.addresses[0][1])  # type: ignore[arg-type]
        yield site
        await runner.cleanup()
    await server.close()


async def register(site: ExtensionSite) -> None:
    spec = {
        "group": "things.example.com", "version": "v1", "groupPriorityMinimum": 100, "versionPriority": 10,
        "service": {"namespace": "tools", "name": "things"}, "caBundle": site.bundle,
    }  # fmt: skip
    await site.body("POST", API_SERVICES, {"metadata": {"name": NAME}, "spec": spec})


async def test_it_becomes_available_and_is_in_every_form_of_discovery(site: ExtensionSite):
    await site.condition("Passed")

    groups = await site.body("GET", "/apis")
    listed = await site.body("GET", "/apis/things.example.com/v1")
    aggregated = msgspec.json.decode((await site.send("GET", "/apis", headers=AGGREGATED)).body)
    group = next(item for item in aggregated["items"] if item["metadata"]["name"] == "things.example.com")
    resource = group["versions"][0]["resources"][0]

    assert "things.example.com" in [each["name"] for each in groups["groups"]]
    assert [each["name"] for each in listed["resources"]] == ["things", "things/size"]
    assert group["versions"][0]["freshness"] == "Current"
    assert (resource["resource"], resource["responseKind"]["kind"]) == ("things", "Thing")
    assert resource["subresources"][0]["subresource"] == "size"


async def test_a_request_is_passed_on_with_the_callers_identity_and_no_other(site: ExtensionSite):
    await site.condition("Passed")
    forged = {"x-remote-user": "system:admin", "X-Remote-Group": "forged", "authorization": "Bearer secret"}

    answer = await site.send("POST", THINGS, {"size": 3}, user=TINA, headers=forged, dryRun="All")
    asked = site.requests[-1]

    assert (answer.status, msgspec.json.decode(answer.body)["body"]) == (203, '{"size":3}')
    assert (asked.method, asked.path, dict(asked.query)) == ("POST", THINGS, {"dryRun": "All"})
    assert asked.headers.getall("x-remote-user") == ["tina"]
    assert asked.headers.getall("x-remote-group") == ["system:masters", "testers"]
    assert asked.headers["x-remote-extra-scopes"] == "read"
    assert "authorization" not in asked.headers
    assert site.peers[-1] == "front-proxy-client"


async def test_a_watch_is_a_stream(site: ExtensionSite):
    await site.condition("Passed")

    answer = await site.send("GET", THINGS, watch="true")

    assert answer.stream is not None
    assert await anext(answer.stream) == b'{"type":"ADDED","object":{}}\n'
    await answer.stream.aclose()  # type: ignore[attr-defined]


async def test_who_may_not_ask_here_is_refused_before_the_extension_is_asked(site: ExtensionSite):
    await site.condition("Passed")
    before = len(site.requests)

    answer = await site.send("GET", THINGS, user=User("nobody"))

    assert (answer.status, len(site.requests)) == (403, before)


async def test_without_endpoints_it_is_unavailable_and_says_so(site: ExtensionSite):
    await site.condition("Passed")
    await site.send("DELETE", "/api/v1/namespaces/tools/endpoints/things")

    condition = await site.condition("MissingEndpoints")
    answer = await site.send("GET", THINGS)

    assert condition["status"] == "False"
    assert (answer.status, b"no endpoints available" in answer.body) == (503, True)


async def test_once_it_is_deleted_its_group_is_gone(site: ExtensionSite):
    await site.condition("Passed")

    await site.send("DELETE", f"{API_SERVICES}/{NAME}")

    assert (await site.send("GET", THINGS)).status == 404
    groups = await site.body("GET", "/apis")
    assert "things.example.com" not in [each["name"] for each in groups["groups"]]


async def test_extension_servers_learn_how_to_know_this_one(site: ExtensionSite):
    found = await site.body("GET", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication")

    assert found["data"]["requestheader-allowed-names"] == '["front-proxy-client"]'
    assert base64.b64encode(found["data"]["requestheader-client-ca-file"].encode()).decode() == site.bundle
