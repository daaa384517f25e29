"""Puts together an agent whose nodes are this machine: capacities, runtime, and the kubelet's endpoint."""

from __future__ import annotations

import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from volcano.agent.agent import Agent
from volcano.agent.capacity import machine_capacity
from volcano.agent.images import read_images
from volcano.agent.kubelet_server import KubeletServer, KubeletTls
from volcano.agent.process_runtime import ProcessRuntime
from volcano.agent.process_settings import PodNetwork, ProcessSettings
from volcano.agent.settings import NodeSettings, NodeShape
from volcano.api.quantity import parse_quantity
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.kubeconfig import ConfigError, load_endpoint

DIVIDED: Final = ("cpu", "memory", "ephemeral-storage")
"""What several nodes of one machine share when nobody says how much each has."""


def make_process_agent(
    client: Client,
    clock: Clock,
    folder: Path,
    *,
    count: int = 1,
    capacity: Mapping[str, str] | None = None,
    labels: Mapping[str, str] | None = None,
    pod_network: PodNetwork = "auto",
    images: str = "",
    kubeconfig: Path | None = None,
    tls: KubeletTls | None = None,
    name: str = "",
) -> Agent:
    """`folder` is the data directory, hidden from pods; `kubeconfig` says where pods find the API server."""
    settings = ProcessSettings(
        directory=folder / "agent",
        pod_network=pod_network,
        images=read_images(Path(images)) if images else (),
        hidden=(folder,),
        api_server=lambda: _api_server(kubeconfig or folder / "kubeconfig"),
    )
    nodes = NodeSettings(process_nodes(count, folder, capacity=capacity or {}, labels=labels or {}, name=name))
    runtime = ProcessRuntime(client, clock, settings)
    kubelet = KubeletServer(runtime, clock, tls) if tls is not None else None
    return Agent(client, clock, nodes, runtime, kubelet=kubelet)


def process_nodes(
    count: int, folder: Path, *, capacity: Mapping[str, str], labels: Mapping[str, str], name: str = ""
) -> tuple[NodeShape, ...]:
    """This machine as one node, or as several that share what it has unless each was given its own."""
    machine = machine_capacity(folder)
    share = {
        resource: str(max(1, parse_quantity(amount).value // count)) if resource in DIVIDED else amount
        for resource, amount in machine.items()
    }
    amounts = {**(share if count > 1 else machine), **capacity}
    host = name or re.sub(r"[^a-z0-9.-]+", "-", socket.gethostname().lower()).strip("-.") or "node"
    names = [host] if count == 1 else [f"{host}-{number}" for number in range(count)]
    return tuple(NodeShape(each, amounts, {"type": "process", **labels}) for each in names)


def _api_server(kubeconfig: Path) -> tuple[str, int] | None:
    """The host and port a kubeconfig names; None when there is none yet."""
    try:
        endpoint = load_endpoint(kubeconfig)
    except (ConfigError, OSError):
        return None
    match = re.fullmatch(r"https?://(\[[^]]+\]|[^/:]+)(?::(\d+))?/?.*", endpoint.server)
    return (match[1].strip("[]"), int(match[2] or 443)) if match else None
