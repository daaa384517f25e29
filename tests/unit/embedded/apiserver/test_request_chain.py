"""The steps of a request: their order, and that HTTP and in-process requests pass the same ones."""

from __future__ import annotations

import asyncio

import pytest

from volcano.api.errors import Forbidden, TooManyRequests
from volcano.embedded.apiserver.access.authentication import Subject
from volcano.embedded.apiserver.exchange import Exchange
from volcano.embedded.apiserver.pages.telemetry import Telemetry
from volcano.embedded.apiserver.registry.watch_hub import WatchHub
from volcano.embedded.apiserver.request_chain import MAX_BODY_BYTES, InFlightLimit
from volcano.embedded.apiserver.server import ADMIN, ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.embedded.apiserver.wire.requests import RequestTarget
from volcano.machinery.clock import VirtualClock
from volcano.machinery.transport import Request, Response, User

PODS = "/api/v1/namespaces/default/pods"
TINA = User("tina", ("testers",))


@pytest.fixture
def server() -> ApiServer:
    return ApiServer(MemoryStore(), clock=VirtualClock(), tokens={"tinas": TINA, "masters": ADMIN})


class Body:
    def __init__(self, content: bytes = b"") -> None:
        self.content = content
        self.is_read = False

    async def read(self) -> bytes:
        self.is_read = True
        return self.content


def over_http(
    server: ApiServer, request: Request, body: Body | None = None, subject: Subject | None = None
) -> Response:
    return asyncio.run(server.handle_http(request, subject, (body or Body()).read))


def bearer(token: str, **more: str) -> dict[str, str]:
    return {"authorization": f"Bearer {token}", **more}


def test_the_steps_are_in_this_order(server: ApiServer):
    names = [getattr(step, "__qualname__", type(step).__name__) for step in server._chain.steps]

    assert names == [
        "parse_url",
        "Authentication",
        "Impersonation",
        "Authorization",
        "read_body",
        "Aggregation",
        "LocalPaths",
        "Pages.answer",
        "InFlightLimit",
        "YamlBodies",
        "AccessReviews.answer",
        "ResourceMetrics.answer",
        "ResourceVerbs",
    ]


@pytest.mark.parametrize("path", [PODS, "/api", "/openapi/v2", "/none", "/apis/none/v1/nones"])
@pytest.mark.parametrize("token", ["tinas", "masters"])
def test_a_client_in_this_process_is_answered_as_one_over_http(server: ApiServer, path: str, token: str):
    user = {"tinas": TINA, "masters": ADMIN}[token]

    inside = asyncio.run(server.handle(Request("GET", path, user=user)))
    outside = over_http(server, Request("GET", path, headers=bearer(token)))

    assert (inside.status, inside.body) == (outside.status, outside.body)


def test_a_certificate_names_the_caller(server: ApiServer):
    masters = Subject("root", ("system:masters",))

    assert over_http(server, Request("GET", PODS), subject=masters).status == 200
    assert over_http(server, Request("GET", PODS)).status == 401


def test_the_body_of_a_caller_who_may_not_ask_is_not_read(server: ApiServer):
    unknown, forbidden, allowed = Body(), Body(), Body(b"{}")

    assert over_http(server, Request("POST", PODS, headers=bearer("guessed")), unknown).status == 401
    assert over_http(server, Request("POST", PODS, headers=bearer("tinas")), forbidden).status == 403
    assert over_http(server, Request("POST", PODS, headers=bearer("masters")), allowed).status == 404
    assert (unknown.is_read, forbidden.is_read, allowed.is_read) == (False, False, True)


def test_a_body_in_process_is_bounded_too(server: ApiServer):
    large = Request("POST", PODS, body=b" " * (MAX_BODY_BYTES + 1), user=ADMIN)

    assert asyncio.run(server.handle(large)).status == 413


def test_a_connection_is_authorized_as_the_impersonated_user(server: ApiServer):
    path = f"{PODS}/p/exec"
    masters = Subject("root", ("system:masters",))
    as_tina = Request("GET", path, headers={"impersonate-user": "tina"})

    target = server.authorize_connection(Request("GET", path), masters)
    with pytest.raises(Forbidden, match="tina") as refused:
        server.authorize_connection(as_tina, masters)

    assert (target.name, target.subresource) == ("p", "exec")
    assert 'User "tina" cannot create resource "pods/exec"' in str(refused.value)


def test_requests_in_flight_are_bounded_except_for_masters_and_watches():
    store = MemoryStore()
    telemetry = Telemetry(store, WatchHub(store))
    limit = InFlightLimit(telemetry, max_reads=1, max_writes=1)
    first, second, watch, master = (
        Exchange(Request("GET", PODS), target=RequestTarget(verb, "", "v1", "pods"), user=user)
        for verb, user in (("get", TINA), ("list", TINA), ("watch", TINA), ("get", ADMIN))
    )

    limit(first)
    with pytest.raises(TooManyRequests):
        limit(second)
    limit(watch)
    limit(master)
    assert b'apiserver_current_inflight_requests{request_kind="readOnly"} 1.0' in telemetry.page()
    first.leave()
    limit(second)

    assert second.leave is not None and watch.leave is None and master.leave is None
