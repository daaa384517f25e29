"""The HTTPS server: what it adds to uvicorn, and what of uvicorn's inside that depends on."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any

import pytest
import uvicorn
from uvicorn.protocols.http import httptools_impl

from volcano.machinery import https_server
from volcano.machinery.connections import ConnectionLimits
from volcano.machinery.https_server import (
    AsgiApplication,
    HttpProtocol,
    ServerLimits,
    WebsocketRefused,
    bind,
    peer_certificate,
    serving_https,
)

WITHIN_SECONDS = 20
UPGRADE = b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: SPDY/3.1\r\n\r\n"


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(WITHIN_SECONDS):
            await main()

    asyncio.run(bounded())


async def answer_ok(scope: Any, receive: Any, send: Any) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@contextlib.asynccontextmanager
async def connected(
    app: AsgiApplication, limits: ServerLimits | None = None, tunnel_prefix: str | None = None
) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
    listener = bind("127.0.0.1", None)
    port = listener.getsockname()[1]
    async with serving_https(app, listener, None, limits, tunnel_prefix=tunnel_prefix):
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield reader, writer
        finally:
            writer.close()


# -- what is used of uvicorn beyond its documented interface ------------------------------------------------------
@pytest.mark.parametrize(
    ("name", "parameters"),
    [
        ("connection_made", ["self", "transport"]),
        ("connection_lost", ["self", "exc"]),
        ("on_message_begin", ["self"]),
        ("on_url", ["self", "url"]),
        ("on_header", ["self", "name", "value"]),
        ("on_headers_complete", ["self"]),
        ("handle_websocket_upgrade", ["self"]),
        ("_get_upgrade", ["self"]),
        ("shutdown", ["self"]),
        ("data_received", ["self", "data"]),
    ],
)
def test_uvicorn_has_the_methods_that_the_protocol_overrides_or_calls(name: str, parameters: list[str]):
    method = getattr(httptools_impl.HttpToolsProtocol, name)

    assert list(inspect.signature(method).parameters) == parameters


def test_uvicorn_has_the_attributes_that_the_protocol_uses():
    protocol = HttpProtocol(
        config=_loaded(), server_state=uvicorn.server.ServerState(), app_state={"a": 1}, _loop=asyncio.new_event_loop()
    )
    try:
        assert protocol.app_state == {"a": 1}
        for name in (
            "loop",
            "parser",
            "headers",
            "scope",
            "cycle",
            "transport",
            "client",
            "timeout_keep_alive",
            "timeout_keep_alive_task",
        ):
            assert hasattr(protocol, name), name
        assert callable(protocol.parser.should_upgrade)
        assert "disconnected" in inspect.getsource(httptools_impl.RequestResponseCycle.send)
    finally:
        protocol.loop.close()


def test_uvicorn_has_the_server_hooks_that_are_used():
    server = uvicorn.Server(_loaded())

    assert (server.started, server.should_exit) == (False, False)
    assert list(inspect.signature(uvicorn.Server.capture_signals).parameters) == ["self"]
    assert "capture_signals" in inspect.getsource(uvicorn.Server.serve)
    assert "if sockets is not None" in inspect.getsource(uvicorn.Server.startup)
    for part in ("config=config", "server_state=self.server_state", "app_state=self.lifespan.state"):
        assert part in inspect.getsource(uvicorn.Server.startup)


def _loaded() -> uvicorn.Config:
    config = uvicorn.Config(answer_ok, log_config=None)
    config.load()
    return config


# -- headers -------------------------------------------------------------------------------------------------------
def test_headers_beyond_the_limit_are_refused():
    async def main() -> None:
        async with connected(answer_ok, ServerLimits(header_bytes=1000)) as (reader, writer):
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 1000 + b"\r\n\r\n")

            assert (await reader.readline()).startswith(b"HTTP/1.1 431 ")

    run(main)


def test_the_header_limit_counts_each_request_anew():
    async def main() -> None:
        async with connected(answer_ok, ServerLimits(header_bytes=1000)) as (reader, writer):
            for _ in range(3):
                writer.write(b"GET / HTTP/1.1\r\nhost: x\r\nx: " + b"y" * 600 + b"\r\n\r\n")
                head = await reader.readuntil(b"\r\n\r\n")
                assert head.startswith(b"HTTP/1.1 200 ") and await reader.readexactly(2) == b"ok"

    run(main)


@pytest.mark.parametrize("requests_before", [0, 1])
def test_headers_that_never_end_close_the_connection(requests_before: int):
    async def main() -> None:
        async with connected(answer_ok, ServerLimits(header_seconds=0.2)) as (reader, writer):
            for _ in range(requests_before):
                writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
                await reader.readuntil(b"ok")
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n")

            assert await reader.read() == b""

    run(main)


# -- connections that leave HTTP -----------------------------------------------------------------------------------
def test_an_application_may_take_over_the_connection():
    async def upgrading(scope: Any, receive: Any, send: Any) -> None:
        assert scope["state"]["upgrade"] == b"spdy/3.1"
        async with scope["state"]["taken_over"]() as (reader, writer):
            writer.write(b"HTTP/1.1 101 Switching Protocols\r\n\r\n")
            writer.write((await reader.readexactly(4)).upper())
            await writer.drain()

    async def main() -> None:
        async with connected(upgrading) as (reader, writer):
            writer.write(UPGRADE)
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"ping")

            assert await reader.read() == b"PING", "the bytes, then the end, and no HTTP answer after it"

    run(main)


def test_a_websocket_outlives_the_time_for_headers():
    async def quiet(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "websocket.accept"})
        await asyncio.sleep(0.2)  # four times as long as headers may take
        await send({"type": "websocket.send", "text": "late"})
        await receive()

    async def main() -> None:
        async with connected(quiet, ServerLimits(header_seconds=0.05), tunnel_prefix="") as (reader, writer):
            writer.write(
                b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
                b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
            )
            await reader.readuntil(b"\r\n\r\n")

            assert await reader.readexactly(6) == b"\x81\x04late"

    run(main)


def test_websockets_count_as_connections_of_their_user_until_they_end():
    async def quiet(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        scope["state"]["proved"]("ann")
        await send({"type": "websocket.accept"})
        await receive()

    request = (
        b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
        b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )

    async def main() -> None:
        listener = bind("127.0.0.1", None)
        limits = ServerLimits(connections=ConnectionLimits(per_identity=2))
        opened: list[asyncio.StreamWriter] = []

        async def is_accepted() -> bool:
            reader, writer = await asyncio.open_connection(*listener.getsockname()[:2])
            opened.append(writer)
            writer.write(request)
            try:
                return b"101" in await reader.readuntil(b"\r\n\r\n")
            except (asyncio.IncompleteReadError, ConnectionError):
                return False

        async with serving_https(quiet, listener, None, limits, tunnel_prefix=""):
            assert [await is_accepted() for _ in range(3)] == [True, True, False]
            opened[0].close()
            await asyncio.sleep(0.2)
            assert await is_accepted()
            for writer in opened:
                writer.close()

    run(main)


def test_a_connection_that_was_taken_over_does_not_delay_the_stop():
    async def main() -> None:
        taken = asyncio.Event()

        async def holding(scope: Any, receive: Any, send: Any) -> None:
            async with scope["state"]["taken_over"]() as (reader, _writer):
                taken.set()
                await reader.read()

        async with connected(holding, ServerLimits(stop_seconds=600)) as (_reader, writer):
            writer.write(UPGRADE)
            await taken.wait()

    run(main)


def test_tunnel_subprotocols_are_hidden_from_the_websocket_library():
    seen: dict[str, Any] = {}

    async def accepting(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        seen.update(tunnels=scope["state"].get("tunnels"), subprotocols=scope["subprotocols"])
        await send({"type": "websocket.close"})
        raise WebsocketRefused

    async def main() -> None:
        async with connected(accepting, tunnel_prefix="SPDY/3.1+") as (reader, writer):
            writer.write(
                b"GET / HTTP/1.1\r\nhost: x\r\nconnection: Upgrade\r\nupgrade: websocket\r\n"
                b"sec-websocket-version: 13\r\nsec-websocket-key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
                b"sec-websocket-protocol: SPDY/3.1+portforward.k8s.io, other\r\n\r\n"
            )
            assert (await reader.readline()).startswith(b"HTTP/1.1 403 ")

    run(main)

    assert seen == {"tunnels": ["SPDY/3.1+portforward.k8s.io"], "subprotocols": []}


# -- the rest --------------------------------------------------------------------------------------------------------
def test_a_request_under_way_is_finished_before_the_server_stops():
    async def main() -> None:
        begun, may_end = asyncio.Event(), asyncio.Event()

        async def slow(scope: Any, receive: Any, send: Any) -> None:
            begun.set()
            await may_end.wait()
            await answer_ok(scope, receive, send)

        listener = bind("127.0.0.1", None)
        async with contextlib.AsyncExitStack() as serving:
            await serving.enter_async_context(serving_https(slow, listener, None, ServerLimits(stop_seconds=600)))
            reader, writer = await asyncio.open_connection(*listener.getsockname())
            writer.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await begun.wait()
            asyncio.get_running_loop().call_soon(may_end.set)
        assert (await reader.read()).endswith(b"ok")
        writer.close()

    run(main)


def test_a_port_that_is_taken_is_an_error_or_is_replaced_by_a_free_one():
    with contextlib.closing(bind("127.0.0.1", None)) as first:
        taken = first.getsockname()[1]
        with pytest.raises(OSError):
            bind("127.0.0.1", taken)
        with contextlib.closing(bind("127.0.0.1", taken, or_any_free=True)) as second:
            assert second.getsockname()[1] not in (0, taken)


def test_an_address_that_is_not_ours_is_an_error_even_where_any_port_will_do():
    with pytest.raises(OSError):
        bind("192.0.2.1", 80, or_any_free=True)


def test_ipv6_addresses_are_bound_as_such():
    try:
        listener = bind("::1", None)
    except OSError:
        pytest.skip("this machine has no IPv6 loopback")
    with contextlib.closing(listener):
        assert listener.family is socket.AF_INET6


class _Transport(asyncio.Transport):
    def __init__(self, certificate: dict[str, Any] | None) -> None:
        super().__init__({"ssl_object": self} if certificate is not None else None)
        self._certificate = certificate

    def getpeercert(self) -> Any:
        return self._certificate


@pytest.mark.parametrize(
    ("certificate", "found"),
    [
        pytest.param(None, None, id="plain HTTP"),
        pytest.param({}, None, id="no client certificate"),
        pytest.param({"subject": ()}, ("", ()), id="an empty subject"),
        pytest.param(
            {"subject": ((("commonName", "ann"),), (("organizationName", "a"), ("organizationName", "b")))},
            ("ann", ("a", "b")),
            id="a name and groups",
        ),
    ],
)
def test_the_subject_of_the_client_certificate_is_read(certificate: Any, found: Any):
    assert peer_certificate(_Transport(certificate)) == found


def test_no_other_module_imports_uvicorn():
    from pathlib import Path

    sources = Path(https_server.__file__).parents[1]
    importing = [
        path.name
        for path in sources.rglob("*.py")
        if "import uvicorn" in (text := path.read_text()) or "from uvicorn" in text
    ]

    assert importing == ["https_server.py"]
