"""Requests with the standard library alone, for commands that ask once and end: quick to import, nothing to await.

It keeps the Transport's interface, but blocks; `finish` therefore runs a coroutine on it without an event loop.
"""

from __future__ import annotations

import http.client
import ssl
from collections.abc import AsyncIterator, Coroutine
from typing import Any, Final, TypeVar
from urllib.parse import quote, urlencode, urlsplit

from volcano.machinery.kubeconfig import Endpoint
from volcano.machinery.tls import client_context
from volcano.machinery.transport import Request, Response

T = TypeVar("T")
ANSWER_TIMEOUT_SECONDS: Final = 60
MAX_BODY_BYTES: Final = 512 * 1024 * 1024
READ_BYTES: Final = 64 * 1024


def finish(work: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never really waits."""
    try:
        work.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    work.close()
    raise RuntimeError("a one-shot request tried to wait for something")


class OneShot:
    """One connection, used for one request after another."""

    def __init__(self, endpoint: Endpoint, *, answer_seconds: float = ANSWER_TIMEOUT_SECONDS) -> None:
        self._endpoint, self._answer_seconds = endpoint, answer_seconds
        self._connection: http.client.HTTPConnection | None = None

    async def send(self, request: Request) -> Response:
        streams = request.param("watch") == "true" or request.param("follow") == "true"
        path = quote(request.path, safe="/:@!$&'()*+,;=-._~")
        query = urlencode(request.query)
        address = urlsplit(self._endpoint.server).path.rstrip("/") + path + (f"?{query}" if query else "")
        headers = {**request.headers, **self._credentials()}
        for fresh in (False, True):
            connection = self._opened(fresh=fresh or streams)
            try:
                connection.request(request.method, address, request.body or None, headers)
                answer = connection.getresponse()
                break
            except (http.client.RemoteDisconnected, BrokenPipeError, ConnectionResetError) as error:
                # The server has closed the idle connection: retry once on a new one.
                self._connection = None
                if fresh:
                    raise ConnectionError(f"{self._endpoint.server} closed the connection") from error
            except (OSError, http.client.HTTPException, ssl.SSLError) as error:
                raise ConnectionError(f"{self._endpoint.server}: {error}") from error
        found = {name.lower(): value for name, value in answer.getheaders()}
        if streams and answer.status < 400:
            if connection.sock is not None:
                connection.sock.settimeout(None)
            return Response(answer.status, found, stream=_chunks(answer))
        return Response(answer.status, found, answer.read(MAX_BODY_BYTES))

    async def close(self) -> None:
        if self._connection is not None:
            self._connection.close()

    def _opened(self, *, fresh: bool) -> http.client.HTTPConnection:
        if self._connection is not None and not fresh:
            return self._connection
        where = urlsplit(self._endpoint.server)
        host, context = where.hostname or "localhost", client_context(self._endpoint)
        if context is None:
            connection = http.client.HTTPConnection(host, where.port or 80, timeout=self._answer_seconds)
        else:
            connection = _NamedServer(host, where.port or 443, timeout=self._answer_seconds, context=context).called(
                self._endpoint.tls_server_name
            )
        if not fresh:
            self._connection = connection
        return connection

    def _credentials(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self._endpoint.tokens is not None:
            from volcano.machinery.clock import SystemClock  # imports asyncio, which most commands do without

            headers["authorization"] = f"Bearer {self._endpoint.tokens.token(SystemClock().now())}"
        elif self._endpoint.user:
            import base64

            login = f"{self._endpoint.user}:{self._endpoint.password}".encode()
            headers["authorization"] = f"Basic {base64.b64encode(login).decode()}"
        if self._endpoint.impersonate:
            headers["impersonate-user"] = self._endpoint.impersonate
        return headers


class _NamedServer(http.client.HTTPSConnection):
    """A TLS connection whose server may go by another name (tls-server-name)."""

    _server_name = ""

    def called(self, name: str) -> _NamedServer:
        self._server_name = name
        return self

    def connect(self) -> None:
        http.client.HTTPConnection.connect(self)
        context: ssl.SSLContext = self._context  # type: ignore[attr-defined]
        self.sock = context.wrap_socket(self.sock, server_hostname=self._server_name or self.host)


async def _chunks(answer: http.client.HTTPResponse) -> AsyncIterator[bytes]:
    try:
        while chunk := answer.read1(READ_BYTES):
            yield chunk
        if answer.length:  # the server promised more than it sent
            raise http.client.IncompleteRead(b"", answer.length)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(f"the stream broke: {error}") from error
    finally:
        answer.close()
