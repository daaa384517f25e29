"""Connections without TLS are bounded; those that finish their handshake lose nothing of what they send."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
import uvloop

from volcano.machinery.acceptor import HandshakeLimits
from volcano.machinery.certificates import Authority, server_context
from volcano.machinery.connections import ConnectionLimits
from volcano.machinery.https_server import Receive, Scope, Send, ServerLimits, bind, serving_https

REQUEST = b"GET / HTTP/1.1\r\nhost: here\r\n\r\n"


async def application(scope: Scope, receive: Receive, send: Send) -> None:
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-length", b"2")]})
    await send({"type": "http.response.body", "body": b"ok"})


@pytest.fixture(params=["asyncio", "uvloop"])
def runner(request: pytest.FixtureRequest) -> Iterator[asyncio.Runner]:
    factory = uvloop.new_event_loop if request.param == "uvloop" else None
    with asyncio.Runner(loop_factory=factory) as runner:
        yield runner


@pytest.fixture
def contexts(tmp_path: Path) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    now = datetime.now(UTC)
    authority = Authority(tmp_path, now)
    return server_context(authority, ["127.0.0.1"], now), ssl.create_default_context(
        cafile=str(authority.certificate_path)
    )


@contextlib.asynccontextmanager
async def served(context: ssl.SSLContext, handshakes: HandshakeLimits) -> AsyncIterator[int]:
    listener = bind("127.0.0.1", 0)
    async with serving_https(application, listener, context, ServerLimits(handshakes=handshakes)):
        yield listener.getsockname()[1]


async def silent(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", port)


async def answer(port: int, context: ssl.SSLContext) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
    writer.write(REQUEST)
    found = await asyncio.wait_for(reader.readuntil(b"ok"), 10)
    writer.close()
    return found


async def is_closed(reader: asyncio.StreamReader) -> bool:
    try:
        return await asyncio.wait_for(reader.read(1), 0.2) == b""
    except TimeoutError:
        return False
    except ConnectionError:
        return True


def test_of_too_many_silent_clients_the_oldest_go_and_others_are_served(runner, contexts):
    server, client = contexts

    async def main() -> list[bool]:
        async with served(server, HandshakeLimits(total=100, per_address=5)) as port:
            waiting = []
            for _ in range(12):
                waiting.append(await silent(port))
                await asyncio.sleep(0.01)
            assert b"200" in await answer(port, client)
            closed = [await is_closed(reader) for reader, _ in waiting]
            for _, writer in waiting:
                writer.close()
            return closed

    closed = runner.run(main())

    assert closed[:7] == [True] * 7
    assert closed.count(False) in (4, 5)


def test_a_silent_client_is_given_up(runner, contexts):
    async def main() -> bytes:
        async with served(contexts[0], HandshakeLimits(seconds=0.2)) as port:
            reader, writer = await silent(port)
            try:
                return await asyncio.wait_for(reader.read(), 5)
            except ConnectionError:
                return b""
            finally:
                writer.close()

    assert runner.run(main()) == b""


def test_what_is_no_tls_is_refused_and_the_server_goes_on(runner, contexts):
    server, client = contexts

    async def main() -> bytes:
        async with served(server, HandshakeLimits()) as port:
            reader, writer = await silent(port)
            writer.write(REQUEST * 100)
            with contextlib.suppress(ConnectionError):
                await asyncio.wait_for(reader.read(), 5)
            return await answer(port, client)

    assert b"200" in runner.run(main())


def test_many_clients_at_once_are_all_answered(runner, contexts):
    server, client = contexts

    async def main() -> list[bytes]:
        async with served(server, HandshakeLimits()) as port:
            return await asyncio.gather(*(answer(port, client) for _ in range(60)))

    assert all(b"200" in found for found in runner.run(main()))


def test_a_stop_does_not_wait_for_silent_clients(runner, contexts):
    async def main() -> float:
        async with served(contexts[0], HandshakeLimits()) as port:
            await silent(port)
            await asyncio.sleep(0.05)
            started = asyncio.get_running_loop().time()
        return asyncio.get_running_loop().time() - started

    assert runner.run(main()) < 3


def test_bounds_leave_files_to_the_process():
    limits = ServerLimits().within(1024)

    assert limits.connections.total + limits.connections.reserve + limits.handshakes.total < 800
    assert ServerLimits().within(65_536).connections == ConnectionLimits()
