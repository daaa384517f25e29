"""Every path that is not about a resource: which page answers it. The pages themselves are the other modules here."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from volcano.api.errors import MethodNotAllowed, NotFound
from volcano.embedded.apiserver.exchange import Exchange
from volcano.embedded.apiserver.pages.discovery import discover
from volcano.embedded.apiserver.pages.openapi_pages import OpenApiPages
from volcano.embedded.apiserver.pages.status import VERSION, Health
from volcano.embedded.apiserver.pages.store_pages import StorePages
from volcano.embedded.apiserver.pages.telemetry import Telemetry
from volcano.embedded.apiserver.registry.extension_apis import ExtensionApis
from volcano.embedded.apiserver.registry.resources import ResourceRegistry
from volcano.embedded.apiserver.store.contract import Store
from volcano.embedded.apiserver.wire.representation import reply
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request, Response

PUBLIC_PATHS: Final = ("healthz", "livez", "readyz", "version")
"""First parts of the paths that need no credentials."""
_FIXED_PATHS: Final = (
    "/api", "/api/v1", "/apis", "/healthz", "/livez", "/metrics", "/openapi/v2", "/openapi/v3", "/readyz", "/version",
)  # fmt: skip


class Pages:
    """Answers requests that name no resource."""

    def __init__(
        self,
        registry: ResourceRegistry,
        extensions: ExtensionApis,
        health: Health,
        telemetry: Telemetry,
        store: Store,
        clock: Clock,
    ) -> None:
        self._registry = registry
        self._extensions = extensions
        self._health = health
        self._telemetry = telemetry
        self._store = StorePages(store, clock)
        health.add("store-writes", self._store.write_fault)
        self._openapi = OpenApiPages(registry, clock)

    def answer(self, exchange: Exchange) -> Awaitable[Response] | None:
        """The page of a path; None when the request is about a resource."""
        return self._answer(exchange.request) if exchange.target is None else None

    async def _answer(self, request: Request) -> Response:
        if request.method not in ("GET", "HEAD"):
            raise MethodNotAllowed("the server does not allow this method on the requested resource")
        page = await self._page(request)
        if page is None:
            raise NotFound("the server could not find the requested resource")
        return page

    async def _page(self, request: Request) -> Response | None:
        match request.path.strip("/").split("/")[0]:
            case "readyz":
                await self._store.probe()
                return self._health.reply(request)
            case "store" if request.path.strip("/") == "store/backup":
                return await self._store.backup()
            case "healthz" | "livez":
                return self._health.reply(request)
            case "version":
                return reply(VERSION)
            case "metrics":
                headers = {"content-type": "text/plain; version=0.0.4; charset=utf-8"}
                return Response(200, headers, self._telemetry.page())
            case "openapi":
                return await self._openapi.reply(request)
            case "":
                return reply({"paths": self._paths()})
        found = discover(self._registry, self._extensions, request)
        return reply(found) if isinstance(found, dict) else found

    def _paths(self) -> list[str]:
        groups = {group: versions for group, versions in self._registry.groups().items() if group}
        versions = [f"/apis/{group}/{version}" for group, versions in groups.items() for version in versions]
        return sorted([*_FIXED_PATHS, *(f"/apis/{group}" for group in groups), *versions])
