"""Every kind by its metadata, custom kinds as they come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import msgspec

from tests.unit.machinery.scripted_transport import elapse
from volcano.api.core import CustomResourceDefinition
from volcano.api.decode import decode_object
from volcano.api.meta import Key
from volcano.api.partial import PartialObject
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.every_kind import EveryKind
from volcano.machinery.transport import Request, Response
from volcano.machinery.world import Mirror


class Lists:
    """Lists by path; watches never end."""

    def __init__(self, lists: dict[str, list[dict[str, Any]]]) -> None:
        self.lists, self.watched = lists, []

    async def send(self, request: Request) -> Response:
        if request.param("watch"):
            self.watched.append(request.path)
            return Response(stream=self._silence())
        items = self.lists.get(request.path, [])
        return Response(body=msgspec.json.encode({"metadata": {"resourceVersion": "9"}, "items": items}))

    async def _silence(self) -> AsyncIterator[bytes]:
        await asyncio.Event().wait()
        yield b""

    async def close(self) -> None:
        return None


def a_definition(version: int = 1, plural: str = "foos") -> CustomResourceDefinition:
    names = {"plural": plural, "kind": "Foo", "singular": "foo"}
    versions = [{"name": "v1", "served": True, "storage": True}]
    return decode_object(
        CustomResourceDefinition,
        {
            "metadata": {"name": f"{plural}.ex.io", "uid": "u", "resourceVersion": str(version)},
            "spec": {"group": "ex.io", "names": names, "scope": "Namespaced", "versions": versions},
        },
    )


def an_object(name: str) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "ns", "uid": name, "resourceVersion": "1"}}


def test_all_kinds_are_followed_but_events_and_custom_ones_while_they_are_defined():
    async def main() -> None:
        lists = Lists({"/api/v1/configmaps": [an_object("a")], "/apis/ex.io/v1/foos": [an_object("f")]})
        mirror = Mirror()
        every = EveryKind(Client(lists), mirror, VirtualClock())
        running = asyncio.ensure_future(every.run())
        await every.synced()
        await elapse(0.1)
        assert "/api/v1/pods" in lists.watched and not any("events" in path for path in lists.watched)
        assert names(mirror) == ["a"]

        mirror.put(a_definition())
        await elapse(0.1)
        assert names(mirror) == ["a", "f"]

        mirror.remove(CustomResourceDefinition, Key("", "foos.ex.io"))
        await elapse(0.1)
        assert names(mirror) == ["a"]
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    run_virtually(main())


def names(mirror: Mirror) -> list[str]:
    return sorted(found.metadata.name for found in mirror.all(PartialObject))
