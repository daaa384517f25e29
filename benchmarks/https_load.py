"""Load on an API server over HTTPS: requests that were encoded beforehand, on connections that stay open.

A client library would take more of the CPUs than some servers do; this one writes bytes and parses only what ends an
answer. It serves HTTP/1.1, which the embedded server and kube-apiserver both speak.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple
from urllib.parse import urlsplit

import httptools

from volcano.machinery.kubeconfig import Endpoint
from volcano.machinery.tls import client_context


class Load(NamedTuple):
    """What a load took."""

    requests: int
    seconds: float
    generator_cpu: float
    slowest_ms: float
    median_ms: float


def encoded(method: str, path: str, host: str, body: bytes, content_type: str = "application/json") -> bytes:
    """One request as bytes, with the headers that client-go sends."""
    head = (
        f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nUser-Agent: bench/1\r\nContent-Length: {len(body)}\r\n"
        f"Accept: application/json\r\nContent-Type: {content_type}\r\n\r\n"
    )
    return head.encode() + body


class _Connection(asyncio.Protocol):
    """Sends the next request when the answer to the one before is complete; ends when there is none."""

    def __init__(self, requests: Iterator[bytes], expected: int, times: list[float]) -> None:
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._requests, self._expected, self._times = requests, expected, times
        self._parser = httptools.HttpResponseParser(self)
        self._body: list[bytes] = []

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        self._transport = transport

    def close(self) -> None:
        self._transport.close()

    def next(self) -> None:
        request = next(self._requests, None)
        if request is None:
            self.done.set_result(None)
            return
        self._sent = time.perf_counter()
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._parser.feed_data(data)

    def on_body(self, piece: bytes) -> None:
        if self._parser.get_status_code() != self._expected:
            self._body.append(piece)

    def on_message_complete(self) -> None:
        self._times.append(time.perf_counter() - self._sent)
        status = self._parser.get_status_code()
        if status != self._expected:
            self.done.set_exception(RuntimeError(f"{status}: {b''.join(self._body)[:500]!r}"))
            return
        self._parser = httptools.HttpResponseParser(self)
        self.next()

    def connection_lost(self, error: Exception | None) -> None:
        if not self.done.done():
            self.done.set_exception(error or ConnectionError("the server closed the connection"))


async def put_load(endpoint: Endpoint, requests: Sequence[bytes], clients: int, expected: int = 201) -> Load:
    """Send all requests over as many connections as there are clients; the handshakes are not counted."""
    url, context, loop = urlsplit(endpoint.server), client_context(endpoint), asyncio.get_running_loop()
    waiting, times = iter(requests), list[float]()
    connections = []
    for _ in range(clients):
        _, connection = await loop.create_connection(
            lambda: _Connection(waiting, expected, times), url.hostname, url.port, ssl=context
        )
        connections.append(connection)
    begun, busy = time.perf_counter(), time.process_time()
    for connection in connections:
        connection.next()
    await asyncio.gather(*(connection.done for connection in connections))
    took, cpu = time.perf_counter() - begun, time.process_time() - busy
    for connection in connections:
        connection.close()
    times.sort()
    return Load(len(requests), took, cpu, times[-1] * 1000, times[len(times) // 2] * 1000)
