"""A node's conditions are restored whenever another writer changes them, also while they are being restored."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from volcano.api.core import Node
from volcano.api.decode import decode_object
from volcano.embedded.agent.node.node_registration import NodeRegistration
from volcano.embedded.agent.node.settings import simulated_nodes
from volcano.machinery.apply import Outcome
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.plan import Patch, Plan
from volcano.machinery.world import Change


def a_node(status: str) -> Node:
    kinds = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
    conditions = [{"type": kind, "status": status} for kind in kinds]
    return decode_object(Node, {"metadata": {"name": "sim-0"}, "status": {"conditions": conditions}})


class OvertakenApplier:
    """While the first restoration is being answered, the conditions are overwritten again."""

    def __init__(self) -> None:
        self.registration: NodeRegistration | None = None
        self.restored = 0

    async def apply(self, plan: Plan) -> Outcome:
        (step,) = plan
        if isinstance(step, Patch) and step.subresource == "status":
            self.restored += 1
            if self.restored == 1:
                assert self.registration is not None
                self.registration.observe(Change(None, a_node("Unknown")))
        return Outcome()


def test_a_change_that_is_seen_before_the_restoration_is_answered_is_restored_too():
    async def main() -> int:
        applier = OvertakenApplier()
        registration = NodeRegistration(applier, VirtualClock(), simulated_nodes(1), runtime="simulated")  # type: ignore[arg-type]
        applier.registration = registration
        keeping = asyncio.ensure_future(registration.keep_conditions())
        registration.observe(Change(None, a_node("Unknown")))
        await VirtualClock().sleep(timedelta(seconds=10))
        keeping.cancel()
        await asyncio.gather(keeping, return_exceptions=True)
        return applier.restored

    assert run_virtually(main()) == 2
