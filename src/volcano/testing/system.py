"""The whole system under a VirtualClock, in memory, for tests: days pass in milliseconds, and always in the same way.

def test_a_job_completes():
    @on_virtual_time
    async def story(system):
        await system.apply("examples/gang.yaml")
        await system.until(lambda: system.phase("gang") == "Completed")
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC
from typing import Any

from volcano.app.system import System, SystemSettings
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.node.settings import NodeSettings, simulated_nodes
from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.ids import SeededIds
from volcano.machinery.informer import Informer
from volcano.testing.view import WATCHED, SystemView


class VirtualSystem(SystemView):
    """The view of a system in this process, on virtual time."""

    def __init__(self, system: System, clock: VirtualClock) -> None:
        super().__init__(system.client("test"), clock)
        self.system = system


@contextlib.asynccontextmanager
async def virtual_system(
    *,
    nodes: int = 4,
    capacity: Mapping[str, str] | None = None,
    settings: SystemSettings | None = None,
    node_settings: NodeSettings | None = None,
    seed: int = 0,
    store: MemoryStore | None = None,
    admission: bool = True,
) -> AsyncIterator[VirtualSystem]:
    """A running system with simulated nodes; must be entered on a virtual loop. `store` is that of an earlier one.

    Without `admission` Volcano's own defaults and validation do not apply, as where its webhooks are switched off.
    """
    from volcano.app.admission_plug import VolcanoAdmission

    clock = VirtualClock()
    store = store or MemoryStore()
    server = ApiServer(
        store, clock=clock, ids=SeededIds(seed), admission=VolcanoAdmission(store) if admission else None
    )
    await server.start()
    shapes = node_settings or simulated_nodes(nodes, capacity=capacity)
    settings = settings or SystemSettings(local_zone=UTC)  # the same on every machine
    system = System(
        server, clock, settings=settings, agents=[lambda client: Agent(client, clock, shapes, SimulatedRuntime(clock))]
    )
    view = VirtualSystem(system, clock)
    informers = [Informer(view.client, view.mirror, clock, kind) for kind in WATCHED]
    tasks = [asyncio.ensure_future(system.run()), *(asyncio.ensure_future(each.run()) for each in informers)]
    try:
        ready = asyncio.ensure_future(system.ready())
        await asyncio.wait({ready, tasks[0]}, return_when=asyncio.FIRST_COMPLETED)
        if tasks[0].done():
            tasks[0].result()
        for informer in informers:
            await informer.synced()
        yield view
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await server.close()


def on_virtual_time(story: Callable[[VirtualSystem], Awaitable[None]] | None = None, **options: Any) -> Any:
    """Run a story on a system of its own, now."""

    def run(story_function: Callable[[VirtualSystem], Awaitable[None]]) -> None:
        async def main() -> None:
            async with virtual_system(**options) as system:
                await story_function(system)

        run_virtually(main())

    return run(story) if story is not None else run
