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
from datetime import timedelta
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from volcano.agent.agent import Agent
from volcano.agent.settings import NodeSettings, simulated_nodes
from volcano.agent.simulated_runtime import SimulatedRuntime
from volcano.api.batch import Job
from volcano.api.core import Pod
from volcano.api.manifests import load_documents
from volcano.api.meta import JSON, Key, Resource
from volcano.api.scheduling import PodGroup, Queue
from volcano.api.scheme import ResourceType, find_resource_type, resource_type
from volcano.apiserver.app import ApiServer
from volcano.apiserver.ids import SeededIds
from volcano.apiserver.memory_store import MemoryStore
from volcano.app.system import System, SystemSettings
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.informer import Informer
from volcano.machinery.world import Mirror

R = TypeVar("R", bound=Resource)
MOMENT = timedelta(milliseconds=50)
WATCHED: tuple[type[Resource], ...] = (Job, Pod, PodGroup, Queue)


class VirtualSystem:
    """What a test sees of the system: a client, a mirror of the main kinds, and waiting."""

    def __init__(self, system: System, clock: VirtualClock) -> None:
        self.system, self.clock = system, clock
        self.client: Client = system.client("test")
        self.mirror = Mirror(clock.now)

    async def apply(self, manifest: str | Path | JSON, *, namespace: str = "default") -> list[JSON]:
        """Create every object of a manifest (a path, YAML text, or an object) in order."""
        if isinstance(manifest, dict):
            documents = [manifest]
        else:
            is_path = isinstance(manifest, Path) or "\n" not in manifest
            text = Path(manifest).read_bytes() if is_path else str(manifest)  # noqa: ASYNC240 - a test's small file
            documents = load_documents(text)
        made = []
        for document in documents:
            resource = find_resource_type(document["apiVersion"].rpartition("/")[0], document["kind"])
            assert resource is not None, f"{document['kind']} is in the scheme"
            metadata = dict(document.get("metadata") or {})
            if resource.namespaced:
                metadata.setdefault("namespace", namespace)
            body = await self.client.create(resource, {**document, "metadata": metadata})
            made.append(msgspec.json.decode(body))
            await self._seen(resource, made[-1])
        return made

    async def _seen(self, resource: ResourceType, made: JSON) -> None:
        """What was created is in the mirror before the story goes on."""
        key = Key(made["metadata"].get("namespace", ""), made["metadata"]["name"])
        kind = next((each for each in WATCHED if resource_type(each) == resource), None)
        if kind is not None:
            await self.until(lambda: self.mirror.get(kind, key) is not None)

    async def until(
        self, condition: Callable[[], Any], *, within: timedelta = timedelta(minutes=10), why: str = ""
    ) -> None:
        """Let time pass until something holds; an AssertionError with the state of things when it does not."""
        end = self.clock.now() + within
        while not condition():
            if self.clock.now() > end:
                raise AssertionError(f"not within {within}: {why or condition}\n{self.summary()}")
            await self.clock.sleep(MOMENT)

    async def settle(self, pause: timedelta = timedelta(seconds=5)) -> None:
        """Let things happen for a while."""
        await self.clock.sleep(pause)

    def get(self, kind: type[R], name: str, namespace: str = "default") -> R | None:
        return self.mirror.get(kind, Key(namespace if resource_type(kind).namespaced else "", name))

    def job(self, name: str, namespace: str = "default") -> Job:
        found = self.get(Job, name, namespace)
        assert found is not None, f"there is no job {name}"
        return found

    def phase(self, name: str, namespace: str = "default") -> str:
        found = self.get(Job, name, namespace)
        return found.status.state.phase if found is not None else ""

    def pods(self, job: str, namespace: str = "default") -> list[Pod]:
        return self.mirror.where(Pod, "job", f"{namespace}/{job}")

    def groups(self) -> list[PodGroup]:
        return self.mirror.all(PodGroup)

    async def delete(self, kind: type[Resource], name: str, namespace: str = "default") -> None:
        row = resource_type(kind)
        await self.client.delete(row, Key(namespace if row.namespaced else "", name))

    async def patch(self, kind: type[Resource], name: str, body: JSON, *, subresource: str = "") -> None:
        row = resource_type(kind)
        await self.client.patch(row, Key("default" if row.namespaced else "", name), body, subresource=subresource)

    def summary(self) -> str:
        """The state of jobs, groups and pods, for a failing test to show."""
        lines = [f"at {self.clock.now():%H:%M:%S}"]
        for job in self.mirror.all(Job):
            state = job.status.state
            lines.append(f"  job {job.key} {state.phase} {state.reason} {state.message}")
        lines += [
            f"  podgroup {g.key} {g.phase} {g.annotations.get('scheduling.volcano.sh/why', '')}" for g in self.groups()
        ]
        lines += [f"  pod {p.key} {p.status.phase} on {p.spec.node_name or '-'}" for p in self.mirror.all(Pod)[:40]]
        return "\n".join(lines)


@contextlib.asynccontextmanager
async def virtual_system(
    *,
    nodes: int = 4,
    capacity: Mapping[str, str] | None = None,
    settings: SystemSettings | None = None,
    node_settings: NodeSettings | None = None,
    seed: int = 0,
) -> AsyncIterator[VirtualSystem]:
    """A running system with simulated nodes; must be entered on a virtual loop."""
    from volcano.app.admission_plug import VolcanoAdmission

    clock = VirtualClock()
    store = MemoryStore()
    server = ApiServer(store, clock=clock, ids=SeededIds(seed), admission=VolcanoAdmission(store))
    await server.start()
    shapes = node_settings or simulated_nodes(nodes, capacity=capacity)
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

    def run(told: Callable[[VirtualSystem], Awaitable[None]]) -> None:
        async def main() -> None:
            async with virtual_system(**options) as system:
                await told(system)

        run_virtually(main())

    return run(story) if story is not None else run
