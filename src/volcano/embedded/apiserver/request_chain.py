"""The life of a request: the list of steps that every request passes, over HTTP and in process alike.

A step refuses by raising an ApiError, answers by returning a Response, or returns None to pass the request on. What
surrounds the list (errors become a Status, every answer is counted) is `RequestChain.handle`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final

from volcano.api.errors import (
    ApiError,
    Forbidden,
    InternalError,
    MethodNotAllowed,
    NotFound,
    Timeout,
    TooLarge,
    TooManyRequests,
    Unauthorized,
)
from volcano.embedded.apiserver.access.authentication import ANONYMOUS, Authenticator, impersonation
from volcano.embedded.apiserver.access.authorization import MASTERS, AccessRequest, Authorizer, denial
from volcano.embedded.apiserver.calls import Backend, Call
from volcano.embedded.apiserver.exchange import Exchange, Step
from volcano.embedded.apiserver.pages.aggregation import Aggregation
from volcano.embedded.apiserver.pages.resource_metrics import ResourceMetrics
from volcano.embedded.apiserver.pages.reviews import AccessReviews
from volcano.embedded.apiserver.pages.router import PUBLIC_PATHS, Pages
from volcano.embedded.apiserver.pages.telemetry import Telemetry
from volcano.embedded.apiserver.subresources.dispatch import serve_subresource
from volcano.embedded.apiserver.verbs.create import create
from volcano.embedded.apiserver.verbs.delete import delete, delete_collection
from volcano.embedded.apiserver.verbs.get import get
from volcano.embedded.apiserver.verbs.listing import list_objects
from volcano.embedded.apiserver.verbs.patch import patch
from volcano.embedded.apiserver.verbs.update import update
from volcano.embedded.apiserver.verbs.watch import watch
from volcano.embedded.apiserver.wire.representation import error_reply
from volcano.embedded.apiserver.wire.requests import RequestTarget, parse_target
from volcano.embedded.apiserver.yaml_bodies import YamlBodies
from volcano.machinery.transport import Request, Response, User

log = logging.getLogger(__name__)

MAX_BODY_BYTES: Final = 3 * 2**20
VERB_TIMEOUT_SECONDS: Final = 60.0
MAX_READS_IN_FLIGHT: Final = 400
MAX_WRITES_IN_FLIGHT: Final = 200

VERBS: Final[Mapping[str, Callable[[Call], Awaitable[Response]]]] = {
    "get": get,
    "list": list_objects,
    "watch": watch,
    "create": create,
    "update": update,
    "patch": patch,
    "delete": delete,
    "deletecollection": delete_collection,
}


class RequestChain:
    """Every request passes `steps` in their order; a connection to a kubelet passes `connection_steps`."""

    def __init__(
        self,
        backend: Backend,
        authenticator: Authenticator,
        authorizer: Authorizer,
        pages: Pages,
        telemetry: Telemetry,
    ) -> None:
        self._backend = backend
        self._telemetry = telemetry
        authenticate, impersonate = Authentication(authenticator), Impersonation(authorizer)
        self.steps: Sequence[Step] = (
            parse_url,
            authenticate,
            impersonate,
            Authorization(authorizer),
            read_body,
            Aggregation(backend.extensions, backend.extension_client),  # groups that other servers answer
            LocalPaths(backend),  # pages of other components in this process
            pages.answer,  # health, version, metrics, discovery, OpenAPI
            InFlightLimit(telemetry),
            YamlBodies(backend.clock),
            AccessReviews(authenticator, authorizer).answer,
            ResourceMetrics(backend.store, backend.outbound, backend.clock).answer,  # metrics.k8s.io
            ResourceVerbs(backend),  # the verb or the subresource
        )
        self.connection_steps: Sequence[Callable[[Exchange], None]] = (
            parse_url,
            authenticate,
            impersonate,
            Authorization(authorizer, verb="create"),
        )

    async def handle(self, exchange: Exchange) -> Response:
        """Answer a request; never raises. An error becomes a Status, and every answer is counted and timed."""
        started = self._backend.clock.monotonic()
        try:
            response = await self._first_answer(exchange)
        except ApiError as error:
            response = error_reply(error)
        except TimeoutError:
            response = error_reply(
                Timeout("the server was unable to complete the request in time", details={"retryAfterSeconds": 1})
            )
        except Exception:
            log.exception("%s %s failed", exchange.request.method, exchange.request.path)
            response = error_reply(InternalError("an internal error occurred; the server's log says more"))
        finally:
            if exchange.leave is not None:
                exchange.leave()
        self._telemetry.observe(exchange.target, response.status, self._backend.clock.monotonic() - started)
        return response

    async def _first_answer(self, exchange: Exchange) -> Response:
        for step in self.steps:
            response = step(exchange)
            if response is not None and not isinstance(response, Response):
                response = await response
            if response is not None:
                return response
        raise NotFound("the server could not find the requested resource")

    def authorize_connection(self, exchange: Exchange) -> None:
        """Pass the steps of a connection that outlives its request (exec, attach, portforward)."""
        for step in self.connection_steps:
            step(exchange)


def parse_url(exchange: Exchange) -> None:
    exchange.target = parse_target(exchange.request)


class Authentication:
    """The caller: given by an in-process client, otherwise proven by a certificate or a token."""

    def __init__(self, authenticator: Authenticator) -> None:
        self._authenticator = authenticator

    def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        exchange.user = request.user or self._authenticator.user(request, exchange.certificate)
        if exchange.proved is not None and exchange.user is not None and exchange.user != ANONYMOUS:
            exchange.proved(exchange.user.name)


class Impersonation:
    """The user whom the caller impersonates, if the request asks for it and the caller may."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer

    def __call__(self, exchange: Exchange) -> None:
        caller = exchange.user
        asks = any(name.startswith("impersonate-") for name in exchange.request.headers)
        asked = impersonation(exchange.request) if asks else None
        if asked is None or caller is None:
            return
        for group, resource, namespace, name in asked.needs:
            resource, _, subresource = resource.partition("/")
            ask = AccessRequest("impersonate", group, resource, subresource, namespace, name)
            if not self._authorizer.allows(caller, ask):
                raise Forbidden(f"{resource} {name!r} is forbidden: {denial(caller, ask)}")
        exchange.user = asked.user


