"""Publishes the Numatopology of an agent's node whenever its CPUs or the pods that have some change."""

from __future__ import annotations

import asyncio
import logging
from datetime import timedelta
from typing import Final

from volcano.api.core import Node
from volcano.api.errors import ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.api.topology import Numatopology
from volcano.embedded.agent.cpus.cpu_pool import CpuPool
from volcano.embedded.agent.cpus.numatopology_body import numatopology_spec
from volcano.embedded.agent.grants.ledger import GrantLedger
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
NODES, TOPOLOGIES = resource_type(Node), resource_type(Numatopology)
MIN_RETRY_INTERVAL: Final = timedelta(seconds=1)
MAX_RETRY_INTERVAL: Final = timedelta(minutes=5)
TIMESTAMP_KEY: Final = "timestamp"


class TopologyService:
    """Runs with the agent. `changed` wakes it."""

    def __init__(self, client: Client, clock: Clock, node: str, pool: CpuPool, ledger: GrantLedger) -> None:
        self._client, self._clock, self._node, self._pool, self._ledger = client, clock, node, pool, ledger
        self._changed = asyncio.Event()

    def changed(self) -> None:
        self._changed.set()

    async def run(self) -> None:
        """Until cancelled."""
        pause = MIN_RETRY_INTERVAL
        while True:
            self._changed.clear()
            try:
                await self.publish()
            except ApiError as error:
                if pause == MIN_RETRY_INTERVAL:  # said once: a cluster may not have this kind of object at all
                    log.warning("the NUMA topology of node %s is not published yet: %s", self._node, error)
                await self._clock.sleep(pause)
                pause = min(pause * 2, MAX_RETRY_INTERVAL)
                continue
            pause = MIN_RETRY_INTERVAL
            await self._changed.wait()

    async def publish(self) -> None:
        """Write the object where the stored one differs: what another writer changed is written again."""
        spec, key = numatopology_spec(self._pool, self._ledger.grants), Key("", self._node)
        stamp = str(int(self._clock.now().timestamp()))
        try:
            stored: JSON | None = await self._client.get_json(TOPOLOGIES, key)
        except NotFound:
            stored = None
        if stored is not None:
            if stored.get("spec") != spec:
                stored["metadata"].setdefault("annotations", {})[TIMESTAMP_KEY] = stamp
                await self._client.update(TOPOLOGIES, {**stored, "spec": spec})
            return
        node = await self._client.get_json(NODES, key)
        owner = {"apiVersion": "v1", "kind": "Node", "name": self._node, "uid": node["metadata"]["uid"]}
        metadata = {"name": self._node, "annotations": {TIMESTAMP_KEY: stamp}, "ownerReferences": [owner]}
        await self._client.create(TOPOLOGIES, {"metadata": metadata, "spec": spec})
