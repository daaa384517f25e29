"""ApiServer: a request's life, top to bottom: who asks, what for, may they, do it, answer.

`handle` is all there is: in-process clients call it directly, asgi.py calls it for HTTP.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from prometheus_client import CollectorRegistry

from volcano.api.crds import crd_manifests
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
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.access.authentication import Authenticator, impersonation
from volcano.embedded.apiserver.access.authorization import MASTERS, Ask, Authorizer, RoleBasedAccess, denial
from volcano.embedded.apiserver.admitting.chain import AdmissionChain
from volcano.embedded.apiserver.admitting.hook import Admission
from volcano.embedded.apiserver.admitting.webhooks import Webhooks
from volcano.embedded.apiserver.calls import Backend, Call
from volcano.embedded.apiserver.pages.discovery import discover
from volcano.embedded.apiserver.pages.health import Health
from volcano.embedded.apiserver.pages.openapi_pages import OpenApiPages
from volcano.embedded.apiserver.pages.reviews import Reviewer
from volcano.embedded.apiserver.pages.telemetry import Telemetry
from volcano.embedded.apiserver.pages.version import VERSION
from volcano.embedded.apiserver.registry.custom_resources import DefinitionFollower
from volcano.embedded.apiserver.registry.resources import Registry
from volcano.embedded.apiserver.registry.watch_hub import WatchHub
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.subresources.table import serve_subresource
from volcano.embedded.apiserver.upkeep.bootstrap import ADMIN, bootstrap
from volcano.embedded.apiserver.upkeep.definition_cleaner import DefinitionCleaner
from volcano.embedded.apiserver.upkeep.quota_status import QuotaStatus
from volcano.embedded.apiserver.verbs.create import create
from volcano.embedded.apiserver.verbs.delete import delete, delete_collection
from volcano.embedded.apiserver.verbs.get import get
from volcano.embedded.apiserver.verbs.listing import list_objects
from volcano.embedded.apiserver.verbs.patch import patch
from volcano.embedded.apiserver.verbs.update import update
from volcano.embedded.apiserver.verbs.watch import watch
from volcano.embedded.apiserver.wire.outbound import Outbound
from volcano.embedded.apiserver.wire.representation import error_reply, reply
from volcano.embedded.apiserver.wire.requests import Target, parse_target
from volcano.machinery.clock import Clock
from volcano.machinery.ids import Ids, RandomIds
from volcano.machinery.transport import Request, Response, User

__all__ = ["ADMIN", "ApiServer"]

log = logging.getLogger(__name__)

LARGEST_BODY: Final = 3 * 2**20
REQUEST_SECONDS: Final = 60.0
MOST_READS: Final = 400
MOST_WRITES: Final = 200
_OPEN_TO_ALL: Final = ("healthz", "livez", "readyz", "version")

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


class ApiServer:
    """The embedded Kubernetes API over a store."""

    def __init__(
        self,
        store: Store,
        *,
        clock: Clock,
        admission: Admission | None = None,
        authorizer: Authorizer | None = None,
        tokens: Mapping[str, User] | None = None,
        signing_key: bytes | None = None,
        ids: Ids | None = None,
        metrics: CollectorRegistry | None = None,
    ) -> None:
        registry = Registry()
        DefinitionFollower(store, registry)
        hub, outbound, ids = WatchHub(store), Outbound(), ids or RandomIds()
        self.authorizer: Authorizer = authorizer or RoleBasedAccess(store)
        self.authenticator = Authenticator(store, clock, tokens=tokens, signing_key=signing_key)
        self.backend = Backend(
            store=store,
            registry=registry,
            hub=hub,
            clock=clock,
            ids=ids,
            admission=AdmissionChain(store, admission, Webhooks(store, outbound, ids), self.authorizer),
            issue_token=self.authenticator.issue,
            outbound=outbound,
        )
        self.health = Health()
        self.telemetry = Telemetry(store, hub, metrics)
        self._quotas = QuotaStatus(store, self.backend.admission.quota, self.handle, clock)
        self._cleaner = DefinitionCleaner(store, self.handle, clock)
        self._openapi = OpenApiPages(registry, clock)
        self._reviewer = Reviewer(self.authenticator, self.authorizer)
        self._reads = 0
        self._writes = 0

    async def start(self) -> None:
        """Make what every cluster has; ready to serve afterwards."""
        await bootstrap(self.handle, crd_manifests())
        self._cleaner.start()

    async def close(self) -> None:
        """End all watches and close the store."""
        self.backend.hub.close()
        await self._quotas.close()
        await self._cleaner.close()
        await self.backend.outbound.close()
        await self.backend.store.close()

    async def handle(self, request: Request) -> Response:
        """Answer a request; never raises."""
        started = self.backend.clock.monotonic()
        target: Target | None = None
        try:
            if len(request.body) > LARGEST_BODY:
                raise TooLarge(f"Request entity too large: limit is {LARGEST_BODY}")
            target = parse_target(request)
            response = await self._serve(request, target)
        except ApiError as error:
            response = error_reply(error)
        except TimeoutError:
            response = error_reply(
                Timeout("the server was unable to complete the request in time", details={"retryAfterSeconds": 1})
            )
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            response = error_reply(InternalError("an internal error occurred; the server's log says more"))
        self.telemetry.observe(target, response.status, self.backend.clock.monotonic() - started)
        return response

    async def _serve(self, request: Request, target: Target | None) -> Response:
        user = self._user(request)
        if target is None:
            return await self._serve_path(request, user)
        if user is None:
            raise Unauthorized("Unauthorized")
        ask = Ask(target.verb, target.group, target.resource, target.subresource, target.namespace, target.name)
        if not self.authorizer.allows(user, ask):
            raise _forbidden(user, ask, target)
        if MASTERS in user.groups or target.verb == "watch":
            return await self._serve_resource(request, target, user)
        return await self._serve_limited(request, target, user)

    def _user(self, request: Request) -> User | None:
        """The user, or whom they are allowed to be taken for."""
        user = request.user
        asked = impersonation(request) if "impersonate-user" in request.headers else None
        if asked is None or user is None:
            return user
        for group, resource, namespace, name in asked.needs:
            resource, _, subresource = resource.partition("/")
            ask = Ask("impersonate", group, resource, subresource, namespace, name)
            if not self.authorizer.allows(user, ask):
                raise Forbidden(f"{resource} {name!r} is forbidden: {denial(user, ask)}")
        return asked.user

    async def _serve_limited(self, request: Request, target: Target, user: User) -> Response:
        """Those who are not the cluster's master share a bounded number of requests at a time."""
        writes = target.verb not in ("get", "list")
        if (self._writes >= MOST_WRITES) if writes else (self._reads >= MOST_READS):
            raise TooManyRequests(
                "the server has received too many requests and has asked us to try again later",
                details={"retryAfterSeconds": 1},
            )
        self._writes += writes
        self._reads += not writes
        try:
            return await self._serve_resource(request, target, user)
        finally:
            self._writes -= writes
            self._reads -= not writes

    async def _serve_resource(self, request: Request, target: Target, user: User) -> Response:
        review = self._reviewer.answer(request, target, user)
        if review is not None:
            return reply(review, 201)
        served = self.backend.registry.find(target.group, target.version, target.resource)
        if served is None:
            raise NotFound("the server could not find the requested resource")
        _check_scope(served.type, target)
        call = Call(self.backend, request, target, served, user)
        if served.deprecation:
            call.warnings.append(served.deprecation)
        if target.subresource:
            return await serve_subresource(call)
        verb = VERBS.get(target.verb)
        if verb is None:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        async with asyncio.timeout(REQUEST_SECONDS):
            return await verb(call)

    async def _serve_path(self, request: Request, user: User | None) -> Response:
        """Everything that is not about a resource."""
        first = request.path.strip("/").split("/")[0]
        if user is None and first not in _OPEN_TO_ALL:
            raise Unauthorized("Unauthorized")
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        ask = Ask(request.method.lower(), path=request.path)
        if user is not None and first not in _OPEN_TO_ALL and not self.authorizer.allows(user, ask):
            raise Forbidden(f"forbidden: {denial(user, ask)}")
        health = self.health.reply(request)
        if health is not None:
            return health
        if first == "version":
            return reply(VERSION)
        if first == "metrics":
            return Response(200, {"content-type": "text/plain; version=0.0.4; charset=utf-8"}, self.telemetry.page())
        if first == "":
            return reply({"paths": self._paths()})
        if first == "openapi" and (page := await self._openapi.reply(request)) is not None:
            return page
        found = discover(self.backend.registry, request)
        if found is None:
            raise NotFound("the server could not find the requested resource")
        return found if isinstance(found, Response) else reply(found)

    def _paths(self) -> list[str]:
        groups = [group for group in self.backend.registry.groups() if group]
        versions = [f"/apis/{g}/{v}" for g, vs in self.backend.registry.groups().items() if g for v in vs]
        fixed = [
            "/api",
            "/api/v1",
            "/apis",
            "/healthz",
            "/livez",
            "/metrics",
            "/openapi/v2",
            "/openapi/v3",
            "/readyz",
            "/version",
        ]
        return sorted([*fixed, *(f"/apis/{group}" for group in groups), *versions])


def _check_scope(row: ResourceType, target: Target) -> None:
    """Namespaced objects have a namespace in their URL; cluster-scoped ones have none."""
    named_or_made = bool(target.name) or target.verb == "create"
    if row.namespaced and not target.namespace and named_or_made:
        raise NotFound("the server could not find the requested resource")
    if not row.namespaced and target.namespace and row.plural != "namespaces":
        raise NotFound("the server could not find the requested resource")


def _forbidden(user: User, ask: Ask, target: Target) -> Forbidden:
    what = f'{target.qualified} "{target.name}"' if target.name else target.qualified
    return Forbidden(
        f"{what} is forbidden: {denial(user, ask)}",
        details={"name": target.name, "group": target.group, "kind": target.resource}
        if target.name
        else {"group": target.group, "kind": target.resource},
    )
