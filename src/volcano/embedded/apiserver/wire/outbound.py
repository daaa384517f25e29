"""Requests the server itself makes: a pod's log from its kubelet, proxied services and pods, admission webhooks."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from volcano.api.errors import ServiceUnavailable
from volcano.machinery.transport import Response

if TYPE_CHECKING:
    import aiohttp

CONNECT_SECONDS: Final = 10.0
MAX_REPLY_BYTES: Final = 64 * 2**20
MAX_CONNECTIONS: Final = 256
MAX_CONNECTIONS_PER_HOST: Final = 64
_HOP_BY_HOP: Final = frozenset(
    {
        "connection", "keep-alive", "proxy-authenticate", "proxy-authorization", "te", "trailer", "transfer-encoding",
        "upgrade", "host", "content-length", "authorization", "accept-encoding",
    }
)  # fmt: skip


class Outbound:
    """One client session for streams and one for everything else the server fetches; opened when first used.

    Streams end when their clients want: in a session with a bound they would take all places from others. Each of them
    belongs to a client's connection, and those are bounded.
    """

    def __init__(self, context: ssl.SSLContext | None = None) -> None:
        self.kubelet_context = context
        self._session: aiohttp.ClientSession | None = None
        self._streams: aiohttp.ClientSession | None = None

    async def fetch(
        self,
        method: str,
        url: str,
        *,
        query: Sequence[tuple[str, str]] = (),
        headers: Mapping[str, str] | None = None,
        repeated: Sequence[tuple[str, str]] = (),
        body: bytes = b"",
        context: ssl.SSLContext | bool | None = None,
        seconds: float | None = 60.0,
        streams: bool = False,
        server_name: str | None = None,
    ) -> Response:
        """The response, as a stream if wanted. A server that cannot be reached is ServiceUnavailable.

        It has `seconds` for the whole response; for a stream, until its head.
        `server_name` is whom the certificate and the Host header name, where that is not the address's host;
        `repeated` are headers whose names may occur several times.
        """
        import aiohttp  # imported late: many servers never make a request

        passed = {name: value for name, value in (headers or {}).items() if name.lower() not in _HOP_BY_HOP}
        if server_name is not None:
            passed["Host"] = server_name
        timeout = aiohttp.ClientTimeout(total=None if streams else seconds, sock_connect=CONNECT_SECONDS)
        try:
            async with asyncio.timeout(seconds):
                answer = await self._opened(streams=streams).request(
                    method,
                    url,
                    params=list(query),
                    headers=[*passed.items(), *repeated],
                    data=body or None,
                    ssl=context if context is not None else True,
                    server_hostname=server_name,
                    timeout=timeout,
                    allow_redirects=False,
                )
        except (aiohttp.ClientError, TimeoutError, OSError, ValueError) as error:
            raise ServiceUnavailable(f"error trying to reach service: {error}") from error
        kept = {name.lower(): value for name, value in answer.headers.items() if name.lower() not in _HOP_BY_HOP}
        kept.pop("content-encoding", None)
        if streams:
            return Response(answer.status, kept, stream=_chunks(answer))
        async with answer:
            try:
                content = await _bounded(answer)
            except (aiohttp.ClientError, TimeoutError) as error:
                raise ServiceUnavailable(f"error trying to reach service: {error}") from error
        return Response(answer.status, kept, content)

    async def close(self) -> None:
        for session in (self._session, self._streams):
            if session is not None:
                await session.close()

    def _opened(self, *, streams: bool) -> aiohttp.ClientSession:
        if streams:
            self._streams = self._streams or _session(limit=0, limit_per_host=0)
            return self._streams
        self._session = self._session or _session(limit=MAX_CONNECTIONS, limit_per_host=MAX_CONNECTIONS_PER_HOST)
        return self._session


def _session(*, limit: int, limit_per_host: int) -> aiohttp.ClientSession:
    """A session of its own; no limit is 0."""
    import aiohttp

    connector = aiohttp.TCPConnector(limit=limit, limit_per_host=limit_per_host)
    return aiohttp.ClientSession(connector=connector, cookie_jar=aiohttp.DummyCookieJar())


async def _bounded(answer: aiohttp.ClientResponse) -> bytes:
    chunks: list[bytes] = []
    size = 0
    async for chunk in answer.content.iter_any():
        size += len(chunk)
        if size > MAX_REPLY_BYTES:
            raise ServiceUnavailable(f"the reply is larger than {MAX_REPLY_BYTES} bytes")
        chunks.append(chunk)
    return b"".join(chunks)


async def _chunks(answer: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    import aiohttp

    try:
        async for chunk in answer.content.iter_any():
            yield chunk
    except (aiohttp.ClientError, asyncio.IncompleteReadError):
        return
    finally:
        answer.close()


def unverified() -> Any:
    """TLS without a check of the peer's certificate: services and pods have certificates of their own."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context
