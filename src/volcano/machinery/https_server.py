"""The HTTPS server: uvicorn with client certificates, bounded headers, and connections that leave HTTP.

This is the only module that imports uvicorn. What is used of it beyond its documented interface is checked by
tests/unit/machinery/test_https_server.py, and pyproject pins its minor version.
What requests mean is the business of the ASGI application that is served.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import resource
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, MutableMapping
from typing import Any, ClassVar, Final, NamedTuple

import msgspec
import uvicorn
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol
from uvicorn.protocols.utils import ClientDisconnected

from volcano.machinery.acceptor import Acceptor, HandshakeLimits
from volcano.machinery.connections import ConnectionLimits, ConnectionTable

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]
AsgiApplication = Callable[[Scope, Receive, Send], Awaitable[None]]

LISTEN_BACKLOG: Final = 1024
STARTUP_POLL_SECONDS: Final = 0.005
TAKEN_OVER_BUFFER_BYTES: Final = 64 * 1024
WRITE_BUFFER_BYTES: Final = 64 * 1024
"""What waits for a client that does not read; TLS would keep 512 KiB for each."""
SUBPROTOCOL_HEADER: Final = b"sec-websocket-protocol"

WebsocketRefused = ClientDisconnected
"""Raised by an application after refusing a WebSocket: uvicorn would log a plain return as a mistake."""


class ServerLimits(msgspec.Struct, frozen=True):
    """What one client, and all of them together, may use."""

    header_bytes: int = 64 * 1024
    header_seconds: float = 30.0
    keep_alive_seconds: int = 90
    stop_seconds: int = 5
    stranger_idle_seconds: int = 15
    """Between two requests of a client that has not proven who it is."""
    connections: ConnectionLimits = ConnectionLimits()
    handshakes: HandshakeLimits = HandshakeLimits()
    reserved_organization: str = ""
    """Certificates of this organization may use the reserve of connections."""
    websocket_message_bytes: int = 4 * 2**20

    def within(self, open_files: int) -> ServerLimits:
        """With bounds on connections that leave the process some of the files that it may open."""
        connections, handshakes = self.connections.within(open_files), self.handshakes.within(open_files)
        return msgspec.structs.replace(self, connections=connections, handshakes=handshakes)


class PeerCertificate(NamedTuple):
    """The subject of a client certificate that TLS has already verified."""

    common_name: str
    organizations: tuple[str, ...]


class HttpProtocol(HttpToolsProtocol):
    """One connection. It adds to the state of each request's scope:

    `certificate`: the client's PeerCertificate, or None.
    `abort`: closes the connection at once, without waiting for what the client does not read.
    `upgrade`: the protocol, in lower case, that the request asks to change to, if any.
    `taken_over`: a context manager that turns the connection into a stream of bytes.
    `proved`: called with the name of the user whom the request was authenticated as.
    `tunnels`: WebSocket subprotocols asked for that begin with `tunnel_prefix`.
    """

    limits: ClassVar[ServerLimits] = ServerLimits()
    tunnel_prefix: ClassVar[str] = ""
    table: ClassVar[ConnectionTable] = ConnectionTable(ConnectionLimits())

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._is_taken_over = self._is_websocket = False
        certificate = peer_certificate(transport)
        self.app_state = {
            **self.app_state,
            "certificate": certificate,
            "proved": self.prove,
            "abort": transport.abort,
            "taken_over": self.taken_over,
        }
        transport.set_write_buffer_limits(high=WRITE_BUFFER_BYTES)
        self._header_bytes = 0
        self._header_deadline = self.loop.call_later(self.limits.header_seconds, transport.close)
        address = self.client[0] if self.client else ""
        if certificate is None:
            self.timeout_keep_alive = self.limits.stranger_idle_seconds
            self.table.opened(self, address)
        else:
            may = self.limits.reserved_organization in certificate.organizations
            self.table.opened(self, address, certificate.common_name, may_use_reserve=may)

    @property
    def is_busy(self) -> bool:
        if self._is_taken_over or self._is_websocket:
            return True
        return self.cycle is not None and not self.cycle.response_complete

    def close_now(self) -> None:
        self.transport.abort()

    def prove(self, name: str) -> None:
        self.timeout_keep_alive = self.limits.keep_alive_seconds
        self.table.proved(self, name)

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_websocket:
            return  # another protocol has the connection now; no request follows on it
        if self._header_deadline.cancelled() and not self.is_busy and self.timeout_keep_alive_task is None:
            self._expect_headers()  # bytes that begin no request, such as empty lines, must not stop the clock

    def on_message_begin(self) -> None:
        self._header_bytes = 0
        self.table.used(self)
        if self._header_deadline.cancelled():  # a further request on the same connection
            self._expect_headers()
        super().on_message_begin()

    def _expect_headers(self) -> None:
        self._header_deadline = self.loop.call_later(self.limits.header_seconds, self.transport.close)

    def on_url(self, url: bytes) -> None:
        self._count_header_bytes(len(url))
        super().on_url(url)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._count_header_bytes(len(name) + len(value))
        super().on_header(name, value)

    def on_headers_complete(self) -> None:
        self._header_deadline.cancel()
        if self.parser.should_upgrade():
            self.scope["state"]["upgrade"] = self._get_upgrade()
        super().on_headers_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._header_deadline.cancel()
        self.table.closed(self)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        """Hide tunnel subprotocols from the WebSocket library, which refuses names with a slash."""
        asked = [value.decode("latin-1") for name, value in self.headers if name == SUBPROTOCOL_HEADER]
        names = [name.strip() for line in asked for name in line.split(",")]
        tunnels = [name for name in names if self.tunnel_prefix and name.startswith(self.tunnel_prefix)]
        if tunnels:
            self.headers[:] = [pair for pair in self.headers if pair[0] != SUBPROTOCOL_HEADER]
            self.app_state = {**self.app_state, "tunnels": tunnels}
        self._is_websocket = True
        super().handle_websocket_upgrade()
        protocol: Any = self.transport.get_protocol()
        lost = protocol.connection_lost

        def connection_lost(exc: Exception | None) -> None:
            self.table.closed(self)
            lost(exc)

        protocol.connection_lost = connection_lost  # it stays in the table until then

    @contextlib.asynccontextmanager
    async def taken_over(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """The connection as bytes, for an application that answers with an upgrade; closed on leaving."""
        reader = asyncio.StreamReader(limit=TAKEN_OVER_BUFFER_BYTES)
        protocol = asyncio.StreamReaderProtocol(reader)
        self._is_taken_over = self.cycle.disconnected = True  # so that uvicorn writes no HTTP answer
        self.transport.set_protocol(protocol)
        protocol.connection_made(self.transport)
        try:
            yield reader, asyncio.StreamWriter(self.transport, protocol, reader, self.loop)
        finally:
            self.transport.close()
            self.connection_lost(None)

    def shutdown(self) -> None:
        if self._is_taken_over:
            self.transport.close()
        else:
            super().shutdown()

    def _count_header_bytes(self, size: int) -> None:
        self._header_bytes += size
        if self._header_bytes > self.limits.header_bytes:
            self.transport.write(b"HTTP/1.1 431 Request Header Fields Too Large\r\nconnection: close\r\n\r\n")
            self.transport.close()
            raise ValueError("headers too large")


def peer_certificate(transport: asyncio.Transport) -> PeerCertificate | None:
    """The client's certificate, if it sent one; the TLS layer has verified it by then."""
    tls = transport.get_extra_info("ssl_object")
    certificate = tls.getpeercert() if tls is not None else None
    if not certificate:
        return None
    parts = [pair for part in certificate.get("subject", ()) for pair in part]
    name = next((value for key, value in parts if key == "commonName"), "")
    return PeerCertificate(name, tuple(value for key, value in parts if key == "organizationName"))


