"""Requests of the server itself: what one of them may take from the others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from volcano.api.errors import ServiceUnavailable
from volcano.embedded.apiserver.wire.outbound import MAX_CONNECTIONS_PER_HOST, Outbound
from volcano.machinery.transport import Response

WITHIN_SECONDS = 30


async def _endless(request: web.Request) -> web.StreamResponse:
    answer = web.StreamResponse()
    await answer.prepare(request)
    await answer.write(b"first")
    await asyncio.Event().wait()
    return answer


async def _silent(_request: web.Request) -> web.StreamResponse:
    await asyncio.Event().wait()
    raise AssertionError("nobody sets the event")


async def _short(_request: web.Request) -> web.StreamResponse:
    return web.Response(text="short")


@asynccontextmanager
async def a_server() -> AsyncIterator[str]:
    app = web.Application()
    app.add_routes([web.get("/endless", _endless), web.get("/silent", _silent), web.get("/short", _short)])
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def _first_chunk(response: Response) -> bytes:
    assert response.stream is not None
    return await anext(response.stream)


async def test_streams_that_never_end_leave_room_for_further_ones_and_for_other_requests():
    outbound = Outbound()
    async with a_server() as server, asyncio.timeout(WITHIN_SECONDS):
        followed = [
            await outbound.fetch("GET", f"{server}/endless", streams=True) for _ in range(MAX_CONNECTIONS_PER_HOST + 1)
        ]

        assert {await _first_chunk(each) for each in followed} == {b"first"}
        assert (await outbound.fetch("GET", f"{server}/short")).body == b"short"
        await outbound.close()


async def test_a_stream_that_does_not_begin_is_given_up():
    outbound = Outbound()
    async with a_server() as server:
        with pytest.raises(ServiceUnavailable):
            await outbound.fetch("GET", f"{server}/silent", streams=True, seconds=0.1)
        await outbound.close()