class Authorization:
    """Whether the user may do what the request asks, by resource or by path; `verb` replaces the request's own."""

    def __init__(self, authorizer: Authorizer, *, verb: str = "") -> None:
        self._authorizer = authorizer
        self._verb = verb

    def __call__(self, exchange: Exchange) -> None:
        target, request, user = exchange.target, exchange.request, exchange.user
        if target is None and request.path.strip("/").split("/")[0] in PUBLIC_PATHS:
            return
        if user is None:
            raise Unauthorized("Unauthorized")
        if target is None:
            ask = AccessRequest(self._verb or request.method.lower(), path=request.path)
        else:
            verb = self._verb or target.verb
            ask = AccessRequest(verb, target.group, target.resource, target.subresource, target.namespace, target.name)
        if not self._authorizer.allows(user, ask):
            raise _forbidden(user, ask, target)


def _forbidden(user: User, ask: AccessRequest, target: RequestTarget | None) -> Forbidden:
    if target is None:
        return Forbidden(f"forbidden: {denial(user, ask)}")
    what = f'{target.qualified} "{target.name}"' if target.name else target.qualified
    details = {"group": target.group, "kind": target.resource}
    return Forbidden(
        f"{what} is forbidden: {denial(user, ask)}",
        details={"name": target.name, **details} if target.name else details,
    )


def read_body(exchange: Exchange) -> Awaitable[None] | None:
    """Read the body only now: callers that are refused cannot make the server hold large bodies."""
    if exchange.read_body is not None:
        return _read_body(exchange, exchange.read_body)
    if len(exchange.request.body) > MAX_BODY_BYTES:
        raise TooLarge(f"Request entity too large: limit is {MAX_BODY_BYTES}")
    return None


async def _read_body(exchange: Exchange, read: Callable[[], Awaitable[bytes]]) -> None:
    request, body = exchange.request, await read()
    exchange.request = Request(request.method, request.path, request.query, request.headers, body)


class LocalPaths:
    """Hands a path that names no resource to the component that answers it, with the user who asks."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    def __call__(self, exchange: Exchange) -> Awaitable[Response] | None:
        if exchange.target is not None or not self._backend.local_paths:
            return None
        handler = self._backend.local_paths.get(exchange.request.path.strip("/").split("/")[0])
        if handler is None:
            return None
        given = exchange.request
        return handler(Request(given.method, given.path, given.query, given.headers, given.body, exchange.user))


class InFlightLimit:
    """A bounded number of requests at a time; watches and the cluster's masters are not limited."""

    def __init__(
        self, telemetry: Telemetry, *, max_reads: int = MAX_READS_IN_FLIGHT, max_writes: int = MAX_WRITES_IN_FLIGHT
    ) -> None:
        self._max_reads = max_reads
        self._max_writes = max_writes
        self._reads = 0
        self._writes = 0
        telemetry.in_flight.labels("readOnly").set_function(lambda: self._reads)
        telemetry.in_flight.labels("mutating").set_function(lambda: self._writes)

    def __call__(self, exchange: Exchange) -> None:
        target, user = exchange.target, exchange.user
        if target is None or user is None or target.verb == "watch" or MASTERS in user.groups:
            return
        is_read = target.verb in ("get", "list")
        if (self._reads >= self._max_reads) if is_read else (self._writes >= self._max_writes):
            raise TooManyRequests(
                "the server has received too many requests and has asked us to try again later",
                details={"retryAfterSeconds": 1},
            )
        self._reads += is_read
        self._writes += not is_read
        exchange.leave = self._leave_read if is_read else self._leave_write

    def _leave_read(self) -> None:
        self._reads -= 1

    def _leave_write(self) -> None:
        self._writes -= 1


class ResourceVerbs:
    """Runs the verb or the subresource on the resource that the URL names."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend

    async def __call__(self, exchange: Exchange) -> Response:
        target, user = exchange.target, exchange.user
        assert target is not None and user is not None, "pages and authorization come first"
        served = self._backend.registry.find(target.group, target.version, target.resource)
        if served is None or not target.fits_scope(namespaced=served.type.namespaced):
            raise NotFound("the server could not find the requested resource")
        call = Call(self._backend, exchange.request, target, served, user)
        if served.deprecation:
            call.warnings.append(served.deprecation)
        if target.subresource:
            return await serve_subresource(call)
        verb = VERBS.get(target.verb)
        if verb is None:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        async with asyncio.timeout(VERB_TIMEOUT_SECONDS):
            return await verb(call)
