"""Registers the agent's nodes, renews their leases and restores their conditions when another writer changed them."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import replace
from datetime import timedelta
from typing import Final

from volcano.api.core import Lease, Namespace, Node
from volcano.api.errors import AlreadyExists, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type
from volcano.embedded.agent.node.node_body import LEASE_NAMESPACE, lease_body, node_body, node_conditions, node_status
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape
from volcano.machinery.apply import Applier
from volcano.machinery.clock import Clock
from volcano.machinery.plan import Create, Patch, Plan, Ref
from volcano.machinery.world import Change

log = logging.getLogger(__name__)
NODES: Final = resource_type(Node)
LEASES: Final = resource_type(Lease)
MAX_CONCURRENT_NODE_WRITES: Final = 32
MAX_NODES_LEASED_AT_START: Final = 16
"""With more nodes than this the first lease is written by the first renewal: a new Node counts as alive until then."""
MAX_FIRST_RENEWAL_PERIOD: Final = timedelta(seconds=20)
MIN_RESTORE_INTERVAL: Final = timedelta(seconds=1)
"""Between two restorations of conditions, so that two writers who disagree do not write without end."""


class NodeRegistration:
    """Creates and refreshes the Node objects and leases of one agent."""

    def __init__(
        self,
        applier: Applier,
        clock: Clock,
        settings: NodeSettings,
        *,
        runtime: str,
        annotations: Mapping[str, str] | None = None,
        kubelet_port: int = 0,
    ) -> None:
        self._applier, self._clock, self._runtime = applier, clock, runtime
        shapes = settings.nodes
        if annotations:
            shapes = tuple(replace(each, annotations={**annotations, **each.annotations}) for each in shapes)
        self._settings = replace(settings, nodes=shapes, kubelet_port=kubelet_port)
        self._slots = asyncio.Semaphore(MAX_CONCURRENT_NODE_WRITES)
        self._leased: set[str] = set()
        self._shapes = {shape.name: shape for shape in self._settings.nodes}
        self._reported = {each["type"]: each["status"] for each in node_conditions(self._settings, clock.now())}
        self._differing: set[str] = set()  # nodes whose stored conditions are not what this agent reports
        self._differs = asyncio.Event()
        self._is_leaving = False

    async def register(self) -> None:
        """Return when every node exists with its capacity and is Ready."""
        await self._applier.apply((Create(resource_type(Namespace), {"metadata": {"name": LEASE_NAMESPACE}}),))
        await asyncio.gather(*(self._register(shape) for shape in self._settings.nodes))
        if len(self._settings.nodes) <= MAX_NODES_LEASED_AT_START:
            await asyncio.gather(*(self._renew(shape) for shape in self._settings.nodes))

    async def keep_alive(self) -> None:
        """Renew leases, spread evenly over the renewal period, until cancelled."""
        shapes, period = self._settings.nodes, min(self._settings.lease_renewal, MAX_FIRST_RENEWAL_PERIOD)
        while True:
            ticks = max(1, min(len(shapes), int(period.total_seconds())))
            for tick in range(ticks):
                await self._clock.sleep(period / ticks)
                await asyncio.gather(*(self._renew(shape) for shape in shapes[tick::ticks]))
            period = self._settings.lease_renewal

    def observe(self, change: Change[Node]) -> None:
        """A stored Node changed: after a stall, for example, its conditions may have been set to Unknown."""
        node = change.new
        if node is None or node.name not in self._shapes:
            return
        stored = {condition.type: condition.status for condition in node.status.conditions}
        if any(stored.get(kind) != status for kind, status in self._reported.items()):
            self._differing.add(node.name)
            self._differs.set()
        else:
            self._differing.discard(node.name)

    async def keep_conditions(self) -> None:
        """Restore the conditions of nodes that were observed to differ, until cancelled."""
        while True:
            await self._differs.wait()
            self._differs.clear()
            if not self._is_leaving:
                await asyncio.gather(*(self._restore(self._shapes[name]) for name in sorted(self._differing)))
            await self._clock.sleep(MIN_RESTORE_INTERVAL)

    async def _restore(self, shape: NodeShape) -> None:
        await self._renew(shape)
        self._differing.discard(shape.name)  # before the write: another change may be observed before its answer
        failure = await self._patch(shape, {"conditions": node_conditions(self._settings, self._clock.now())})
        if failure is not None and not isinstance(failure, NotFound):
            log.warning("conditions of node %s were not restored: %s", shape.name, failure)
            self._differing.add(shape.name)
            self._differs.set()

    async def leave(self) -> None:
        """Mark the nodes as not Ready because they shut down."""
        self._is_leaving = True
        conditions = node_conditions(self._settings, self._clock.now(), is_ending=True)
        await asyncio.gather(*(self._patch(shape, {"conditions": conditions}) for shape in self._settings.nodes))

    async def _register(self, shape: NodeShape) -> None:
        pause = timedelta(milliseconds=100)
        while True:
            body = node_body(shape, self._settings, self._clock.now(), runtime=self._runtime)
            failure = await self._do((Create(NODES, body, exists_ok=False),))
            if failure is None:
                return
            if isinstance(failure, AlreadyExists):
                failure = await self._refresh(shape, body)
                if failure is None:
                    return
            log.warning("node %s is not registered yet: %s", shape.name, failure)
            await self._clock.sleep(pause)
            pause = min(pause * 2, timedelta(seconds=10))

    async def _refresh(self, shape: NodeShape, body: JSON) -> Exception | None:
        """Update a node that already exists; labels and annotations of other writers are kept."""
        metadata = {"labels": body["metadata"]["labels"], "annotations": body["metadata"]["annotations"]}
        target = Ref(NODES, Key("", shape.name))
        failure = await self._do((Patch(target, {"metadata": metadata}, gone_ok=False),))
        if failure is not None:
            return failure
        return await self._patch(shape, node_status(shape, self._settings, self._clock.now(), runtime=self._runtime))

    async def _patch(self, shape: NodeShape, status: JSON) -> Exception | None:
        target = Ref(NODES, Key("", shape.name))
        return await self._do((Patch(target, {"status": status}, "strategic", subresource="status", gone_ok=False),))

    async def _renew(self, shape: NodeShape) -> None:
        body = lease_body(shape, self._settings, self._clock.now())
        failure: Exception | None = None
        if shape.name in self._leased:
            target = Ref(LEASES, Key(LEASE_NAMESPACE, shape.name))
            failure = await self._do((Patch(target, {"spec": body["spec"]}, gone_ok=False),))
            if failure is None:
                return
        self._leased.add(shape.name)
        failure = await self._do((Create(LEASES, body, exists_ok=False),))
        if isinstance(failure, AlreadyExists):
            target = Ref(LEASES, Key(LEASE_NAMESPACE, shape.name))
            failure = await self._do((Patch(target, {"spec": body["spec"]}, gone_ok=False),))
        if failure is not None:
            log.warning("lease of node %s was not renewed: %s", shape.name, failure)

    async def _do(self, plan: Plan) -> Exception | None:
        async with self._slots:
            outcome = await self._applier.apply(plan)
        return outcome.failures[0].error if outcome.failures else None