class PortUnavailable(OSError):
    """The port that was asked for cannot be listened on."""


def bind(host: str, port: int | None, *, or_any_free: bool = False) -> socket.socket:
    """A listening socket. No port means a free one; so does one that is taken, with `or_any_free`."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (port, 0) if port and or_any_free else (port or 0,):
        # asyncio sends small answers at once (TCP_NODELAY) only on sockets whose protocol is given as TCP
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen(LISTEN_BACKLOG)
        except OSError as error:
            listener.close()
            if candidate == 0 or not or_any_free:
                raise PortUnavailable(error.errno, f"port {candidate} of {host}: {error.strerror}") from error
            continue
        listener.setblocking(False)
        return listener
    raise AssertionError("the last candidate binds or raises")


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers, and without sockets of its own: both are handled outside of it."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield

    def make_protocol(self) -> asyncio.Protocol:
        """For one connection."""
        make: Any = self.config.http_protocol_class
        protocol: asyncio.Protocol = make(
            config=self.config, server_state=self.server_state, app_state=self.lifespan.state
        )
        return protocol


@contextlib.asynccontextmanager
async def serving_https(
    app: AsgiApplication,
    listener: socket.socket,
    context: ssl.SSLContext | None,
    limits: ServerLimits | None = None,
    *,
    tunnel_prefix: str | None = None,
) -> AsyncIterator[None]:
    """Serve while the block runs, then finish the requests under way and close the listener.

    Without a `tunnel_prefix` there are no WebSockets; without a TLS context it is plain HTTP.
    """
    limits = (limits or ServerLimits()).within(resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    server = _Server(_configuration(app, limits, tunnel_prefix))
    serving = asyncio.ensure_future(server.serve(sockets=[]))
    try:
        while not server.started:
            if serving.done():
                await serving
            await asyncio.wait([serving], timeout=STARTUP_POLL_SECONDS)
        acceptor = Acceptor(listener, server.make_protocol, context, limits.handshakes)
        try:
            yield
        finally:
            acceptor.close()
    finally:
        server.should_exit = True
        await serving
        listener.close()


def _configuration(app: AsgiApplication, given: ServerLimits, prefix: str | None) -> uvicorn.Config:
    class LimitedProtocol(HttpProtocol):
        limits = given
        tunnel_prefix = prefix or ""
        table = ConnectionTable(given.connections)

    config = uvicorn.Config(
        app,
        http=LimitedProtocol,
        ws="none" if prefix is None else "websockets-sansio",
        ws_max_size=given.websocket_message_bytes,
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=given.keep_alive_seconds,
        timeout_graceful_shutdown=given.stop_seconds,
        proxy_headers=False,
    )
    config.load()
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    return config
