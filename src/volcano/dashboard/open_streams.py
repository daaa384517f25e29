"""OpenStreams: the event streams of open pages and of logs, bounded in all and for each session."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Final

import msgspec

from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.dashboard.object_reads import followed_log
from volcano.dashboard.sessions import SignedIn
from volcano.dashboard.web import BadWebRequest, WebRequest
from volcano.machinery.transport import Response

MAX_STREAMS: Final = 400
MAX_STREAMS_OF_SESSION: Final = 40
LOG_LINES_OF_STREAM: Final = 500


class OpenStreams:
    def __init__(self) -> None:
        self._streams = 0

    def answer(self, session: SignedIn, chunks: AsyncIterator[bytes]) -> Response:
        if self._streams >= MAX_STREAMS or session.streams >= MAX_STREAMS_OF_SESSION:
            raise BadWebRequest(429, "too many pages are open")

        async def counted() -> AsyncIterator[bytes]:
            self._streams += 1
            session.streams += 1
            try:
                async for chunk in chunks:
                    yield chunk
            finally:
                self._streams -= 1
                session.streams -= 1

        return Response(200, {"content-type": "text/event-stream", "x-accel-buffering": "no"}, stream=counted())

    def log(self, request: WebRequest, session: SignedIn) -> Response:
        """The lines of a container as they come."""
        parts = request.path.split("/")
        namespace = parts[2] if len(parts) > 2 else ""
        key = Key(namespace, request.query.get("pod", ""))
        client, container = session.caller.client, request.query.get("container", "")

        async def lines() -> AsyncIterator[bytes]:
            try:
                async for line in followed_log(client, key, container, LOG_LINES_OF_STREAM):
                    yield f"data: {msgspec.json.encode(line).decode()}\n\n".encode()
                yield b"event: end\ndata: the container ended\n\n"
            except (ApiError, ConnectionError) as error:
                text = error.message if isinstance(error, ApiError) else str(error)
                yield f"event: problem\ndata: {msgspec.json.encode(text).decode()}\n\n".encode()

        return self.answer(session, lines())
