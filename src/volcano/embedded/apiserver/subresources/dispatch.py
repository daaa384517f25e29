"""The table of subresources: which function answers which verb on which of them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from volcano.api.errors import BadRequest, MethodNotAllowed, NotFound
from volcano.embedded.apiserver.calls import Call
from volcano.embedded.apiserver.subresources.binding import bind
from volcano.embedded.apiserver.subresources.eviction import evict
from volcano.embedded.apiserver.subresources.proxies import log, proxy
from volcano.embedded.apiserver.subresources.scale import scale
from volcano.embedded.apiserver.subresources.service_account_tokens import token
from volcano.embedded.apiserver.verbs.get import get
from volcano.embedded.apiserver.verbs.patch import patch
from volcano.embedded.apiserver.verbs.update import update
from volcano.machinery.transport import Response

Handle = Callable[[Call], Awaitable[Response]]


async def connect(call: Call) -> Response:
    """exec, attach and portforward need a connection that serving.connect relays; a plain request has none."""
    raise BadRequest("Upgrade request required")


_READ_WRITE: Final[Mapping[str, Handle]] = {"get": get, "update": update, "patch": patch}

HANDLERS: Final[Mapping[str, Mapping[str, Handle]]] = {
    "status": _READ_WRITE,
    "ephemeralcontainers": _READ_WRITE,
    "resize": _READ_WRITE,
    "scale": {"get": scale, "update": scale, "patch": scale},
    "binding": {"create": bind},
    "eviction": {"create": evict},
    "log": {"get": log},
    "token": {"create": token},
    "finalize": {"update": update, "patch": patch},
    "exec": {"get": connect, "create": connect},
    "attach": {"get": connect, "create": connect},
    "portforward": {"get": connect, "create": connect},
    "proxy": dict.fromkeys(("get", "create", "update", "patch", "delete", "options"), proxy),
}


async def serve_subresource(call: Call) -> Response:
    name = call.target.subresource
    handlers = HANDLERS.get(name)
    if name not in call.served.type.subresources or handlers is None:
        raise NotFound("the server could not find the requested resource")
    if name != "proxy" and call.target.rest:
        raise NotFound("the server could not find the requested resource")
    handler = handlers.get(call.target.verb)
    if handler is None:
        raise MethodNotAllowed("the server does not allow this method on the requested resource")
    return await handler(call)
