"""HTTP in front of ApiServer: the ASGI application that machinery.https_server serves.

Bodies and waiting are bounded here, headers and connections by the server; request_chain decides what a request means.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec

from volcano.api.errors import ApiError, BadRequest, Timeout, TooLarge
from volcano.embedded.apiserver.access.authentication import Subject
from volcano.embedded.apiserver.request_chain import MAX_BODY_BYTES
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.serving.connect import Connector
from volcano.embedded.apiserver.serving.kubelet_streams import SPDY, TUNNEL, VERSION_HEADER
from volcano.embedded.apiserver.serving.websocket_watch import send_events
from volcano.embedded.apiserver.wire.representation import error_reply
from volcano.embedded.apiserver.wire.requests import MAX_QUERY_BYTES, parse_target
from volcano.machinery.https_server import Receive, Scope, Send, WebsocketRefused
from volcano.machinery.transport import Request, Response

MAX_DRAINED_BYTES: Final = 16 * 2**20
DRAIN_SECONDS: Final = 5.0
MAX_QUERY_PARAMETERS: Final = 1000
PIECE_BYTES: Final = 256 * 1024


class HttpLimits(msgspec.Struct, frozen=True):
    """How long the server waits for a client."""

    header_seconds: float = 30.0
    """For the headers of one request."""
    body_seconds: float = 60.0
    """For a whole body."""
    stall_seconds: float = 60.0
    """A client that takes nothing of an answer for so long is cut off."""


class ClientLeft(ApiError):
    """The client closed its connection before its body was complete; no answer can reach it."""

    code = 499
    reason = "ClientClosedRequest"


class AsgiApp:
    """The ASGI application."""

    def __init__(self, server: ApiServer, connector: Connector | None = None, limits: HttpLimits | None = None) -> None:
        self._server = server
        self.limits = limits or HttpLimits()
        self._connector = connector or Connector(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            wants_spdy = scope.get("state", {}).get("upgrade") == SPDY.lower().encode()
            await (self._spdy if wants_spdy else self._http)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = request_from(scope)
        except ApiError as error:
            response = error_reply(error)
            response.headers["connection"] = "close"
        else:
            body = _Body(request, receive, self.limits.body_seconds)
            response = await self._server.handle_http(request, _certificate(scope), body.read, _proved(scope))
            if body.is_abandoned:
                response.headers["connection"] = "close"
        abort = scope.get("state", {}).get("abort", _no_abort)
        if response.stream is not None:
            await _send_stream(response, receive, send, abort, self.limits.stall_seconds)
        else:
            await _send_whole(response, send, abort, self.limits.stall_seconds)

    async def _spdy(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A request to upgrade the connection to SPDY."""
        try:
            request = request_from(scope)
            asked = request.headers.get(VERSION_HEADER, "")
            upstream = await self._connector.open_stream(
                request, _certificate(scope), [each.strip() for each in asked.split(",")], _proved(scope)
            )
        except ApiError as error:
            await _send_whole(error_reply(error), send, _no_abort, self.limits.stall_seconds)
            return
        async with scope["state"]["taken_over"]() as (reader, writer):
            await upstream.relay(reader, writer)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        tunnels = scope.get("state", {}).get("tunnels")
        try:
            request = request_from({**scope, "method": "GET"})
            target = parse_target(request)
            if target is not None and target.verb == "watch":
                await self._watch(request, scope, receive, send)
                return
            if tunnels:
                versions = [each.removeprefix(TUNNEL) for each in tunnels]
                stream = await self._connector.open_stream(request, _certificate(scope), versions, _proved(scope))
                relay = stream.tunnel
            else:
                subprotocols = scope.get("subprotocols") or []
                upstream = await self._connector.open(request, _certificate(scope), subprotocols, _proved(scope))
                relay = upstream.relay
        except ApiError as error:
            await _refuse(scope, send, error_reply(error))
            raise WebsocketRefused from error
        await relay(receive, send)

    async def _watch(self, request: Request, scope: Scope, receive: Receive, send: Send) -> None:
        """A watch whose client asked for a WebSocket; what cannot be watched is refused before the upgrade."""
        response = await self._server.handle_http(request, _certificate(scope), _no_body, _proved(scope))
        if response.stream is None:
            await _refuse(scope, send, response)
            raise WebsocketRefused
        offered = scope.get("subprotocols") or [None]
        await send({"type": "websocket.accept", "subprotocol": offered[0]})
        abort = scope.get("state", {}).get("abort", _no_abort)
        await send_events(response.stream, receive, send, abort=abort, stall_seconds=self.limits.stall_seconds)


def _certificate(scope: Scope) -> Subject | None:
    certificate = scope.get("state", {}).get("certificate")
    return Subject(certificate.common_name, certificate.organizations) if certificate is not None else None


def _proved(scope: Scope) -> Callable[[str], None] | None:
    """What counts the connection as one of the user who has proven to be on it."""
    proved: Callable[[str], None] | None = scope.get("state", {}).get("proved")
    return proved


