"""Requests over HTTP with aiohttp: pooled connections, TLS, tokens that are renewed, streams for watches."""

from __future__ import annotations

import base64
import contextlib
from collections.abc import AsyncIterator
from typing import Final

import aiohttp

from volcano.machinery.clock import Clock
from volcano.machinery.kubeconfig import Endpoint
from volcano.machinery.tls import FollowedEndpoint
from volcano.machinery.transport import Request, Response

MAX_CONNECTIONS: Final = 1024
"""Watches hold one each; requests beyond this wait for one to become free."""
KEEP_IDLE_SECONDS: Final = 60
"""How long an unused connection is kept: a new one costs both sides a handshake. Our server keeps them for 90."""
CONNECT_TIMEOUT_SECONDS: Final = 10
ANSWER_TIMEOUT_SECONDS: Final = 60
STREAM_IDLE_TIMEOUT_SECONDS: Final = 330  # longer than a watch lasts; bookmarks come every minute
SOCKET_HEARTBEAT_SECONDS: Final = 30.0
MAX_BODY_BYTES: Final = 512 * 1024 * 1024


class HttpTransport:
    """To a real API server, or to the embedded one from another process."""

    def __init__(self, endpoint: Endpoint, clock: Clock) -> None:
        self._given, self._clock = endpoint, clock
        self._followed: FollowedEndpoint | None = None
        self._session: aiohttp.ClientSession | None = None

    @property
    def _endpoint(self) -> Endpoint:
        return self._followed.endpoint if self._followed is not None else self._given

    async def send(self, request: Request) -> Response:
        streams = request.param("watch") == "true" or request.param("follow") == "true"
        timeout = aiohttp.ClientTimeout(
            total=None if streams else ANSWER_TIMEOUT_SECONDS,
            sock_connect=CONNECT_TIMEOUT_SECONDS,
            sock_read=STREAM_IDLE_TIMEOUT_SECONDS if streams else None,
        )
        try:
            answer = await self._opened().request(
                request.method,
                self._endpoint.server + request.path,
                params=list(request.query),
                data=request.body or None,
                headers={**request.headers, **await self._credentials()},
                timeout=timeout,
                server_hostname=self._endpoint.tls_server_name or None,
                proxy=self._endpoint.proxy_url or None,
                allow_redirects=False,
            )
            headers = {name.lower(): value for name, value in answer.headers.items()}
            if streams and answer.status < 400:
                return Response(answer.status, headers, stream=_chunks(answer))
            async with answer:
                return Response(answer.status, headers, await answer.read())
        except aiohttp.ClientError as error:
            raise ConnectionError(f"{request.method} {request.path}: {error}") from error

    @contextlib.asynccontextmanager
    async def socket(
        self, path: str, query: tuple[tuple[str, str], ...], protocols: tuple[str, ...]
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A WebSocket, as exec and attach use it; ConnectionError with the server's words where it is refused."""
        try:
            opened = await self._opened().ws_connect(
                self._endpoint.server + path,
                params=list(query),
                protocols=protocols,
                headers=await self._credentials(),
                server_hostname=self._endpoint.tls_server_name or None,
                proxy=self._endpoint.proxy_url or None,
                max_msg_size=0,
                heartbeat=SOCKET_HEARTBEAT_SECONDS,
            )
        except aiohttp.WSServerHandshakeError as error:
            raise ConnectionError(f"{path}: the API server answers {error.status}") from error
        except aiohttp.ClientError as error:
            raise ConnectionError(f"{path}: {error}") from error
        try:
            yield opened
        finally:
            await opened.close()

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None or self._followed is None:
            self._followed = FollowedEndpoint(self._given)
            context = self._followed.context
            connector = aiohttp.TCPConnector(
                limit=MAX_CONNECTIONS, ssl=context if context else False, keepalive_timeout=KEEP_IDLE_SECONDS
            )
            self._session = aiohttp.ClientSession(connector=connector, auto_decompress=True)
        self._followed.refresh(self._clock.now())
        return self._session

    async def _credentials(self) -> dict[str, str]:
        headers: dict[str, str] = {}
        if self._endpoint.tokens is not None:
            tokens, now = self._endpoint.tokens, self._clock.now()
            token = tokens.known(now) or await self._clock.run(lambda: tokens.token(now))
            headers["authorization"] = f"Bearer {token}"
        elif self._endpoint.user:
            login = f"{self._endpoint.user}:{self._endpoint.password}".encode()
            headers["authorization"] = f"Basic {base64.b64encode(login).decode()}"
        if self._endpoint.impersonate:
            headers["impersonate-user"] = self._endpoint.impersonate
        return headers


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, TimeoutError) as error:
        raise ConnectionError(f"the stream broke: {error or type(error).__name__}") from error
    finally:
        answer.close()
