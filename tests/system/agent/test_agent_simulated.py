"""Simulated nodes on virtual time: pods last as long as they say, survive an agent's restart, cost little."""

from __future__ import annotations

import asyncio
from datetime import timedelta

from volcano.api.core import Lease, Node, Pod
from volcano.api.errors import NotFound
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.node.settings import NodeSettings, simulated_nodes
from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import VirtualClock, run_virtually
from volcano.machinery.transport import InProcess, User

PODS = resource_type(Pod)


class Simulation:
    """An API server and an agent of simulated nodes, on a loop whose time is virtual."""

    def __init__(self, settings: NodeSettings) -> None:
        self.clock, self.settings = VirtualClock(), settings
        self.server = ApiServer(MemoryStore(), clock=self.clock)
        self.client = Client(InProcess(self.server.handle, User("admin", ("system:masters",))))
        self._task: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Simulation:
        await self.server.start()
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.stop()

    async def start(self) -> None:
        self.agent = Agent(self.client, self.clock, self.settings, SimulatedRuntime(self.clock))
        self._task = asyncio.create_task(self.agent.run())
        await self.agent.ready()

    async def stop(self) -> None:
        assert self._task is not None
        self._task.cancel()
        await asyncio.gather(self._task, return_exceptions=True)

    async def create(self, name: str, annotations: dict[str, str] | None = None, node: str = "sim-0", **spec) -> None:
        body = {
            "metadata": {"name": name, "namespace": "default", "annotations": annotations or {}},
            "spec": {"nodeName": node, "restartPolicy": "Never", "containers": [{"name": "c", "image": "x"}], **spec},
        }
        await self.client.create(PODS, body)

    async def pod(self, name: str) -> Pod:
        return await self.client.get(Pod, Key("default", name))

    async def after(self, **duration: float) -> None:
        await self.clock.sleep(timedelta(**duration))


def test_a_pod_lasts_as_long_as_its_annotation_says_and_ends_as_it_says():
    async def story() -> None:
        async with Simulation(simulated_nodes(1)) as given:
            await given.create("job", {"simulation.volcano.sh/duration": "30s", "simulation.volcano.sh/exit-code": "3"})

            await given.after(seconds=29)
            assert (await given.pod("job")).status.phase == "Running"
            await given.after(seconds=2)
            pod = await given.pod("job")

            assert pod.status.phase == "Failed"
            ended = pod.status.container_statuses[0].state.terminated
            assert ended is not None and ended.exit_code == 3
            assert ended.finished_at - ended.started_at == timedelta(seconds=30)

    run_virtually(story())


def test_a_pod_without_a_duration_runs_until_it_is_deleted():
    async def story() -> None:
        async with Simulation(simulated_nodes(1)) as given:
            await given.create("server")
            await given.after(days=10)
            assert (await given.pod("server")).status.phase == "Running"

            await given.client.delete(PODS, Key("default", "server"))
            await given.after(seconds=1)

            try:
                await given.pod("server")
                raise AssertionError("it is still there")
            except NotFound:
                pass

    run_virtually(story())


def test_a_pod_goes_on_where_it_was_when_the_agent_starts_again():
    async def story() -> None:
        async with Simulation(simulated_nodes(1)) as given:
            await given.create("job", {"simulation.volcano.sh/duration": "60s"})
            await given.after(seconds=40)

            await given.stop()
            await given.start()
            await given.after(seconds=15)
            assert (await given.pod("job")).status.phase == "Running"
            await given.after(seconds=10)

            assert (await given.pod("job")).status.phase == "Succeeded"

    run_virtually(story())


def test_a_bad_duration_is_said_on_the_pod():
    async def story() -> None:
        async with Simulation(simulated_nodes(1)) as given:
            await given.create("odd", {"simulation.volcano.sh/duration": "soon"})
            await given.after(seconds=2)

            waiting = (await given.pod("odd")).status.container_statuses[0].state.waiting
            assert waiting is not None and waiting.reason == "CreateContainerConfigError" and "soon" in waiting.message

    run_virtually(story())


def test_nodes_have_the_promised_size_and_stay_alive():
    async def story() -> None:
        async with Simulation(simulated_nodes(40)) as given:
            await given.after(minutes=30)

            nodes = (await given.client.list(Node)).items
            leases = (await given.client.list(Lease, "kube-node-lease")).items
            assert len(nodes) == len(leases) == 40
            for node in nodes:
                assert node.status.allocatable == {"cpu": "32", "memory": "256Gi", "pods": "110"}
                assert any(each.type == "Ready" and each.status == "True" for each in node.status.conditions)
            for lease in leases:
                assert lease.spec.renew_time is not None and lease.spec.lease_duration_seconds is not None
                assert given.clock.now() - lease.spec.renew_time < timedelta(seconds=lease.spec.lease_duration_seconds)

    run_virtually(story())


def test_a_pods_life_takes_few_writes():
    async def story() -> None:
        async with Simulation(simulated_nodes(1)) as given:
            await given.create("job", {"simulation.volcano.sh/duration": "30s"})
            created = int((await given.pod("job")).metadata.resource_version)
            await given.after(seconds=5)
            running = int((await given.pod("job")).metadata.resource_version)
            await given.after(seconds=60)
            ended = int((await given.pod("job")).metadata.resource_version)

            assert running - created == 1
            leases = 7
            assert ended - running <= 1 + leases

    run_virtually(story())
