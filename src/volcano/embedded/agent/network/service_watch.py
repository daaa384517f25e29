"""Follows Services and EndpointSlices, and reports which services changed, several changes at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Set
from datetime import timedelta
from typing import Final

from volcano.api.core import EndpointSlice, Service
from volcano.api.indexes import Indexes
from volcano.api.meta import Key, Resource
from volcano.api.service_network import SERVICE_NAME_LABEL
from volcano.embedded.agent.network.service_routes import Route, routes_of
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.informer import Informer
from volcano.machinery.world import Change, Mirror

CHANGE_DELAY: Final = timedelta(milliseconds=20)
"""Changes come in bursts, for example when the pods of a job start; each burst is reported once."""


def _by_service(resource: Resource) -> list[str]:
    name = resource.labels.get(SERVICE_NAME_LABEL, "")
    return [f"{resource.namespace}/{name}"] if name else []


def _by_endpoint(resource: Resource) -> list[str]:
    if not isinstance(resource, EndpointSlice):
        return []
    return [str(address) for endpoint in resource.endpoints for address in endpoint.get("addresses") or ()]


def _by_cluster_address(resource: Resource) -> list[str]:
    return [resource.spec.cluster_ip] if isinstance(resource, Service) else []


SERVICE_INDEXES: Final[Indexes] = {
    EndpointSlice: {"service": _by_service, "address": _by_endpoint},
    Service: {"address": _by_cluster_address},
}


class ServiceWatch:
    """The services of the cluster as last seen."""

    def __init__(self, client: Client, clock: Clock) -> None:
        self._clock = clock
        self.world = Mirror(clock.now, SERVICE_INDEXES)
        self._informers = (
            Informer(client, self.world, clock, Service),
            Informer(client, self.world, clock, EndpointSlice),
        )
        self._changed: set[Key] = set()
        self._wake = asyncio.Event()
        self.world.listen(Service, self._on_service)
        self.world.listen(EndpointSlice, self._on_slice)

    async def synced(self) -> None:
        for informer in self._informers:
            await informer.synced()

    async def run(self, report: Callable[[Set[Key]], None]) -> None:
        """Until cancelled. `report` is called with the services that changed."""
        async with asyncio.TaskGroup() as group:
            for informer in self._informers:
                group.create_task(informer.run())
            while True:
                await self._wake.wait()
                await self._clock.sleep(CHANGE_DELAY)
                self._wake.clear()
                changed, self._changed = self._changed, set()
                report(changed)

    def service(self, key: Key) -> Service | None:
        return self.world.get(Service, key)

    def services(self) -> list[Service]:
        return self.world.all(Service)

    def routes(self, key: Key) -> tuple[Route, ...]:
        service = self.world.get(Service, key)
        return routes_of(service, self.world.where(EndpointSlice, "service", str(key))) if service is not None else ()

    def _on_service(self, change: Change[Service]) -> None:
        self._mark(change.object.key)

    def _on_slice(self, change: Change[EndpointSlice]) -> None:
        for each in (change.old, change.new):
            if each is not None and (name := each.labels.get(SERVICE_NAME_LABEL)):
                self._mark(Key(each.namespace, name))

    def _mark(self, key: Key) -> None:
        self._changed.add(key)
        self._wake.set()
