"""ApiServer: a request's life, top to bottom: who asks, what for, may they, do it, answer.

`handle` is all there is: in-process clients call it directly, asgi.py calls it for HTTP.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

from volcano.api.crds import crd_manifests
from volcano.api.errors import ApiError, InternalError, MethodNotAllowed, NotFound, Unauthorized
from volcano.apiserver.admission_hook import Admission, AdmitEverything
from volcano.apiserver.bootstrap import ADMIN, bootstrap
from volcano.apiserver.calls import Backend, Call
from volcano.apiserver.custom_resources import DefinitionFollower
from volcano.apiserver.ids import Ids, RandomIds
from volcano.apiserver.representation import error_reply
from volcano.apiserver.requests import Target, parse_target
from volcano.apiserver.resources import Registry
from volcano.apiserver.store import Store
from volcano.apiserver.subresources import serve_subresource
from volcano.apiserver.verbs.create import create
from volcano.apiserver.verbs.delete import delete, delete_collection
from volcano.apiserver.verbs.get import get
from volcano.apiserver.verbs.listing import list_objects
from volcano.apiserver.verbs.patch import patch
from volcano.apiserver.verbs.update import update
from volcano.apiserver.verbs.watch import watch
from volcano.apiserver.watch_hub import WatchHub
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request, Response, User

log = logging.getLogger(__name__)

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
        self, store: Store, *, clock: Clock, admission: Admission | None = None, ids: Ids | None = None
    ) -> None:
        registry = Registry()
        DefinitionFollower(store, registry)
        self.backend = Backend(
            store, registry, WatchHub(store), clock, ids or RandomIds(), admission or AdmitEverything()
        )

    async def handle(self, request: Request) -> Response:
        """Answer a request; never raises."""
        try:
            return await self._serve(request)
        except ApiError as error:
            return error_reply(error)
        except Exception:
            log.exception("%s %s failed", request.method, request.path)
            return error_reply(InternalError("an internal error occurred; the server's log says more"))

    async def start(self) -> None:
        """Make what every cluster has; ready to serve afterwards."""
        await bootstrap(self.handle, crd_manifests())

    async def close(self) -> None:
        """End all watches and close the store."""
        self.backend.hub.close()
        await self.backend.store.close()

    async def _serve(self, request: Request) -> Response:
        user = request.user
        if user is None:
            raise Unauthorized("Unauthorized")
        target = parse_target(request)
        if target is None:
            raise NotFound("the server could not find the requested resource")
        return await self._serve_resource(request, target, user)

    async def _serve_resource(self, request: Request, target: Target, user: User) -> Response:
        served = self.backend.registry.find(target.group, target.version, target.resource)
        if served is None:
            raise NotFound("the server could not find the requested resource")
        call = Call(self.backend, request, target, served, user)
        if target.subresource:
            return await serve_subresource(call)
        verb = VERBS.get(target.verb)
        if verb is None:
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        return await verb(call)


__all__ = ["ADMIN", "ApiServer"]
