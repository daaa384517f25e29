"""The HTTPS server in front of the Reviewer: its paths, limits and timeouts."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator
from datetime import timedelta
from typing import Any, Final

import uvicorn

from volcano.admission.webhook.reviews import Reviewer

LARGEST_BODY: Final = 3 * 1024 * 1024
BODY_SECONDS: Final = 10.0
ANSWER_SECONDS: Final = 10.0
KEEP_ALIVE_SECONDS: Final = 90
MOST_CONNECTIONS: Final = 1024

Message = dict[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]


class ReviewApp:
    """What uvicorn calls: POST of JSON at an enabled path, nothing else."""

    def __init__(self, reviewer: Reviewer, paths: Iterable[str]) -> None:
        self._reviewer = reviewer
        self._paths = frozenset(paths)

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        status, body = await self._answer(scope, receive)
        headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
        if status in (408, 413):
            headers.append((b"connection", b"close"))
        await send({"type": "http.response.start", "status": status, "headers": headers})
        await send({"type": "http.response.body", "body": body})

    async def _answer(self, scope: Message, receive: Receive) -> tuple[int, bytes]:
        headers = dict(scope["headers"])
        if scope["path"] not in self._paths:
            return 404, b""
        if scope["method"] != "POST":
            return 405, b""
        length = headers.get(b"content-length", b"0")
        if length.isdigit() and int(length) > LARGEST_BODY:
            return 413, b""
        if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != b"application/json":
            return 200, b""
        try:
            async with asyncio.timeout(BODY_SECONDS):
                body = await _read(receive)
        except TimeoutError:
            return 408, b""
        if body is None:
            return 413, b""
        try:
            async with asyncio.timeout(ANSWER_SECONDS):
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
        if len(body) > LARGEST_BODY:
            return None
        if not message.get("more_body", False):
            return bytes(body)


class _Server(uvicorn.Server):
    """uvicorn without its signal handlers: whoever runs us decides what a signal means."""

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        yield


@contextlib.asynccontextmanager
async def serving_https(
    app: ReviewApp, *, host: str, port: int, context: ssl.SSLContext, stop_within: timedelta = timedelta(seconds=30)
) -> AsyncIterator[int]:
    """Serve while the block runs, then finish what was begun; yields the port."""
    listener = _bind(host, port)
    config = uvicorn.Config(
        app,
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        access_log=False,
        server_header=False,
        timeout_keep_alive=KEEP_ALIVE_SECONDS,
        timeout_graceful_shutdown=max(1, int(stop_within.total_seconds())),
        limit_concurrency=MOST_CONNECTIONS,
        proxy_headers=False,
    )
    config.load()
    config.ssl = context
    logging.getLogger("uvicorn.error").setLevel(logging.ERROR)
    server = _Server(config)
    task = asyncio.ensure_future(server.serve(sockets=[listener]))
    try:
        while not server.started:
            if task.done():
                await task
            await asyncio.wait([task], timeout=0.005)
        yield listener.getsockname()[1]
    finally:
        server.should_exit = True
        await task
        listener.close()


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    # asyncio sends small answers at once (TCP_NODELAY) only on sockets that say they are TCP
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listener.bind((host, port))
        listener.listen(256)
    except OSError:
        listener.close()
        raise
    listener.setblocking(False)
    return listener
