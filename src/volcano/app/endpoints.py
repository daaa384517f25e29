"""The small HTTP servers beside a component: health, metrics and whatever else it answers."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager

import aiohttp.web
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

Route = Callable[[aiohttp.web.Request], Awaitable[aiohttp.web.StreamResponse]]
LARGEST_BODY = 3 * 1024 * 1024


def parse_address(address: str) -> tuple[str, int]:
    """`:8080` listens everywhere, as Go programs do; `127.0.0.1:0` picks a free port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]") or "0.0.0.0", int(port)


@asynccontextmanager
async def serving(
    address: str, routes: Mapping[tuple[str, str], Route], context: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    """Serve while the block runs; yields the port."""
    application = aiohttp.web.Application(client_max_size=LARGEST_BODY)
    for (method, path), route in routes.items():
        application.router.add_route(method, path, route)
    runner = aiohttp.web.AppRunner(application, access_log=None)
    await runner.setup()
    host, port = parse_address(address)
    try:
        site = aiohttp.web.TCPSite(runner, host, port, ssl_context=context)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


def health_route(is_well: Callable[[], bool] = lambda: True) -> Route:
    async def healthz(_request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(text="ok") if is_well() else aiohttp.web.Response(status=500, text="not well")

    return healthz


def metrics_route(registry: CollectorRegistry = REGISTRY) -> Route:
    async def metrics(_request: aiohttp.web.Request) -> aiohttp.web.Response:
        return aiohttp.web.Response(body=generate_latest(registry), headers={"Content-Type": CONTENT_TYPE_LATEST})

    return metrics
