"""Builds an agent whose pods are processes of this machine: runtime, kubelet endpoint, storage provisioner."""

from __future__ import annotations

import re
from pathlib import Path

from volcano.embedded.agent.agent import Agent, AgentService
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.cpus.topology_service import TopologyService
from volcano.embedded.agent.devices.device_service import DeviceService
from volcano.embedded.agent.node.settings import NodeSettings
from volcano.embedded.agent.runtime.process_runtime import ProcessRuntime
from volcano.embedded.agent.storage.provisioner_service import StorageService
from volcano.embedded.agent.streams.kubelet_server import KubeletServer, KubeletTls
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.kubeconfig import ConfigError, load_endpoint


def make_process_agent(
    client: Client, clock: Clock, nodes: NodeSettings, processes: ProcessSettings, *, tls: KubeletTls | None = None
) -> Agent:
    """Without `tls` the node serves no logs and no exec."""
    runtime = ProcessRuntime(client, clock, processes)
    kubelet = KubeletServer(runtime, clock, tls) if tls is not None else None
    names = frozenset(shape.name for shape in nodes.nodes)
    storage = StorageService(client, clock, processes.directory / "storage", names)
    ledger, capacities = runtime.grants.ledger, {shape.name: shape.capacity for shape in nodes.nodes}
    devices = DeviceService(client, clock, capacities, processes.cards, lambda: ledger.held_cards)
    services: list[AgentService] = [storage, devices]
    if processes.cpus is not None and len(nodes.nodes) == 1:
        topology = TopologyService(client, clock, nodes.nodes[0].name, processes.cpus, ledger)
        runtime.grants.listeners.append(topology.changed)
        services.append(topology)
    return Agent(client, clock, nodes, runtime, kubelet=kubelet, services=services)


def api_server_of(kubeconfig: Path) -> tuple[str, int] | None:
    """The API server's host and port from a kubeconfig; None while the file does not exist."""
    try:
        endpoint = load_endpoint(kubeconfig)
    except (ConfigError, OSError):
        return None
    return endpoint_address(endpoint.server)


def endpoint_address(server: str) -> tuple[str, int] | None:
    """Host and port of an API server's URL."""
    match = re.fullmatch(r"https?://(\[[^]]+\]|[^/:]+)(?::(\d+))?(?:/.*)?", server)
    return (match[1].strip("[]"), int(match[2] or 443)) if match else None
