"""A request and a response as values, and the one thing a transport does: turn the first into the second.

`InProcess` hands requests straight to the embedded server's request function; HTTP lives in http_transport.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from typing import Protocol, TypeAlias

import msgspec


class User(msgspec.Struct, frozen=True):
    """Who asks, as authentication found out."""

    name: str
    groups: tuple[str, ...] = ()
    uid: str = ""
    extra: Mapping[str, tuple[str, ...]] = {}


class Request(msgspec.Struct, frozen=True):
    """One HTTP request. Header names are lower case; query pairs keep their order and may repeat."""

    method: str
    path: str
    query: tuple[tuple[str, str], ...] = ()
    headers: Mapping[str, str] = {}
    body: bytes = b""
    user: User | None = None  # set by the server's edge, or by InProcess; never by a client over HTTP

    def param(self, name: str, default: str = "") -> str:
        return next((value for key, value in self.query if key == name), default)

    def params(self, name: str) -> list[str]:
        return [value for key, value in self.query if key == name]


class Response(msgspec.Struct):
    """The answer: a whole body, or a stream of chunks (a watch, a followed log) that must be closed."""

    status: int = 200
    headers: dict[str, str] = {}
    body: bytes = b""
    stream: AsyncIterator[bytes] | None = None


Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


class Transport(Protocol):
    """Sends requests. A failure to reach the server at all is a ConnectionError."""

    async def send(self, request: Request) -> Response: ...

    async def close(self) -> None: ...


class InProcess:
    """Into a request function of the same process, as the given user: no sockets, no HTTP."""

    def __init__(self, handler: Handler, user: User) -> None:
        self._handler = handler
        self._user = user

    async def send(self, request: Request) -> Response:
        return await self._handler(msgspec.structs.replace(request, user=self._user))

    async def close(self) -> None:
        return None
