"""The second stage of the embedded system: the components, imported and started beside an API server that serves.

Imports take longer than everything else at a start. They are done in turns with requests, so that the API server goes
on answering meanwhile; the order of starting and stopping is here, too.
"""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from volcano.api.core import Pod
from volcano.api.errors import ApiError
from volcano.api.meta import Key
from volcano.api.scheme import resource_type
from volcano.app.served_api import ServedApi, served_api
from volcano.app.settings import HISTORY_FILE
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock

if TYPE_CHECKING:
    from volcano.app.node_options import NodeOptions
    from volcano.app.system import AgentMaker, System
    from volcano.embedded.agent.agent import Agent
    from volcano.embedded.agent.containers.process_settings import ProcessSettings
    from volcano.embedded.agent.node.settings import NodeSettings
    from volcano.history.history import History
    from volcano.history.retention import RetentionSettings

PODS: Final = resource_type(Pod)
SHUTDOWN_GRACE: Final = timedelta(seconds=30)
NO_TIME: Final = timedelta()
LIBRARIES: Final = ("numpy", "aiohttp.web", "prometheus_client")
"""What components use and the API server does not; imported in a thread of its own."""
PARTS: Final = (
    "volcano.machinery.runner",
    "volcano.controllers.job",
    "volcano.controllers.service.manager",
    "volcano.embedded.cluster.workloads",
    "volcano.embedded.cluster.controllers",
    "volcano.embedded.agent.agent",
    "volcano.embedded.agent.runtime.process_runtime",
    "volcano.embedded.agent.process_agent",
    "volcano.scheduler.model",
    "volcano.scheduler.framework.session",
    "volcano.scheduler.cache",
    "volcano.scheduler.actions",
    "volcano.scheduler.plugins",
    "volcano.scheduler.explain",
    "volcano.scheduler.service.service",
    "volcano.app.system",
    "volcano.app.metrics_ports",
    "volcano.app.local_history",
)
"""Modules of the components, each a short piece of work once those before it are there."""


async def import_components(clock: Clock) -> None:
    """In pieces, between which requests are answered; a thread would hold the modules that requests import late."""
    await clock.run(lambda: import_all(LIBRARIES))
    for part in PARTS:
        importlib.import_module(part)
        await clock.sleep(NO_TIME)


def import_all(modules: tuple[str, ...]) -> None:
    for module in modules:
        importlib.import_module(module)


@contextlib.asynccontextmanager
async def running_components(
    api: ServedApi,
    folder: Path,
    nodes: NodeOptions,
    *,
    explicit_nodes: bool = True,
    agents: list[AgentMaker] | None = None,
    keep_pods: bool = False,
    has_metrics_ports: bool = True,
    history: RetentionSettings | None = None,
    history_path: Path | None = None,
) -> AsyncIterator[System]:
    """The system, all of it ready, for as long as the block runs; then components are stopped in order."""
    clock = api.clock
    await import_components(clock)
    from volcano.app.metrics_ports import metrics_ports
    from volcano.app.system import System
    from volcano.scheduler.service.registry import PluginError

    if agents is None:
        agents = agent_makers(folder, nodes, clock, explicit=explicit_nodes)
    try:
        system = System(api.server, clock, settings=api.settings, agents=agents)
    except PluginError as error:
        raise click.ClickException(str(error)) from error
    api.admission.record = system.controllers.recorder.record
    async with (
        _running(system, keep_pods=keep_pods),
        metrics_ports(system) if has_metrics_ports else contextlib.nullcontext(),
        kept_history(system, clock, history_path, history),
    ):
        api.is_complete = True
        yield system


@contextlib.asynccontextmanager
async def running_system(
    folder: Path,
    nodes: NodeOptions,
    clock: Clock,
    *,
    has_metrics_ports: bool = True,
    history: RetentionSettings | None = None,
    **served: Any,
) -> AsyncIterator[System]:
    """Both stages on memory or on disk; yields when all of the system is ready. `served` is served_api's."""
    async with served_api(folder, clock, **served) as api:
        path = None if served.get("ephemeral") else folder / HISTORY_FILE
        async with running_components(
            api, folder, nodes, has_metrics_ports=has_metrics_ports, history=history, history_path=path
        ) as system:
            yield system


def kept_history(
    system: System, clock: Clock, path: Path | None, retention: RetentionSettings | None
) -> contextlib.AbstractAsyncContextManager[History | None]:
    """The history as the flags ask for it; `retention` None: none is kept."""
    if retention is None:
        return contextlib.nullcontext()
    from volcano.app.local_history import local_history

    return local_history(system, clock, path=path, retention=retention)


@contextlib.asynccontextmanager
async def _running(system: System, *, keep_pods: bool) -> AsyncIterator[None]:
    running = asyncio.ensure_future(system.run())
    try:
        await _ready_or_failed(system, running)
        yield
    finally:
        if not keep_pods and not running.done():
            await system.stop_deciding()  # a pod that is ended now must not count as failed
            await end_pods(system)
            await remove_ended_pods(system.client("volcano-up"))
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _ready_or_failed(system: System, running: asyncio.Future[None]) -> None:
    ready = asyncio.ensure_future(system.ready())
    await asyncio.wait({ready, running}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        ready.cancel()
        running.result()


async def end_pods(system: System) -> None:
    """As a node's shutdown does: TERM, then KILL, and each pod's status says so."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout((SHUTDOWN_GRACE * 2).total_seconds()):
            await asyncio.gather(*(agent.shut_down(SHUTDOWN_GRACE) for agent in system.agents))


async def remove_ended_pods(client: Client) -> None:
    """Pods that ended with the system are made again by their owners at its next start, as their policies say."""
    from volcano.embedded.agent.lifecycle.pod_lifecycle import SHUTDOWN_MESSAGE

    found = await client.list_json(PODS, "")
    for pod in found.get("items") or ():
        status, metadata = pod.get("status") or {}, pod["metadata"]
        is_owned = any(owner.get("controller") for owner in metadata.get("ownerReferences") or ())
        if is_owned and status.get("message") == SHUTDOWN_MESSAGE:
            with contextlib.suppress(ApiError):
                await client.delete(PODS, Key(metadata["namespace"], metadata["name"]), {"gracePeriodSeconds": 0})


def agent_makers(folder: Path, nodes: NodeOptions, clock: Clock, *, explicit: bool) -> list[AgentMaker]:
    """One agent for all simulated nodes, one for all process nodes."""
    from volcano.app.nodes import process_settings, simulated_settings
    from volcano.embedded.agent.agent import Agent
    from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime

    makers: list[AgentMaker] = []
    simulated = simulated_settings(nodes)
    if simulated is not None:
        makers.append(lambda client: Agent(client, clock, simulated, SimulatedRuntime(clock)))
    processes = process_settings(nodes, folder, given=explicit)
    if processes is not None:
        makers.append(lambda client: process_agent(client, clock, *processes, pki=folder / "pki"))
    return makers


def process_agent(client: Client, clock: Clock, nodes: NodeSettings, processes: ProcessSettings, *, pki: Path) -> Agent:
    """An agent whose pods are processes of this machine; its logs and exec are served with our CA's certificate."""
    from volcano.embedded.agent.process_agent import make_process_agent
    from volcano.embedded.agent.streams.kubelet_server import KubeletTls
    from volcano.machinery.certificates import Authority

    authority = Authority(pki, clock.now())

    def renew(now: datetime) -> Path:
        return authority.node_pair(("localhost", nodes.address), now)

    tls = KubeletTls(renew(clock.now()), authority.certificate_path, renew)
    return make_process_agent(client, clock, nodes, processes, tls=tls)
