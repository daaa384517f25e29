"""How the extender plugin reaches its service: one blocking request at a time, over a connection that is kept."""

from __future__ import annotations

import http.client
import ssl
import threading
from datetime import timedelta
from typing import Final
from urllib.parse import urlsplit

MAX_CONNECTIONS: Final = 8
MAX_RESPONSE_BYTES: Final = 10 * 2**20


class ExtenderCalls:
    """A cycle runs in a thread of its own, so it may wait; each thread has its own connections."""

    def __init__(self) -> None:
        self._kept = threading.local()

    def __call__(self, url: str, body: bytes, timeout: timedelta) -> tuple[int, bytes]:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise OSError(f"{url} is no http or https URL")
        place = f"{parts.scheme}://{parts.netloc}"
        path = f"{parts.path or '/'}?{parts.query}" if parts.query else parts.path or "/"
        for is_last in (False, True):
            connection = self._connection(place, timeout)
            try:
                connection.request("POST", path, body, {"Content-Type": "application/json"})
                answer = connection.getresponse()
                return answer.status, answer.read(MAX_RESPONSE_BYTES + 1)
            except (OSError, http.client.HTTPException) as error:
                self._drop(place)
                stale = isinstance(error, http.client.RemoteDisconnected | ConnectionResetError | BrokenPipeError)
                if is_last or not stale:  # a kept connection may have been closed meanwhile
                    raise OSError(f"{url}: {error or type(error).__name__}") from error
        raise AssertionError("the second attempt returns or raises")

    def _connection(self, place: str, timeout: timedelta) -> http.client.HTTPConnection:
        kept: dict[str, http.client.HTTPConnection] = self._kept.__dict__.setdefault("connections", {})
        if place not in kept:
            if len(kept) >= MAX_CONNECTIONS:
                kept.pop(next(iter(kept))).close()
            scheme, _, netloc = place.partition("://")
            seconds = timeout.total_seconds()
            kept[place] = (
                http.client.HTTPSConnection(netloc, timeout=seconds, context=ssl.create_default_context())
                if scheme == "https"
                else http.client.HTTPConnection(netloc, timeout=seconds)
            )
        return kept[place]

    def _drop(self, place: str) -> None:
        kept: dict[str, http.client.HTTPConnection] = self._kept.__dict__.get("connections", {})
        if place in kept:
            kept.pop(place).close()
