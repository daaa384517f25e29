"""The HTTPS server in front of the Reviewer: its paths, limits and timeouts."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Iterable
from datetime import timedelta
from typing import Final

from volcano.admission.webhook.reviews import Reviewer
from volcano.machinery.connections import ConnectionLimits
from volcano.machinery.https_server import Receive, Scope, Send, ServerLimits, bind, serving_https

MAX_BODY_BYTES: Final = 3 * 1024 * 1024
BODY_TIMEOUT_SECONDS: Final = 10.0
ANSWER_TIMEOUT_SECONDS: Final = 10.0
CONNECTIONS: Final = ConnectionLimits(total=1024, anonymous=1024, anonymous_per_address=1024)
"""An API server need not prove who it is, and all its connections come from one address."""


class ReviewApp:
    """The ASGI application: POST of JSON at an enabled path, nothing else."""

    def __init__(self, reviewer: Reviewer, paths: Iterable[str]) -> None:
        self._reviewer = reviewer
        self._paths = frozenset(paths)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope, receive)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status in (408, 413):
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Scope, receive: Receive) -> tuple[int, bytes]:
        headers = dict(scope["headers"])
        if scope["path"] not in self._paths:
            return 404, b""
        if scope["method"] != "POST":
            return 405, b""
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > MAX_BODY_BYTES:
            return 413, b""
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            return 200, b""
        try:
            async with asyncio.timeout(BODY_TIMEOUT_SECONDS):
                body = await _read(receive)
        except TimeoutError:
            return 408, b""
        if body is None:
            return 413, b""
        try:
            async with asyncio.timeout(ANSWER_TIMEOUT_SECONDS):
                return 200, await self._reviewer.answer(scope["path"], body)
        except TimeoutError:
            return 504, b""


async def _read(receive: Receive) -> bytes | None:
    """The whole body; None when it is too large."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return bytes(body)
        body += message.get("body", b"")
        if len(body) > MAX_BODY_BYTES:
            return None
        if not message.get("more_body", False):
            return bytes(body)


@contextlib.asynccontextmanager
async def serving_reviews(
    app: ReviewApp, *, host: str, port: int, context: ssl.SSLContext, stop_within: timedelta = timedelta(seconds=30)
) -> AsyncIterator[int]:
    """Serve while the block runs, then finish the reviews in progress; yields the port."""
    listener = bind(host, port)
    limits = ServerLimits(
        connections=CONNECTIONS, stranger_idle_seconds=90, stop_seconds=max(1, int(stop_within.total_seconds()))
    )
    async with serving_https(app, listener, context, limits):
        yield listener.getsockname()[1]
