"""Exchange: one request on its way through the steps of request_chain, over HTTP or in process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from volcano.embedded.apiserver.access.authentication import Subject
from volcano.embedded.apiserver.wire.requests import RequestTarget
from volcano.machinery.transport import Request, Response, User


@dataclass(slots=True)
class Exchange:
    """One request on its way through the steps, with what the steps have found out so far."""

    request: Request
    certificate: Subject | None = None
    """The subject of the client's certificate, which TLS has verified."""
    read_body: Callable[[], Awaitable[bytes]] | None = None
    """Reads a body that has not arrived yet; None when the request carries its body."""
    proved: Callable[[str], None] | None = None
    """Told the caller's name once it is authenticated; None in process."""
    target: RequestTarget | None = None
    """The resource that the URL names; None for other paths, such as /version."""
    user: User | None = None
    """The caller, or the user they impersonate; None without credentials."""
    leave: Callable[[], None] | None = None
    """Frees the slot that the request holds among those in flight."""


Step = Callable[[Exchange], Response | Awaitable[Response | None] | None]
"""Answers the request, or passes it on with None; refuses by raising an ApiError."""
