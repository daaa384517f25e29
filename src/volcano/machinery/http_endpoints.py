"""The HTTP endpoints beside a component: health, metrics and what else it answers, as handlers of requests.

The same routes are served at an address (`serving`) or, inside the embedded system, called without a port
(`dispatch`).
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias

import aiohttp.web
import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

from volcano.machinery.transport import Handler, Request, Response

Routes: TypeAlias = Mapping[tuple[str, str], Handler]
"""Handlers by method and path; a path begins with a slash."""

MAX_BODY_BYTES: Final = 3 * 1024 * 1024
_TEXT: Final = {"content-type": "text/plain; charset=utf-8"}
_JSON: Final = {"content-type": "application/json; charset=utf-8"}


def parse_address(address: str) -> tuple[str, int]:
    """`:8080` listens everywhere, as Go programs do; `127.0.0.1:0` picks a free port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]") or "0.0.0.0", int(port)


@asynccontextmanager
async def serving(address: str, routes: Routes, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """Serve while the block runs; yields the port."""
    application = aiohttp.web.Application(client_max_size=MAX_BODY_BYTES)
    for (method, path), handler in routes.items():
        application.router.add_route(method, path, _over_http(handler))
    runner = aiohttp.web.AppRunner(application, access_log=None)
    await runner.setup()
    host, port = parse_address(address)
    try:
        site = aiohttp.web.TCPSite(runner, host, port, ssl_context=context)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def dispatch(routes: Routes) -> Handler:
    """One handler for all routes, for callers in the same process."""

    async def handle(request: Request) -> Response:
        handler = routes.get((request.method, f"/{request.path.strip('/')}"))
        return Response(404, dict(_TEXT), b"404 page not found\n") if handler is None else await handler(request)

    return handle


def health_route(is_well: Callable[[], bool] = lambda: True) -> Handler:
    async def healthz(_request: Request) -> Response:
        return Response(200, dict(_TEXT), b"ok") if is_well() else Response(500, dict(_TEXT), b"not well")

    return healthz


def metrics_route(registry: CollectorRegistry = REGISTRY) -> Handler:
    async def metrics(_request: Request) -> Response:
        return Response(200, {"content-type": CONTENT_TYPE_LATEST}, generate_latest(registry))

    return metrics


def json_response(value: object, status: int = 200) -> Response:
    return Response(status, dict(_JSON), msgspec.json.encode(value))


def _over_http(handler: Handler) -> Callable[[aiohttp.web.Request], Awaitable[aiohttp.web.Response]]:
    async def handle(received: aiohttp.web.Request) -> aiohttp.web.Response:
        headers = {name.lower(): value for name, value in received.headers.items()}
        query = tuple(received.query.items())
        answer = await handler(Request(received.method, received.path, query, headers, await received.read()))
        return aiohttp.web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    return handle
