# ruff: noqa: ASYNC110
"""A node agent with real processes on an embedded API server in memory; pods are bound by their tests."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from volcano.api.core import Pod
from volcano.api.errors import ApiError, NotFound
from volcano.api.meta import JSON, Key
from volcano.api.scheme import find_resource_type, resource_type
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.containers.images import Image
from volcano.embedded.agent.containers.process_settings import PodNetwork, ProcessSettings
from volcano.embedded.agent.node.settings import NodeSettings, NodeShape
from volcano.embedded.agent.processes.container_shim import descendants
from volcano.embedded.agent.runtime.process_runtime import ProcessRuntime
from volcano.embedded.agent.streams.kubelet_server import KubeletServer, KubeletTls
from volcano.embedded.apiserver.server import ApiServer
from volcano.embedded.apiserver.store.memory_store import MemoryStore
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.transport import InProcess, User

PODS = resource_type(Pod)
NODE = "machine"
DEADLINE = 30.0


def a_pod(name: str, *command: str, container: JSON | None = None, metadata: JSON | None = None, **spec: Any) -> JSON:
    """A pod bound to the test's node that runs one command once."""
    main = {"name": "main", "image": "host", "command": list(command), **(container or {})}
    return {
        "metadata": {"name": name, "namespace": "default", **(metadata or {})},
        "spec": {"nodeName": NODE, "restartPolicy": "Never", "containers": [main], **spec},
    }


class Machine:
    """An API server and, between `start` and `stop`, an agent."""

    def __init__(self, directory: Path, network: PodNetwork, images: tuple[Image, ...]) -> None:
        self.clock = SystemClock()
        self.server = ApiServer(MemoryStore(), clock=self.clock)
        self.client = Client(InProcess(self.server.handle, User("admin", ("system:masters",))))
        self.directory, self.network, self.images = directory, network, images
        self.api_server: tuple[str, int] | None = None
        self.name_servers: list[
            tuple[str, int]
        ] = []  # for names outside the cluster: none, so that nothing is sent out
        self.apptainer = ""
        self.tls: KubeletTls | None = None
        self.runtime: ProcessRuntime
        self.agent: Agent
        self._running: asyncio.Task[None] | None = None

    async def start(self) -> None:
        settings = ProcessSettings(
            self.directory / "agent",
            pod_network=self.network,
            images=self.images,
            apptainer=self.apptainer,
            hidden=(self.directory / "secrets",),
            api_server=lambda: self.api_server,
            name_servers=lambda: self.name_servers,
        )
        shape = NodeShape(NODE, {"cpu": "4", "memory": "8Gi", "pods": "110"})
        self.runtime = ProcessRuntime(self.client, self.clock, settings)
        kubelet = KubeletServer(self.runtime, self.clock, self.tls)
        self.agent = Agent(self.client, self.clock, NodeSettings((shape,)), self.runtime, kubelet=kubelet)
        self._running = asyncio.create_task(self.agent.run())
        ready = asyncio.create_task(self.agent.ready())
        await asyncio.wait((self._running, ready), return_when=asyncio.FIRST_COMPLETED)
        if self._running.done():
            self._running.result()

    async def crash(self) -> None:
        """End the agent as a crash would; its supervisor keeps running."""
        assert self._running is not None
        await (
            self.runtime._supervisor.close()
        )  # first, so that nothing is sent on the way out: as with a killed process
        self._running.cancel()
        with contextlib.suppress(BaseException):
            await self._running
        self._running = None

    async def stop(self) -> None:
        if self._running is None:
            await self.start()
        async with asyncio.timeout(DEADLINE):
            for pod in (await self.client.list_json(PODS))["items"]:
                key = Key(pod["metadata"]["namespace"], pod["metadata"]["name"])
                with contextlib.suppress(NotFound):
                    await self.client.delete(PODS, key, {"gracePeriodSeconds": 0})
            while self.agent.pods:
                await asyncio.sleep(0.01)
        assert self._running is not None
        self._running.cancel()
        await asyncio.gather(self._running, return_exceptions=True)

    async def create(self, *bodies: JSON) -> None:
        for body in bodies:
            row = find_resource_type("", body.get("kind", "Pod"))
            assert row is not None
            await self.client.create(row, body)

    async def bind(self, name: str) -> None:
        """As a scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": NODE}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        with contextlib.suppress(ApiError):
            await self.client.create_sub(PODS, Key("default", name), "binding", body)

    async def pod(self, name: str) -> JSON:
        return await self.client.get_json(PODS, Key("default", name))

    async def until(self, name: str, holds: Callable[[JSON], bool]) -> JSON:
        """The pod, once this holds of it."""
        pod: JSON = {}
        try:
            async with asyncio.timeout(DEADLINE):
                while True:
                    pod = await self.pod(name)
                    if holds(pod):
                        return pod
                    await asyncio.sleep(0.02)
        except TimeoutError:
            raise AssertionError(f"{name} never got there: {pod.get('status')}") from None

    async def until_phase(self, name: str, phase: str) -> JSON:
        return await self.until(name, lambda pod: pod["status"].get("phase") == phase)

    async def until_gone(self, name: str) -> None:
        async with asyncio.timeout(DEADLINE):
            while True:
                try:
                    await self.pod(name)
                except NotFound:
                    return
                await asyncio.sleep(0.02)

    def processes(self, name: str) -> list[int]:
        """Every process of a pod's container: its holder and all below it."""
        known = self.agent.find("default", name)
        assert known is not None
        holder = self.runtime._runs.records[ContainerAttempt(known.pod, "main", 0).id]["pid"]
        return [holder, *descendants(holder)]

    async def until_no_process(self, pid: int) -> None:
        async with asyncio.timeout(DEADLINE):
            while _runs(pid):
                await asyncio.sleep(0.02)

    async def finished(self, name: str) -> JSON:
        return await self.until(name, lambda pod: pod["status"].get("phase") in ("Succeeded", "Failed"))

    async def until_output(self, name: str, text: str) -> None:
        """Return once the pod's first container has written this."""
        async with asyncio.timeout(DEADLINE):
            while text not in await self.output(name):
                await asyncio.sleep(0.02)

    async def output(self, name: str, container: str = "main", attempt: int = 0) -> str:
        """What a container wrote, without the times."""
        known = self.agent.find("default", name)
        assert known is not None
        lines = self.runtime.log_file(ContainerAttempt(known.pod, container, attempt)).read_text().splitlines()
        return "\n".join(line.split(" ", 3)[3] for line in lines)


def _runs(pid: int) -> bool:
    """Whether a process exists and has not ended; a zombie has."""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def terminated(pod: JSON, container: int = 0) -> JSON:
    state: JSON = pod["status"]["containerStatuses"][container]["state"]["terminated"]
    return state
