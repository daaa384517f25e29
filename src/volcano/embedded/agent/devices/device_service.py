"""Publishes an agent's cards as ResourceSlices, and looks again whether they are still there."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from datetime import timedelta
from typing import Final

from volcano.api.core import DeviceClass, Node, ResourceSlice
from volcano.api.errors import AlreadyExists, ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.embedded.agent.devices.cards import ACCELERATOR_RESOURCES
from volcano.embedded.agent.devices.detection import FoundCards, find_cards
from volcano.embedded.agent.devices.inventory import CardInventory
from volcano.embedded.agent.devices.slices import device_class, slice_body, slice_name
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
CHECK_INTERVAL: Final = timedelta(seconds=30)
"""Between two looks at the cards: a tool of a vendor takes up to a second of CPU."""
MIN_RETRY_INTERVAL: Final = timedelta(seconds=1)
MAX_RETRY_INTERVAL: Final = timedelta(minutes=5)
NODES, SLICES, CLASSES = resource_type(Node), resource_type(ResourceSlice), resource_type(DeviceClass)


class DeviceService:
    """Keeps node capacity and slices equal to what is there.

    `capacities` are what the agent registered its nodes with, `held` the cards that its pods have. Without an inventory
    it removes what an earlier run published, and ends.
    """

    def __init__(
        self,
        client: Client,
        clock: Clock,
        capacities: Mapping[str, Mapping[str, str]],
        inventory: CardInventory | None,
        held: Callable[[], frozenset[str]],
        *,
        find: Callable[[], FoundCards] = find_cards,
    ) -> None:
        self._client, self._clock, self._capacities = client, clock, capacities
        self._nodes = tuple(capacities)
        self._inventory, self._held, self._find = inventory or CardInventory(FoundCards(), self._nodes), held, find
        self._looks_again = inventory is not None
        self._published: dict[str, dict[str, str] | None] = dict.fromkeys(self._nodes)
        self._warned: tuple[str, ...] = ()
        self._has_failed = False  # at the last attempt; said once

    async def run(self) -> None:
        """Until cancelled. What could not be written is written at the next look."""
        pause = MIN_RETRY_INTERVAL
        while True:
            if not await self.publish():
                await self._clock.sleep(pause)
                pause = min(pause * 2, MAX_RETRY_INTERVAL)
                continue
            if not self._looks_again:
                return
            pause = MIN_RETRY_INTERVAL
            await self._clock.sleep(CHECK_INTERVAL)
            self.take(await self._clock.run(self._find))

    def take(self, found: FoundCards) -> None:
        """What another look found."""
        if found.warnings != self._warned:
            for warning in found.warnings:
                log.warning("%s", warning)
            self._warned = found.warnings
        before = {node: self._inventory.of(node) for node in self._nodes}
        if self._inventory.update(found):
            for node in self._nodes:
                now = {each.card.id for each in self._inventory.of(node)}
                was = {each.card.id for each in before[node]}
                for gone in sorted(was - now):
                    log.warning("node %s: card %s is gone, and is no longer handed out", node, gone)
                for back in sorted(now - was):
                    log.warning("node %s: card %s is there, and is handed out", node, back)

    async def publish(self) -> bool:
        """Write what differs; returns whether all of it is written."""
        try:
            for node in self._nodes:
                await self._publish_amounts(node)
                await self._publish_slice(node)
        except ApiError as error:
            if not self._has_failed:
                log.warning("devices are not published yet: %s", error)
            self._has_failed = True
            return False
        self._has_failed = False
        return True

    async def _publish_amounts(self, node: str) -> None:
        amounts = self._inventory.amounts(node, self._held())
        if amounts == self._published[node]:
            return
        stored = (await self._client.get_json(NODES, Key("", node))).get("status") or {}
        stated = {**self._capacities[node], **amounts}
        # Cards that an earlier run of the agent had: a patch of other amounts leaves them as they were.
        stale = dict.fromkeys(({*(stored.get("capacity") or {})} & ACCELERATOR_RESOURCES) - stated.keys())
        changes = {**stale, **amounts}
        status = {"status": {"capacity": changes, "allocatable": changes}}
        if any((stored.get("capacity") or {}).get(name) != amount for name, amount in changes.items()):
            await self._client.patch(NODES, Key("", node), status, kind="strategic", subresource="status")
        self._published[node] = amounts

    async def _publish_slice(self, node: str) -> None:
        cards = [each.card for each in self._inventory.of(node) if each.by_claims]
        key = Key("", slice_name(node))
        try:
            stored: JSON | None = await self._client.get_json(SLICES, key)
        except NotFound:
            stored = None
        if stored is None and not cards:
            return
        if stored is not None and not cards:
            await self._client.delete(SLICES, key)
            return
        for vendor in sorted({card.vendor for card in cards}):
            try:
                await self._client.create(CLASSES, device_class(vendor))
            except AlreadyExists:
                pass  # also one that an administrator changed
        owner = await self._client.get_json(NODES, Key("", node))
        known = (stored or {}).get("spec") or {}
        generation = int((known.get("pool") or {}).get("generation") or 0)
        body = slice_body(node, owner["metadata"]["uid"], cards, max(1, generation))
        if stored is None:
            await self._client.create(SLICES, body)
        elif known.get("devices") != body["spec"]["devices"] or _owner(stored) != _owner(body):
            body["spec"]["pool"]["generation"] = generation + 1
            body["metadata"]["resourceVersion"] = stored["metadata"]["resourceVersion"]
            await self._client.update(SLICES, {**stored, **body})


def _owner(body: JSON) -> list[str]:
    return [owner["uid"] for owner in body["metadata"].get("ownerReferences") or ()]
