"""Requests over HTTP, with aiohttp and with the standard library alone: both are the same to the client."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.https_server import bind, serving_https
from volcano.machinery.kubeconfig import Endpoint, FixedToken
from volcano.machinery.one_shot import OneShot, finish
from volcano.machinery.transport import Request, Response


async def echo(scope: Any, receive: Any, send: Any) -> None:
    """Answers with what it was asked; `/stream` in two pieces, `/broken` half of what it promises."""
    message = await receive()
    headers = {name.decode(): value.decode() for name, value in scope["headers"]}
    shown = f"{scope['method']} {scope['path']}?{scope['query_string'].decode()} {headers.get('authorization', '')}"
    shown += f" {headers.get('impersonate-user', '')} {message.get('body', b'').decode()}"
    status = 404 if scope["path"] == "/missing" else 200
    length = {"/broken": b"1000"}.get(scope["path"])
    fields = [(b"content-length", length)] if length else []
    await send({"type": "http.response.start", "status": status, "headers": [(b"X-Kind", b"echo"), *fields]})
    await send({"type": "http.response.body", "body": shown.encode(), "more_body": True})
    await send({"type": "http.response.body", "body": b"|end"})


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    started, stop, box = threading.Event(), asyncio.Event(), {}

    async def main() -> None:
        listener = bind("127.0.0.1", None)
        async with serving_https(echo, listener, None):
            box.update(port=listener.getsockname()[1], loop=asyncio.get_running_loop())
            started.set()
            await stop.wait()

    thread = threading.Thread(target=asyncio.run, args=(main(),), daemon=True)
    thread.start()
    assert started.wait(20)
    yield f"http://127.0.0.1:{box['port']}"
    box["loop"].call_soon_threadsafe(stop.set)
    thread.join(20)


async def _all(response: Response) -> bytes:
    if response.stream is None:
        return response.body
    return b"".join([chunk async for chunk in response.stream])


def ask(kind: str, endpoint: Endpoint, *requests: Request) -> list[tuple[Response, bytes]]:
    async def story(transport: HttpTransport | OneShot) -> list[tuple[Response, bytes]]:
        answers = []
        try:
            for request in requests:
                response = await transport.send(request)
                answers.append((response, await _all(response)))
        finally:
            await transport.close()
        return answers

    if kind == "one shot":
        return finish(story(OneShot(endpoint)))

    async def main() -> list[tuple[Response, bytes]]:
        return await story(HttpTransport(endpoint, SystemClock()))

    return asyncio.run(main())


KINDS = pytest.mark.parametrize("kind", ["aiohttp", "one shot"])


@KINDS
def test_a_request_arrives_whole_and_its_answer_comes_back(server: str, kind: str):
    request = Request("POST", "/a/b", (("x", "1 2"), ("x", "3")), {"content-type": "text/plain"}, b"body")

    ((response, body),) = ask(kind, Endpoint(server), request)

    assert response.status == 200 and response.headers["x-kind"] == "echo"
    assert body == b"POST /a/b?x=1+2&x=3   body|end"


@KINDS
@pytest.mark.parametrize(
    ("identity", "shown"),
    [
        ({"tokens": FixedToken("t")}, b" Bearer t "),
        ({"user": "ann", "password": "p"}, b" Basic YW5uOnA= "),
        ({"tokens": FixedToken("t"), "impersonate": "bob"}, b" Bearer t bob "),
    ],
)
def test_requests_carry_the_callers_identity(server: str, kind: str, identity: dict[str, Any], shown: bytes):
    ((_, body),) = ask(kind, Endpoint(server, **identity), Request("GET", "/"))

    assert shown in body


@KINDS
@pytest.mark.parametrize("parameter", ["watch", "follow"])
def test_a_watch_and_a_followed_log_are_streams(server: str, kind: str, parameter: str):
    ((response, body),) = ask(kind, Endpoint(server), Request("GET", "/stream", ((parameter, "true"),)))

    assert response.stream is not None and body.endswith(b"|end")


@KINDS
def test_an_error_is_answered_whole_even_to_a_watch(server: str, kind: str):
    first, second = ask(
        kind, Endpoint(server), Request("GET", "/missing", (("watch", "true"),)), Request("GET", "/missing")
    )

    assert first[0].status == second[0].status == 404
    assert first[0].stream is None and first[1].endswith(b"|end")


@KINDS
def test_a_server_that_cannot_be_reached_is_a_connection_error(kind: str):
    listener = bind("127.0.0.1", None)
    port = listener.getsockname()[1]
    listener.close()

    with pytest.raises(ConnectionError):
        ask(kind, Endpoint(f"http://127.0.0.1:{port}"), Request("GET", "/"))


@KINDS
def test_a_stream_that_breaks_is_a_connection_error(server: str, kind: str):
    with pytest.raises(ConnectionError):
        ask(kind, Endpoint(server), Request("GET", "/broken", (("watch", "true"),)))


def test_a_one_shot_request_never_waits_for_the_event_loop():
    class Waiting:
        def __await__(self) -> Iterator[None]:
            yield

    async def waits() -> None:
        await Waiting()

    with pytest.raises(RuntimeError, match="tried to wait"):
        finish(waits())
