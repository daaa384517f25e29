"""`volcano agent`: this machine, or simulated nodes, as nodes of any Kubernetes API server."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final

import click
from click.core import ParameterSource

from volcano.api.durations import DurationError, parse_duration
from volcano.app.component import find_endpoint, run_component
from volcano.app.components import SHUTDOWN_GRACE
from volcano.app.data_directory_lock import locked
from volcano.app.node_options import NodeOptions, node_options
from volcano.app.nodes import process_settings, simulated_settings
from volcano.app.settings import data_directory
from volcano.embedded.agent.agent import Agent
from volcano.embedded.agent.node.settings import NodeSettings
from volcano.embedded.agent.process_agent import endpoint_address, make_process_agent
from volcano.embedded.agent.runtime.simulated_runtime import SimulatedRuntime
from volcano.embedded.agent.streams.kubelet_server import KubeletTls
from volcano.machinery.certificates import Authority, write_private
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock, SystemClock
from volcano.machinery.http_transport import HttpTransport
from volcano.machinery.kubeconfig import Endpoint

MIN_LEASE: Final = timedelta(seconds=4)


@click.command()
@click.option("--kubeconfig", default="", help="Path of a kubeconfig.")
@click.option("--master", default="", help="Address of the API server; overrides the kubeconfig.")
@click.option("--data-dir", default=None, help="Where pods and logs are kept [default: ~/.local/share/volcano-agent].")
@click.option("--lease-duration", default="40s", show_default=True, help="Silence after which a node counts as lost.")
@click.option("--client-ca-file", default="", help="CA of those who may read logs [default: the kubeconfig's CA].")
@click.option("--tls-cert-file", default="", help="Certificate and key of the log endpoint (PEM) [default: our own].")
@click.option("--keep-pods", is_flag=True, help="Leave pods running at the end; the next agent finds them again.")
@click.option("-v", "--v", "verbosity", type=int, default=0, help="Log verbosity.")
@node_options
@click.pass_context
def agent_command(context: click.Context, /, **flags: Any) -> None:
    """Run this machine as a node of an API server; its pods are processes.

    \b
    Examples:
      volcano agent --kubeconfig ~/.kube/config
      volcano agent --kubeconfig ~/.kube/config --simulated-nodes 1000 --node-labels pool=simulated
    """
    options = NodeOptions(**{name: flags[name] for name in NodeOptions.__struct_fields__})
    given = context.get_parameter_source("nodes") == ParameterSource.COMMANDLINE
    try:
        lease = parse_duration(flags["lease_duration"])
    except DurationError as error:
        raise click.BadParameter(str(error), param_hint="--lease-duration") from error
    if lease < MIN_LEASE:
        raise click.BadParameter(f"shorter than {MIN_LEASE}", param_hint="--lease-duration")
    run_component(lambda: _main(flags, options, lease, given=given), verbosity=flags["verbosity"])


async def _main(flags: dict[str, Any], options: NodeOptions, lease: timedelta, *, given: bool) -> None:
    clock = SystemClock()
    endpoint = find_endpoint(flags["kubeconfig"], flags["master"])
    folder = data_directory(flags["data_dir"] or Path.home() / ".local" / "share" / "volcano-agent")
    with locked(folder):
        client = Client(HttpTransport(endpoint, clock), agent="volcano-agent")
        try:
            agents = _agents(
                client, clock, options, folder=folder, lease=lease, given=given, endpoint=endpoint, flags=flags
            )
            await _run(agents, keep_pods=flags["keep_pods"])
        finally:
            await client.close()


def _agents(
    client: Client, clock: Clock, options: NodeOptions, *,
    folder: Path, lease: timedelta, given: bool, endpoint: Endpoint, flags: dict[str, Any],
) -> list[Agent]:  # fmt: skip
    agents = []
    simulated = simulated_settings(options)
    if simulated is not None:
        agents.append(Agent(client, clock, _leased(simulated, lease), SimulatedRuntime(clock)))
    found = process_settings(options, folder, given=given)
    if found is not None:
        nodes, processes = found
        address = endpoint_address(endpoint.server)
        processes = dataclasses.replace(processes, api_server=lambda: address)
        tls = _tls(folder / "pki", nodes, clock, endpoint=endpoint, flags=flags)
        agents.append(make_process_agent(client, clock, _leased(nodes, lease), processes, tls=tls))
    return agents


def _leased(nodes: NodeSettings, lease: timedelta) -> NodeSettings:
    return dataclasses.replace(nodes, lease_duration=lease, lease_renewal=lease / 4)


def _tls(
    pki: Path, nodes: NodeSettings, clock: Clock, *, endpoint: Endpoint, flags: dict[str, Any]
) -> KubeletTls | None:
    """The CA of clients that may read logs, and the server's certificate; None when there is no CA to trust."""
    trusted = Path(flags["client_ca_file"]) if flags["client_ca_file"] else pki / "client-ca.crt"
    if not flags["client_ca_file"]:
        if not endpoint.ca:
            return None
        pki.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_private(trusted, endpoint.ca)
    if flags["tls_cert_file"]:
        return KubeletTls(Path(flags["tls_cert_file"]), trusted)
    authority = Authority(pki, clock.now())

    def renew(now: datetime) -> Path:
        return authority.node_pair(("localhost", nodes.address), now)

    return KubeletTls(renew(clock.now()), trusted, renew)


async def _run(agents: Sequence[Agent], *, keep_pods: bool) -> None:
    running = [asyncio.ensure_future(agent.run()) for agent in agents]
    try:
        await asyncio.gather(*(_ready_or_failed(agent, task) for agent, task in zip(agents, running, strict=True)))
        click.echo("the nodes are ready")
        done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        if not keep_pods:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout((SHUTDOWN_GRACE * 2).total_seconds()):
                    await asyncio.gather(*(agent.shut_down(SHUTDOWN_GRACE) for agent in agents))
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)


async def _ready_or_failed(agent: Agent, running: asyncio.Future[None]) -> None:
    ready = asyncio.ensure_future(agent.ready())
    await asyncio.wait({ready, running}, return_when=asyncio.FIRST_COMPLETED)
    if running.done():
        ready.cancel()
        running.result()
