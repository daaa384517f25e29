"""Aggregation: the step that passes requests for an extension's group on to the server of its APIService."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Final

from volcano.embedded.apiserver.exchange import Exchange
from volcano.embedded.apiserver.registry.extension_apis import ExtensionApi, ExtensionApis
from volcano.embedded.apiserver.wire.extension_client import ExtensionClient
from volcano.embedded.apiserver.wire.requests import flag
from volcano.machinery.transport import Response

PASS_ON_SECONDS: Final = 60.0


class Aggregation:
    """Comes after authorization: the caller may ask, and the extension server decides again by who they are."""

    def __init__(self, extensions: ExtensionApis, client: ExtensionClient) -> None:
        self._extensions = extensions
        self._client = client

    def __call__(self, exchange: Exchange) -> Awaitable[Response] | None:
        parts = exchange.request.path.strip("/").split("/", 3)
        if parts[0] != "apis" or len(parts) < 3 or exchange.user is None:
            return None
        api = self._extensions.find(parts[1], parts[2])
        return None if api is None else self._pass_on(api, exchange)

    async def _pass_on(self, api: ExtensionApi, exchange: Exchange) -> Response:
        assert exchange.user is not None
        request, target = exchange.request, exchange.target
        return await self._client.send(
            request,
            exchange.user,
            api.service,
            ca_bundle=api.ca_bundle,
            is_checked=api.is_checked,
            seconds=PASS_ON_SECONDS,
            streams=(target is not None and target.verb == "watch") or flag(request, "follow"),
        )
