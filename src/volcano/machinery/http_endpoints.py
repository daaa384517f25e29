"""The HTTP endpoints beside a component: health, metrics and what else it answers, as handlers of requests.

The same routes are served at an address (`serving`) or, inside the embedded system, called without a port
(`dispatch`). Connections, headers, bodies and answers are bounded, since a port knows no users.
"""

from __future__ import annotations

import asyncio
import logging
import ssl
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final, TypeAlias
from urllib.parse import parse_qsl

import msgspec
from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, generate_latest

from volcano.machinery.connections import ConnectionLimits
from volcano.machinery.https_server import Receive, Scope, Send, ServerLimits, bind, serving_https
from volcano.machinery.transport import Handler, Request, Response

log = logging.getLogger(__name__)

Routes: TypeAlias = Mapping[tuple[str, str], Handler]
"""Handlers by method and path; a path begins with a slash. One that ends with `/*` stands for all paths below it."""

MAX_BODY_BYTES: Final = 3 * 1024 * 1024
MAX_QUERY_PARAMETERS: Final = 100
BODY_TIMEOUT_SECONDS: Final = 30.0
SEND_TIMEOUT_SECONDS: Final = 30.0
"""For a client to take an answer."""
LIMITS: Final = ServerLimits(
    stranger_idle_seconds=90,
    stop_seconds=1,
    connections=ConnectionLimits(total=512, reserve=0, anonymous=512, anonymous_per_address=256, per_identity=256),
)
"""Clients have no identity here: of too many connections, the one that has been idle longest is closed."""
_TEXT: Final = {"content-type": "text/plain; charset=utf-8"}
_JSON: Final = {"content-type": "application/json; charset=utf-8"}


def parse_address(address: str) -> tuple[str, int]:
    """`:8080` listens everywhere, as Go programs do; `127.0.0.1:0` picks a free port."""
    host, _, port = address.rpartition(":")
    return host.strip("[]") or "0.0.0.0", int(port)


@asynccontextmanager
async def serving(
    address: str, routes: Routes, context: ssl.SSLContext | None = None, limits: ServerLimits = LIMITS
) -> AsyncIterator[int]:
    """Serve while the block runs; yields the port."""
    host, port = parse_address(address)
    listener = bind(host, port)
    async with serving_https(_EndpointsApp(routes), listener, context, limits):
        yield listener.getsockname()[1]


def dispatch(routes: Routes) -> Handler:
    """One handler for all routes, for callers in the same process."""

    async def handle(request: Request) -> Response:
        handler = handler_of(routes, request.method, f"/{request.path.strip('/')}")
        return Response(404, dict(_TEXT), b"404 page not found\n") if handler is None else await handler(request)

    return handle


def handler_of(routes: Routes, method: str, path: str) -> Handler | None:
    """The handler of exactly this path, else of one that stands for the paths below it."""
    exact = routes.get((method, path))
    if exact is not None:
        return exact
    wildcards = (
        (served[:-1], handler) for (verb, served), handler in routes.items() if (verb, served[-2:]) == (method, "/*")
    )
    return next((handler for above, handler in wildcards if path.startswith(above) and path != above), None)


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


class _EndpointsApp:
    """The ASGI application of the routes."""

    def __init__(self, routes: Routes) -> None:
        self._routes = routes
        self._methods = {method for method, _path in routes}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        answer = await self._answer(scope, receive)
        headers = [(name.encode("latin-1"), value.encode("latin-1")) for name, value in answer.headers.items()]
        headers.append((b"content-length", str(len(answer.body)).encode()))
        try:
            async with asyncio.timeout(SEND_TIMEOUT_SECONDS):
                await send({"type": "http.response.start", "status": answer.status, "headers": headers})
                await send({"type": "http.response.body", "body": answer.body})
        except TimeoutError:
            scope["state"]["abort"]()  # closing would wait until the client has read the rest

    async def _answer(self, scope: Scope, receive: Receive) -> Response:
        handler = handler_of(self._routes, scope["method"], scope["path"])
        if handler is None:
            is_known = any(handler_of(self._routes, method, scope["path"]) for method in self._methods)
            return _text(405, "405 method not allowed") if is_known else _text(404, "404 page not found")
        headers = {name.decode("latin-1"): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            query = parse_qsl(
                scope["query_string"].decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_QUERY_PARAMETERS
            )
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                body = await _read(receive)
        except ValueError:
            return _text(400, f"the query has more than {MAX_QUERY_PARAMETERS} parameters", close=True)
        except TimeoutError:
            return _text(408, "the request's body did not arrive in time", close=True)
        if body is None:
            return _text(413, f"the request's body is larger than {MAX_BODY_BYTES} bytes", close=True)
        try:
            return await handler(Request(scope["method"], scope["path"], tuple(query), headers, body))
        except Exception:
            log.exception("%s %s failed", scope["method"], scope["path"])
            return _text(500, "500 internal server error")


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None when it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


def _text(status: int, text: str, *, close: bool = False) -> Response:
    return Response(status, {**_TEXT, "connection": "close"} if close else dict(_TEXT), f"{text}\n".encode())