def request_from(scope: Scope) -> Request:
    """The request without its body; header values that repeat are joined."""
    headers: dict[str, str] = {}
    for raw_name, raw_value in scope["headers"]:
        name, value = raw_name.decode("latin-1"), raw_value.decode("latin-1")
        if name in headers:
            joint = "\n" if name.startswith("impersonate-") else ", "
            value = f"{headers[name]}{joint}{value}"
        headers[name] = value
    raw_path: bytes = scope.get("raw_path") or scope["path"].encode()
    query: bytes = scope.get("query_string") or b""
    if len(query) > MAX_QUERY_BYTES:
        raise BadRequest(f"the query is longer than {MAX_QUERY_BYTES} bytes")
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MAX_QUERY_PARAMETERS)
    except ValueError:
        raise BadRequest(f"the query has more than {MAX_QUERY_PARAMETERS} parameters") from None
    return Request(scope["method"], raw_path.decode("latin-1"), tuple(pairs), headers)


class _Body:
    """The body of one request, read once and within bounds."""

    def __init__(self, request: Request, receive: Receive, seconds: float) -> None:
        self._seconds = seconds
        self._declared = request.headers.get("content-length", "")
        self._receive = receive
        self.is_abandoned = False
        """Whether some of the body is left unread, so that the connection cannot be used again."""

    async def read(self) -> bytes:
        try:
            async with asyncio.timeout(self._seconds):
                return await self._whole()
        except TimeoutError:
            self.is_abandoned = True
            raise Timeout("the request's body did not arrive in time") from None
        except TooLarge:
            self.is_abandoned = True
            await self._drain()
            raise

    async def _whole(self) -> bytes:
        too_large = TooLarge(f"Request entity too large: limit is {MAX_BODY_BYTES}")
        if self._declared.isdigit() and int(self._declared) > MAX_BODY_BYTES:
            raise too_large
        chunks, size = [], 0
        while True:
            message = await self._receive()
            if message["type"] == "http.disconnect":
                raise ClientLeft("the client left before its body was complete")
            chunk = message.get("body", b"")
            size += len(chunk)
            if size > MAX_BODY_BYTES:
                raise too_large
            chunks.append(chunk)
            if not message.get("more_body"):
                return b"".join(chunks)

    async def _drain(self) -> None:
        """Read some more of a body that was refused: a client that still writes would not read the answer."""
        size = 0
        try:
            async with asyncio.timeout(DRAIN_SECONDS):
                while size < MAX_DRAINED_BYTES:
                    message = await self._receive()
                    size += len(message.get("body", b""))
                    if not message.get("more_body"):
                        return
        except TimeoutError:
            return


def _head(response: Response, length: int | None) -> MutableMapping[str, Any]:
    headers = [(name.encode("latin-1"), value.encode("latin-1", "replace")) for name, value in response.headers.items()]
    headers.append((b"cache-control", b"no-cache, private"))
    if length is not None:
        headers.append((b"content-length", str(length).encode()))
    return {"type": "http.response.start", "status": response.status, "headers": headers}


async def _no_body() -> bytes:
    return b""


def _no_abort() -> None:
    """There is no connection to cut."""


async def _send_whole(response: Response, send: Send, abort: Callable[[], None], stall_seconds: float) -> None:
    body = response.body
    await send(_head(response, len(body)))
    if len(body) <= PIECE_BYTES:
        await send({"type": "http.response.body", "body": body})
        return
    try:
        for start in range(0, len(body), PIECE_BYTES):
            async with asyncio.timeout(stall_seconds):
                more = start + PIECE_BYTES < len(body)
                await send({"type": "http.response.body", "body": body[start : start + PIECE_BYTES], "more_body": more})
    except TimeoutError:
        abort()  # closing would wait until the client has read the rest


async def _send_stream(
    response: Response, receive: Receive, send: Send, abort: Callable[[], None], stall_seconds: float
) -> None:
    """Pass chunks on until the stream ends, the client leaves, or it takes nothing for too long."""
    sending = asyncio.ensure_future(_pump(response, send, abort, stall_seconds))
    leaving = asyncio.ensure_future(_until_left(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _pump(response: Response, send: Send, abort: Callable[[], None], stall_seconds: float) -> None:
    stream = response.stream
    assert stream is not None
    try:
        await send(_head(response, None))
        async for chunk in stream:
            async with asyncio.timeout(stall_seconds):
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})
    except TimeoutError:
        abort()
    finally:
        close = getattr(stream, "aclose", None)
        if close is not None:
            await close()


async def _until_left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _refuse(scope: Scope, send: Send, response: Response) -> None:
    if "websocket.http.response" in (scope.get("extensions") or {}):
        headers = [(name.encode(), value.encode("latin-1", "replace")) for name, value in response.headers.items()]
        await send({"type": "websocket.http.response.start", "status": response.status, "headers": headers})
        await send({"type": "websocket.http.response.body", "body": response.body})
    else:
        await send({"type": "websocket.close", "code": 1008, "reason": "refused"})
