"""/openapi/v2 and /openapi/v3: the documents of apiserver.schemas.openapi, rendered on
the first request and cached until a CRD changes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final

import msgspec

from volcano.api.meta import JSON
from volcano.api.scheme import ResourceType
from volcano.embedded.apiserver.registry.resources import ResourceRegistry
from volcano.embedded.apiserver.schemas.openapi.documents import (
    openapi_v2,
    openapi_v2_protobuf,
    openapi_v3,
    openapi_v3_index,
)
from volcano.machinery.clock import Clock
from volcano.machinery.transport import Request, Response

PROTOBUF_V2: Final = "application/com.github.proto-openapi.spec.v2.v1.0+protobuf"


class OpenApiPages:
    def __init__(self, registry: ResourceRegistry, clock: Clock) -> None:
        self._registry = registry
        self._clock = clock
        self._generation = -1
        self._pages: dict[str, bytes] = {}

    async def reply(self, request: Request) -> Response | None:
        """The document of a path below /openapi; None when there is none."""
        path = request.path.strip("/")
        if path == "openapi/v2":
            if "proto-openapi.spec.v2" in request.headers.get("accept", ""):
                page = await self._page("v2.pb", lambda: openapi_v2_protobuf(self._v2()))
                return _tagged(request, page, PROTOBUF_V2)
            page = await self._page("v2", lambda: msgspec.json.encode(self._v2()))
            return _tagged(request, page, "application/json")
        if path == "openapi/v3":
            return _tagged(request, await self._page("v3", self._index), "application/json")
        name = path.removeprefix("openapi/v3/").partition("/")[2]
        if not path.startswith("openapi/v3/ap") or name not in self._group_versions():
            return None
        return _tagged(request, await self._page(f"v3/{name}", lambda: self._v3(name)), "application/json")

    async def _page(self, name: str, make: Callable[[], bytes]) -> bytes:
        if self._generation != self._registry.generation:
            self._generation = self._registry.generation
            self._pages.clear()
        page = self._pages.get(name)
        if page is None:
            page = self._pages[name] = await self._clock.run(make)
        return page

    def _rows(self) -> list[ResourceType]:
        return [served.type for served in self._registry.all()]

    def _schemas(self) -> dict[str, JSON]:
        return {
            f"{served.type.qualified}/{served.type.version}": served.openapi
            for served in self._registry.all()
            if served.openapi is not None
        }

    def _group_versions(self) -> dict[str, str]:
        """Each version of each group, with a hash of what its document is made from."""
        texts: dict[str, list[bytes]] = {}
        for served in self._registry.all():
            source = msgspec.json.encode([msgspec.to_builtins(served.type), served.openapi])
            texts.setdefault(served.type.api_version, []).append(source)
        return {name: hashlib.sha256(b"".join(parts)).hexdigest().upper() for name, parts in texts.items()}

    def _index(self) -> bytes:
        return msgspec.json.encode(openapi_v3_index(self._group_versions()))

    def _v3(self, group_version: str) -> bytes:
        return msgspec.json.encode(openapi_v3(group_version, self._rows(), self._schemas()))

    def _v2(self) -> JSON:
        return openapi_v2(self._rows(), self._schemas())


def _tagged(request: Request, page: bytes, media: str) -> Response:
    tag = f'"{hashlib.sha256(page).hexdigest().upper()}"'
    headers = {"content-type": media, "etag": tag, "vary": "Accept"}
    if request.headers.get("if-none-match") == tag:
        return Response(304, headers)
    return Response(200, headers, page)
