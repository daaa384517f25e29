"""Registered admission webhooks, called over HTTPS as Kubernetes does."""

from __future__ import annotations

import asyncio
import base64
import ssl
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tests.contract.bodies import a_config
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.certificates import Authority
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import Request, Response

CONFIGS = "/api/v1/namespaces/default/configmaps"
ROOT = "/apis/admissionregistration.k8s.io/v1"
Answer = Callable[[dict[str, Any]], dict[str, Any] | str]


class Place:
    """An API server and a webhook server beside it; `answers` decides what each path of the latter says."""

    def __init__(self, server: ApiServer, url: str, bundle: str) -> None:
        self.server, self.url, self.bundle = server, url, bundle
        self.answers: dict[str, Answer] = {}
        self.asked: list[tuple[str, dict[str, Any]]] = []

    async def send(self, method: str, path: str, body: Any = None, **query: str) -> Response:
        headers = {"content-type": "application/merge-patch+json" if method == "PATCH" else "application/json"}
        raw = msgspec.json.encode(body) if body is not None else b""
        return await self.server.handle(Request(method, path, tuple(query.items()), headers, raw, ADMIN))

    async def register(self, kind: str, name: str, *webhooks: dict[str, Any]) -> None:
        plural = f"{kind.lower()}webhookconfigurations"
        body = {"metadata": {"name": name}, "webhooks": list(webhooks)}
        answer = await self.send("POST", f"{ROOT}/{plural}", body)
        assert answer.status == 201, answer.body

    def webhook(self, path: str, **fields: Any) -> dict[str, Any]:
        rules = [
            {"operations": ["CREATE", "UPDATE"], "apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"]}
        ]
        return {
            "name": f"{path}.example.com", "rules": rules, "sideEffects": "None", "admissionReviewVersions": ["v1"],
            "clientConfig": {"url": f"{self.url}/{path}", "caBundle": self.bundle}, **fields,
        }  # fmt: skip


@pytest.fixture
async def place(tmp_path: Path) -> AsyncIterator[Place]:
    clock = SystemClock()
    authority = Authority(tmp_path, clock.now())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(authority.server_pair(["127.0.0.1"], clock.now()))
    server = ApiServer(MemoryStore(), clock=clock)
    await server.start()
    box: list[Place] = []

    async def answer(request: web.Request) -> web.Response:
        review = await request.json()
        path = request.match_info["path"]
        box[0].asked.append((path, review["request"]))
        said = box[0].answers[path](review["request"])
        if isinstance(said, str):
            return web.Response(text=said, status=500)
        said = {"uid": review["request"]["uid"], **said}
        return web.json_response({"kind": "AdmissionReview", "apiVersion": "admission.k8s.io/v1", "response": said})

    app = web.Application()
    app.add_routes([web.post("/{path}", answer)])
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=context)
    await site.start()
    port = runner.addresses[0][1]
    box.append(Place(server, f"https://127.0.0.1:{port}", base64.b64encode(authority.pair.certificate).decode()))
    yield box[0]
    await runner.cleanup()
    await server.close()


def patch(*operations: dict[str, Any]) -> dict[str, Any]:
    return {
        "allowed": True,
        "patchType": "JSONPatch",
        "patch": base64.b64encode(msgspec.json.encode(operations)).decode(),
    }


async def test_a_mutating_webhook_changes_what_is_stored(place: Place):
    place.answers["m"] = lambda request: patch(
        {"op": "add", "path": "/data/by", "value": request["userInfo"]["username"]}
    )
    await place.register("Mutating", "m", place.webhook("m"))

    made = msgspec.json.decode((await place.send("POST", CONFIGS, a_config("c", a="1"))).body)

    assert made["data"] == {"a": "1", "by": "system:admin"}
    (_, request) = place.asked[0]
    assert (request["operation"], request["namespace"], request["name"], request["kind"]["kind"]) == (
        "CREATE",
        "default",
        "c",
        "ConfigMap",
    )
    assert request["object"]["data"] == {"a": "1"}


async def test_a_validating_webhook_refuses_with_its_message(place: Place):
    place.answers["v"] = lambda _: {
        "allowed": False,
        "status": {"message": "not today", "code": 422, "reason": "Invalid"},
        "warnings": ["w"],
    }
    await place.register("Validating", "v", place.webhook("v"))

    answer = await place.send("POST", CONFIGS, a_config("c"))

    assert answer.status == 422
    message = msgspec.json.decode(answer.body)["message"]
    assert message == 'admission webhook "v.example.com" denied the request: not today'
    assert (await place.send("GET", f"{CONFIGS}/c")).status == 404


@pytest.mark.parametrize(
    ("said", "status", "reason", "message"),
    [
        (None, 400, "", "without explanation"),
        ({"message": "no"}, 400, "", ": no"),
        ({"reason": "Forbidden"}, 400, "Forbidden", ": Forbidden"),
        ({"message": "no", "code": 200, "status": "Success"}, 400, "", ": no"),
        ({"message": "no", "code": 403, "reason": "Forbidden"}, 403, "Forbidden", ": no"),
    ],
)
async def test_a_refusal_without_a_code_is_a_bad_request(place: Place, said, status: int, reason: str, message: str):
    place.answers["v"] = lambda _: {"allowed": False, **({"status": said} if said else {})}
    await place.register("Validating", "v", place.webhook("v"))

    answer = await place.send("POST", CONFIGS, a_config("c"))
    body = msgspec.json.decode(answer.body)

    assert (answer.status, body["code"], body["status"]) == (status, status, "Failure")
    assert body["message"].startswith('admission webhook "v.example.com" denied the request') and body[
        "message"
    ].endswith(message)
    assert not reason or body["reason"] == reason


