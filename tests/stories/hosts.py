"""The two hosts of a story, which offer it the same system: one in this process on virtual time, one on a real cluster."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import Any, Protocol

from tests.kubernetes.real_system import real_system
from volcano.machinery.client import Client
from volcano.machinery.clock import SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.kubeconfig import load_endpoint
from volcano.testing.system import on_virtual_time

GPU, GPUS_OF_A_NODE = "nvidia.com/gpu", "8"
Story = Callable[[Any], Awaitable[None]]


class Host(Protocol):
    def __call__(self, story: Story) -> None:
        """Run a story now, as a decorator."""


class EmbeddedHost:
    """A system of the story's own, with nodes of the given number and size."""

    def __init__(self, *, nodes: int = 4, capacity: Mapping[str, str] | None = None) -> None:
        self._nodes, self._capacity = nodes, {GPU: GPUS_OF_A_NODE, **(capacity or {})}

    def __call__(self, story: Story) -> None:
        on_virtual_time(nodes=self._nodes, capacity=self._capacity)(story)

    def with_nodes(self, nodes: int, **capacity: str) -> EmbeddedHost:
        return EmbeddedHost(nodes=nodes, capacity=capacity)


class KubernetesHost:
    """The session's control plane, ten nodes of 32 CPUs and 8 GPUs, and a namespace of the story's own."""

    def __init__(self, kubeconfig: Path, namespace: str) -> None:
        self._kubeconfig, self._namespace = kubeconfig, namespace

    def __call__(self, story: Story) -> None:
        asyncio.run(self._run(story))

    async def _run(self, story: Story) -> None:
        client = Client(HttpTransport(load_endpoint(self._kubeconfig), SystemClock()), agent="tests")
        try:
            async with real_system(client, self._namespace) as system:
                await story(system)
                await system.end_jobs(timedelta(seconds=60))
        finally:
            await client.close()
