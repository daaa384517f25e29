"""A small TLS proxy in front of an API server that can cut connections and answer for it."""

from __future__ import annotations

import asyncio
import contextlib
import random
import ssl
import threading
from collections.abc import Iterator
from datetime import UTC, datetime

from .control_plane import ControlPlane

STATUS = b'{"kind":"Status","apiVersion":"v1","status":"Failure","message":"injected","reason":"%s","code":%d}'
REASONS = {429: b"TooManyRequests", 500: b"InternalError", 503: b"ServiceUnavailable"}


class Proxy:
    """Passes bytes through; each request may instead be answered with an error, each connection may be cut."""

    def __init__(self, plane: ControlPlane) -> None:
        self._plane = plane
        self._random = random.Random(7)
        self._connections: set[asyncio.StreamWriter] = set()
        self._loop = asyncio.new_event_loop()
        self.failing: dict[int, float] = {}
        """Which codes are answered for the server, and for which part of the requests."""
        self.injected = 0
        self.cut = 0
        self.port = 0

    @property
    def url(self) -> str:
        return f"https://127.0.0.1:{self.port}"

    def cut_all(self) -> None:
        """Every connection ends at once, in the middle of whatever it carries."""
        self._loop.call_soon_threadsafe(self._cut)

    def _cut(self) -> None:
        for writer in list(self._connections):
            self.cut += 1
            writer.transport.abort()

    @contextlib.contextmanager
    def running(self) -> Iterator[Proxy]:
        ready = threading.Event()
        thread = threading.Thread(target=self._run, args=(ready,), daemon=True)
        thread.start()
        assert ready.wait(10)
        try:
            yield self
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            thread.join(10)

    def _run(self, ready: threading.Event) -> None:
        asyncio.set_event_loop(self._loop)

        async def begin() -> None:
            pair = self._plane.authority.issue("proxy", (), datetime.now(UTC), hosts=("127.0.0.1", "localhost"))
            path = self._plane.folder / "proxy.pem"
            path.write_bytes(pair.certificate + pair.key)
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(path)
            server = await asyncio.start_server(self._serve, "127.0.0.1", 0, ssl=context, limit=2**20)
            self.port = server.sockets[0].getsockname()[1]
            ready.set()

        self._loop.create_task(begin())
        self._loop.run_forever()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        context = ssl.create_default_context(cafile=str(self._plane.authority.certificate_path))
        self._connections.add(writer)
        upstream = None
        try:
            above, upstream = await asyncio.open_connection("127.0.0.1", self._plane.port, ssl=context, limit=2**20)
            back = asyncio.ensure_future(self._back(above, writer))
            while head := await self._head(reader):
                length = _length(head)
                body = await reader.readexactly(length) if length else b""
                if code := self._failure():
                    content = STATUS % (REASONS[code], code)
                    writer.write(
                        b"HTTP/1.1 %d Injected\r\ncontent-type: application/json\r\nretry-after: 1\r\ncontent-length: %d\r\n\r\n"
                        % (code, len(content))
                        + content
                    )
                    continue
                upstream.write(head + body)
                await upstream.drain()
            back.cancel()
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            self._connections.discard(writer)
            for each in (writer, upstream):
                if each is not None:
                    each.transport.abort()

    async def _head(self, reader: asyncio.StreamReader) -> bytes:
        with contextlib.suppress(asyncio.IncompleteReadError):
            return await reader.readuntil(b"\r\n\r\n")
        return b""

    async def _back(self, above: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while chunk := await above.read(65536):
                writer.write(chunk)
                await writer.drain()
        writer.transport.abort()

    def _failure(self) -> int:
        chosen = self._random.random()
        for code, part in self.failing.items():
            if chosen < part:
                self.injected += 1
                return code
            chosen -= part
        return 0


def _length(head: bytes) -> int:
    for line in head.lower().split(b"\r\n"):
        if line.startswith(b"content-length:"):
            return int(line.partition(b":")[2])
    return 0
