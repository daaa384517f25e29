"""The step that turns YAML bodies into JSON, off the event loop and one at a time."""

from __future__ import annotations

import asyncio

import msgspec

from volcano.embedded.apiserver.exchange import Exchange
from volcano.embedded.apiserver.wire.bodies import APPLY, YAML_MEDIA_TYPES, yaml_value
from volcano.machinery.clock import Clock


class YamlBodies:
    """YAML takes a hundred times longer to read than JSON; other requests must not wait for it."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._turn = asyncio.Lock()

    async def __call__(self, exchange: Exchange) -> None:
        request = exchange.request
        media = request.headers.get("content-type", "").split(";")[0].strip().lower()
        is_yaml = media in YAML_MEDIA_TYPES or (media == APPLY and request.body.lstrip()[:1] != b"{")
        if not is_yaml:
            return
        async with self._turn:
            body = await self._clock.run(lambda: msgspec.json.encode(yaml_value(request.body)))
        headers = request.headers if media == APPLY else {**request.headers, "content-type": "application/json"}
        exchange.request = msgspec.structs.replace(request, headers=headers, body=body)