async def test_mutation_comes_in_name_order_and_before_validation(place: Place):
    for name in ("b", "a"):
        place.answers[name] = lambda request: patch({"op": "add", "path": "/data/last", "value": str(len(place.asked))})
        await place.register("Mutating", name, place.webhook(name))
    place.answers["v"] = lambda request: {"allowed": request["object"]["data"]["last"] == "2"}
    await place.register("Validating", "v", place.webhook("v"))

    answer = await place.send("POST", CONFIGS, a_config("c", a="1"))

    assert answer.status == 201, answer.body
    assert [path for path, _ in place.asked] == ["a", "b", "v"]


async def test_a_webhook_that_asks_for_it_is_called_again(place: Place):
    place.answers["a"] = lambda request: {"allowed": True}
    place.answers["b"] = lambda request: patch({"op": "add", "path": "/data/b", "value": "x"})
    await place.register("Mutating", "a", place.webhook("a", reinvocationPolicy="IfNeeded"))
    await place.register("Mutating", "b", place.webhook("b"))

    await place.send("POST", CONFIGS, a_config("c", a="1"))

    assert [path for path, _ in place.asked] == ["a", "b", "a"]
    assert place.asked[2][1]["object"]["data"] == {"a": "1", "b": "x"}


@pytest.mark.parametrize(("policy", "status"), [("Fail", 500), ("Ignore", 201)])
async def test_a_webhook_that_fails_counts_by_its_policy(place: Place, policy: str, status: int):
    place.answers["v"] = lambda _: "broken"
    await place.register("Validating", "v", place.webhook("v", failurePolicy=policy))

    answer = await place.send("POST", CONFIGS, a_config("c"))

    assert answer.status == status
    if policy == "Fail":
        assert 'failed calling webhook "v.example.com"' in msgspec.json.decode(answer.body)["message"]


async def test_a_webhook_nobody_answers_counts_as_failed(place: Place):
    webhook = place.webhook("v", failurePolicy="Fail", timeoutSeconds=1)
    webhook["clientConfig"] = {"url": "https://127.0.0.1:1/none"}
    await place.register("Validating", "v", webhook)

    assert (await place.send("POST", CONFIGS, a_config("c"))).status == 500


async def test_selectors_rules_and_conditions_say_what_a_webhook_is_about(place: Place):
    pytest.importorskip("cel_expr_python")
    place.answers["v"] = lambda _: {"allowed": False}
    for number, fields in enumerate(
        (
            {"objectSelector": {"matchLabels": {"checked": "yes"}}},
            {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}},
            {"matchConditions": [{"name": "c", "expression": "object.data.a == 'bad'"}]},
            {
                "rules": [
                    {"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}
                ]
            },
        )
    ):
        await place.register("Validating", f"v{number}", place.webhook("v", **fields))
    labelled = a_config("c", a="1")
    labelled["metadata"]["labels"] = {"checked": "yes"}

    assert (await place.send("POST", CONFIGS, labelled)).status == 400
    assert (await place.send("POST", CONFIGS.replace("default", "kube-system"), a_config("c", a="1"))).status == 400
    assert (await place.send("POST", CONFIGS, a_config("c", a="bad"))).status == 400
    assert (await place.send("POST", CONFIGS, a_config("c", a="good"))).status == 201
    assert (await place.send("DELETE", f"{CONFIGS}/c")).status == 400


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"sideEffects": "Some"}, "webhooks[0].sideEffects: Unsupported value"),
        ({"name": "short"}, "should be a domain with at least three segments separated by dots"),
        ({"rules": [{}]}, "webhooks[0].rules[0].operations: Required value"),
        ({"clientConfig": {"url": "http://plain"}}, "'https' is the only allowed URL scheme"),
        ({"admissionReviewVersions": []}, "must specify one of v1, v1beta1"),
        ({"timeoutSeconds": 99}, "the timeout value must be between 1 and 30 seconds"),
    ],
)
async def test_a_configuration_that_cannot_work_is_refused(place: Place, fields: dict, message: str):
    body = {"metadata": {"name": "v"}, "webhooks": [place.webhook("v", **fields)]}

    answer = await place.send("POST", f"{ROOT}/validatingwebhookconfigurations", body)

    assert answer.status == 422
    assert message in msgspec.json.decode(answer.body)["message"]


async def test_warnings_reach_the_client(place: Place):
    place.answers["v"] = lambda _: {"allowed": True, "warnings": ["mind the gap"]}
    await place.register("Validating", "v", place.webhook("v"))

    answer = await place.send("POST", CONFIGS, a_config("c"))

    assert answer.headers["warning"] == '299 - "mind the gap"'


async def test_an_update_shows_the_webhook_old_and_new(place: Place):
    await place.send("POST", CONFIGS, a_config("c", a="1"))
    place.answers["v"] = lambda request: {
        "allowed": request["oldObject"]["data"]["a"] == "1" and request["object"]["data"]["a"] == "2"
    }
    await place.register("Validating", "v", place.webhook("v"))

    answers = await asyncio.gather(place.send("PATCH", f"{CONFIGS}/c", {"data": {"a": "2"}}))

    assert answers[0].status == 200
