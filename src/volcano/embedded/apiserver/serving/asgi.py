"""HTTP in front of ApiServer: an ASGI app, and uvicorn's protocol with client certificates and limits.

Bodies, headers and waiting are bounded here; what a request means is app.py's business.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, MutableMapping
from typing import Any, Final
from urllib.parse import parse_qsl

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected

from volcano.api.errors import ApiError, BadRequest, Timeout, TooLarge
from volcano.embedded.apiserver.access.authentication import Subject
from volcano.embedded.apiserver.server import LARGEST_BODY, ApiServer
from volcano.embedded.apiserver.serving.connect import Connector, Refusal
from volcano.embedded.apiserver.serving.kubelet_streams import SPDY, TUNNEL, VERSION_HEADER
from volcano.embedded.apiserver.wire.representation import error_reply
from volcano.embedded.apiserver.wire.requests import LONGEST_QUERY
from volcano.machinery.transport import Request, Response

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

LARGEST_HEADERS: Final = 64 * 1024
HEADER_SECONDS: Final = 30.0
BODY_SECONDS: Final = 60.0
STUCK_SECONDS: Final = 60.0  # a client that takes nothing for so long is cut off
DRAINED: Final = 16 * 2**20
DRAIN_SECONDS: Final = 5.0
MOST_PARAMETERS: Final = 1000
_PIECE: Final = 256 * 1024
_STREAM: Final = 64 * 1024


class VolcanoProtocol(HttpToolsProtocol):
    """Tells the app who the client's certificate is for, cuts off endless headers, gives connections away to SPDY."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_taken = False
        self.app_state = {
            **self.app_state,
            "certificate": _subject(transport),
            "abort": transport.abort,
            "taken_over": self.taken_over,
        }
        self._header_bytes = 0
        self._header_deadline = self.loop.call_later(HEADER_SECONDS, transport.close)

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        super().on_message_begin()

    def on_url(self, url: bytes) -> None:
        self._count(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._header_deadline.cancel()
        if self.parser.should_upgrade():
            self.scope["state"]["upgrade"] = self._get_upgrade()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_deadline.cancel()
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """The library refuses subprotocols with a slash, and Kubernetes' tunnel has one: it is not told of them."""
        asked = [value.decode("latin-1") for name, value in self.headers if name == b"sec-websocket-protocol"]
        tunnels = [each.strip() for line in asked for each in line.split(",") if each.strip().startswith(TUNNEL)]
        if tunnels:
            self.headers[:] = [pair for pair in self.headers if pair[0] != b"sec-websocket-protocol"]
            self.app_state = {**self.app_state, "tunnels": tunnels}
        super().handle_websocket_upgrade()

    @contextlib.asynccontextmanager
    async def taken_over(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """The connection as bytes, for who has answered the request with an upgrade; closed when left."""
        reader = asyncio.StreamReader(limit=_STREAM)
        protocol = asyncio.StreamReaderProtocol(reader)
        self._is_taken = self.cycle.disconnected = True  # nothing is answered by HTTP any more
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        try:
            yield reader, asyncio.StreamWriter(self.transport, protocol, reader, self.loop)
        finally:
            self.transport.close()
            self.connection_lost(None)

    def shutdown(self) -> None:
        if self._is_taken:
            self.transport.close()
        else:
            super().shutdown()

    def _count(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > LARGEST_HEADERS:
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
            self.transport.close()
            raise ValueError("headers too large")


def _subject(transport: asyncio.Transport) -> Subject | None:
    """The subject of the peer's certificate, which TLS has already checked against our CA."""
    tls = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert() if tls is not None else None
    if not certificate:
        return None
    parts = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for key, value in parts if key == "commonName"), "")
    return Subject(name, tuple(value for key, value in parts if key == "organizationName"))


class AsgiApp:
    """What uvicorn calls."""

    def __init__(self, server: ApiServer, connector: Connector | None = None) -> None:
        self._server = server
        self._connector = connector or Connector(server)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            wants_spdy = scope.get("state", {}).get("upgrade") == SPDY.lower().encode()
            await (self._spdy if wants_spdy else self._http)(scope, receive, send)
        elif scope["type"] == "websocket":
            await self._websocket(scope, receive, send)

    async def _http(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            request = await self._request(scope, receive)
        except _Left:
            return
        except ApiError as error:
            if isinstance(error, TooLarge):
                await _drain(receive)
            response = error_reply(error)
            response.headers["connection"] = "close"
        else:
            response = await self._server.handle(request)
        abort = scope.get("state", {}).get("abort", _nothing)
        if response.stream is not None:
            await _send_stream(response, receive, send, abort)
        else:
            await _send_whole(response, send, abort)

    async def _request(self, scope: Scope, receive: Receive) -> Request:
        request = request_from(scope)
        certificate = scope.get("state", {}).get("certificate")
        user = self._server.authenticator.user(request, certificate)
        body = await _read_body(request, receive)
        return Request(request.method, request.path, request.query, request.headers, body, user)

    async def _spdy(self, scope: Scope, receive: Receive, send: Send) -> None:
        """A client that wants to go on in SPDY."""
        try:
            request = self._bodiless(scope)
            asked = request.headers.get(VERSION_HEADER, "")
            upstream = await self._connector.open_stream(request, [each.strip() for each in asked.split(",")])
        except ApiError as error:
            await _send_whole(error_reply(error), send, _nothing)
            return
        async with scope["state"]["taken_over"]() as (reader, writer):
            await upstream.relay(reader, writer)

    async def _websocket(self, scope: Scope, receive: Receive, send: Send) -> None:
        await receive()  # websocket.connect
        tunnels = scope.get("state", {}).get("tunnels")
        try:
            request = self._bodiless({**scope, "method": "GET"})
            if tunnels:
                versions = [each.removeprefix(TUNNEL) for each in tunnels]
                relay = (await self._connector.open_stream(request, versions)).tunnel
            else:
                relay = (await self._connector.open(request, scope.get("subprotocols") or [])).relay
        except (ApiError, Refusal) as error:
            refusal = error if isinstance(error, ApiError) else BadRequest(str(error))
            await _refuse(scope, send, error_reply(refusal))
            raise ClientDisconnected from error  # the library takes a mere return after a refusal for a mistake
        await relay(receive, send)

    def _bodiless(self, scope: Scope) -> Request:
        request = request_from(scope)
        user = self._server.authenticator.user(request, scope.get("state", {}).get("certificate"))
        return Request(request.method, request.path, request.query, request.headers, b"", user)


class _Left(Exception):
    """The client went away."""


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
    if len(query) > LONGEST_QUERY:
        raise BadRequest(f"the query is longer than {LONGEST_QUERY} bytes")
    try:
        pairs = parse_qsl(query.decode("latin-1"), keep_blank_values=True, max_num_fields=MOST_PARAMETERS)
    except ValueError:
        raise BadRequest(f"the query has more than {MOST_PARAMETERS} parameters") from None
    return Request(scope["method"], raw_path.decode("latin-1"), tuple(pairs), headers)


async def _read_body(request: Request, receive: Receive) -> bytes:
    declared = request.headers.get("content-length", "")
    if declared.isdigit() and int(declared) > LARGEST_BODY:
        raise TooLarge(f"Request entity too large: limit is {LARGEST_BODY}")
    chunks, size = [], 0
    try:
        async with asyncio.timeout(BODY_SECONDS):
            while True:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise _Left
                chunk = message.get("body", b"")
                size += len(chunk)
                if size > LARGEST_BODY:
                    raise TooLarge(f"Request entity too large: limit is {LARGEST_BODY}")
                chunks.append(chunk)
                if not message.get("more_body"):
                    return b"".join(chunks)
    except TimeoutError:
        raise Timeout("the request's body did not arrive in time") from None


async def _drain(receive: Receive) -> None:
    """Take in some more of a body that is refused: a client that still writes would not hear why."""
    size = 0
    try:
        async with asyncio.timeout(DRAIN_SECONDS):
            while size < DRAINED:
                message = await receive()
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


def _nothing() -> None:
    """Where there is no connection to cut."""


async def _send_whole(response: Response, send: Send, abort: Callable[[], None]) -> None:
    body = response.body
    await send(_head(response, len(body)))
    if len(body) <= _PIECE:
        await send({"type": "http.response.body", "body": body})
        return
    try:
        for start in range(0, len(body), _PIECE):
            async with asyncio.timeout(STUCK_SECONDS):
                more = start + _PIECE < len(body)
                await send({"type": "http.response.body", "body": body[start : start + _PIECE], "more_body": more})
    except TimeoutError:
        abort()  # closing would wait for what the client does not take


async def _send_stream(response: Response, receive: Receive, send: Send, abort: Callable[[], None]) -> None:
    """Pass chunks on until the stream ends, the client leaves, or it takes nothing for too long."""
    sending = asyncio.ensure_future(_pump(response, send, abort))
    leaving = asyncio.ensure_future(_until_left(receive))
    try:
        await asyncio.wait({sending, leaving}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (sending, leaving):
            task.cancel()
        await asyncio.gather(sending, leaving, return_exceptions=True)


async def _pump(response: Response, send: Send, abort: Callable[[], None]) -> None:
    stream = response.stream
    assert stream is not None
    try:
        await send(_head(response, None))
        async for chunk in stream:
            async with asyncio.timeout(STUCK_SECONDS):
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
