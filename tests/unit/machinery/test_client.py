"""The client: what it asks, and what it makes of answers."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from tests.unit.machinery.scripted_transport import ScriptedTransport, a_list, a_map
from volcano.api.core import ConfigMap
from volcano.api.errors import ApiError, Conflict, Gone, InternalError, NotFound, TooManyRequests
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.machinery.client import Client
from volcano.machinery.clock import run_virtually
from volcano.machinery.transport import InProcess, Request, Response, User

MAPS = resource_type(ConfigMap)
ALL, ONE = "/api/v1/namespaces/ns/configmaps", "/api/v1/namespaces/ns/configmaps/a"
A = Key("ns", "a")


def with_client(story: Callable[[Client, ScriptedTransport], Awaitable[Any]], **scripted: Any) -> ScriptedTransport:
    transport = ScriptedTransport()
    for name, answer in scripted.items():
        transport.answers(name, ONE if name in ("GET", "PUT", "PATCH", "DELETE") else ALL, answer)

    async def main() -> None:
        await story(Client(transport, agent="test"), transport)

    run_virtually(main())
    return transport


def test_objects_are_read_typed_and_as_json():
    async def story(client: Client, _transport: ScriptedTransport) -> None:
        found = await client.get(ConfigMap, A)
        assert found.name == "a" and (await client.get_json(MAPS, A))["data"] == {"x": "1"}

    transport = with_client(story, GET=a_map("a", x="1"))

    assert transport.requests[0].headers == {"accept": "application/json", "user-agent": "test"}


def test_a_list_names_what_it_could_not_read():
    async def story(client: Client, transport: ScriptedTransport) -> None:
        transport.answers("GET", ALL, a_list(a_map("a"), {**a_map("b"), "data": 5}, next_page="more"))
        page = await client.list(ConfigMap, "ns", limit=2, labels="l", next_page="here")
        assert [each.name for each in page.items] == ["a"] and len(page.set_aside) == 1
        assert (page.next, page.resource_version) == ("more", "10")
        assert len((await client.list_json(MAPS, "ns", limit="2"))["items"]) == 2

    transport = with_client(story)

    assert transport.requests[0].query == (("labelSelector", "l"), ("limit", "2"), ("continue", "here"))


def test_writes_carry_kind_and_type():
    async def story(client: Client, transport: ScriptedTransport) -> None:
        transport.answers("POST", "/api/v1/namespaces/default/configmaps", {})
        transport.answers("PUT", f"{ONE}/status", {})
        await client.create(MAPS, {"metadata": {"name": "a"}}, dryRun="All")
        await client.update(MAPS, a_map("a"), "status")
        await client.patch(MAPS, A, {"data": {}}, kind="strategic")
        await client.delete(MAPS, A)
        await client.close()

    transport = with_client(story, PATCH={}, DELETE={})

    created, updated, patched, deleted = transport.requests
    assert transport.bodies("POST")[0]["kind"] == "ConfigMap" and created.param("dryRun") == "All"
    assert updated.headers["content-type"] == "application/json"
    assert patched.headers["content-type"] == "application/strategic-merge-patch+json"
    assert deleted.body == b"" and "content-type" not in deleted.headers


@pytest.mark.parametrize(
    ("answer", "kind", "message"),
    [
        (NotFound.of("configmaps", "a"), NotFound, 'configmaps "a" not found'),
        (Conflict.of("configmaps", "a", "stale"), Conflict, "stale"),
        (Response(500, {}, b"panic"), InternalError, "panic"),
        (Response(418, {}, b"[]"), ApiError, r"\[\]"),
        (Response(404, {}, b""), NotFound, "the server answered 404"),
    ],
)
def test_an_error_answer_becomes_its_exception(answer: Any, kind: type[ApiError], message: str):
    async def story(client: Client, _transport: ScriptedTransport) -> None:
        with pytest.raises(kind, match=message):
            await client.get_json(MAPS, A)

    with_client(story, GET=answer)


def test_how_long_to_wait_may_be_in_a_header():
    async def story(client: Client, _transport: ScriptedTransport) -> None:
        with pytest.raises(TooManyRequests) as refused:
            await client.get_json(MAPS, A)
        assert refused.value.retry_after == 7

    with_client(story, GET=Response(429, {"retry-after": "7"}, b"{}"))


async def _pieces(*pieces: bytes) -> AsyncIterator[bytes]:
    for piece in pieces:
        yield piece


def test_events_are_put_together_from_pieces_and_an_error_event_is_raised():
    pieces = _pieces(b'{"type":"ADDED","object":{"a"', b":1}}\n\n", b'{"type":"ERROR","object":{"code":410}}\n')

    async def story(client: Client, transport: ScriptedTransport) -> None:
        transport.answers("WATCH", ALL, Response(stream=pieces))
        seen = []
        with pytest.raises(Gone):
            async with client.watch(MAPS, "ns", resourceVersion="5") as events:
                async for event in events:
                    seen.append((event.type, bytes(event.object)))
        assert seen == [("ADDED", b'{"a":1}')]

    with_client(story)


def test_an_error_that_is_streamed_is_read_whole_and_a_body_that_is_not_is_one_piece():
    async def story(client: Client, transport: ScriptedTransport) -> None:
        transport.answers("WATCH", ALL, Response(403, stream=_pieces(b'{"kind":"Status",', b'"message":"no"}')))
        with pytest.raises(ApiError, match="no"):
            async with client.watch(MAPS, "ns"):
                raise AssertionError("it was refused")
        async with client.stream(Request("GET", ONE)) as chunks:
            assert [chunk async for chunk in chunks] == [b"whole"]

    with_client(story, GET=Response(body=b"whole"))


def test_in_process_requests_are_made_as_the_given_user():
    seen: list[Request] = []

    async def handler(request: Request) -> Response:
        seen.append(request)
        return Response(body=b"{}")

    async def main() -> None:
        transport = InProcess(handler, User("ann", ("g",)))
        await Client(transport).get_json(MAPS, A)
        await transport.close()

    run_virtually(main())

    (request,) = seen
    assert request.user == User("ann", ("g",))
    assert request.params("x") == [] and request.param("x", "y") == "y"
