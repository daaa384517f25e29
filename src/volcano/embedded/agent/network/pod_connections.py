"""Connects the pods of one agent: chooses the network, allocates addresses, makes the API server reachable."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Mapping
from typing import Final

from volcano.api.kubelet import AgentPod
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.network.forwarder import Forwarder
from volcano.embedded.agent.network.network import HostNetwork, Network, choose_network
from volcano.embedded.agent.processes.supervisor_client import SupervisorClient, SupervisorError

DIAL_TIMEOUT_SECONDS: Final = 10.0
LOOPBACKS: Final = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
API_NAMES: Final = "kubernetes.default.svc.cluster.local kubernetes.default.svc kubernetes.default kubernetes"


class PodConnections:
    """The network of one agent. The supervisor makes and owns the namespaces of pods."""

    def __init__(self, settings: ProcessSettings, supervisor: SupervisorClient) -> None:
        self._settings, self._supervisor = settings, supervisor
        self._network: Network = HostNetwork()
        self._forwarder: Forwarder | None = None
        self._api_address = ""
        self.variables: dict[str, str] = {}

    @property
    def is_isolated(self) -> bool:
        return self._network.name == "isolated"

    async def open(self, known: Mapping[str, str]) -> str:
        """Choose and open the network; `known` are the addresses that pods already have. Returns a description."""
        network, why = choose_network(self._settings.pod_network, self._settings.directory, tier=self._supervisor.tier)
        self._network = network
        for uid, address in known.items():
            network.addresses.claim(uid, address)
        await self._open_api_server()
        return f"{network.name}: {why}"

    async def close(self, *, take_down: bool) -> None:
        if self._forwarder is not None:
            await self._forwarder.close()
        if take_down:
            self._network.close()

    async def connect(self, pod: AgentPod) -> str:
        """Make the pod's namespaces; returns its address."""
        if pod.spec.host_network:
            wire, address = None, self._settings.host_address
        else:
            wire, address = self._network.wire(pod.uid), self._network.addresses.take(pod.uid)
        if self._supervisor.tier != "none":
            opened = await self._supervisor.ask("open_pod", pod=pod.uid, wire=wire)
            address = opened["address"] or address
        return address

    async def disconnect(self, uid: str) -> None:
        if self._supervisor.tier != "none":
            with contextlib.suppress(SupervisorError):
                await self._supervisor.ask("close_pod", pod=uid)
        self._network.addresses.give_back(uid)

    async def dial(self, pod: AgentPod, address: str, port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Connect to a port of the pod: on the loopback of its own network, otherwise at its address."""
        if not address:
            raise OSError(f"pod {pod.name} has no address yet")
        async with asyncio.timeout(DIAL_TIMEOUT_SECONDS):
            if self.is_isolated and not pod.spec.host_network:
                for family, loopback in LOOPBACKS:
                    with contextlib.suppress(OSError, SupervisorError):
                        return await self._dial_inside(pod.uid, family, (loopback, port))
            return await asyncio.open_connection(address, port)

    async def _dial_inside(
        self, uid: str, family: int, endpoint: tuple[str, int]
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        made = await self._supervisor.socket_in(uid, family)
        try:
            await asyncio.get_running_loop().sock_connect(made, endpoint)
            return await asyncio.open_connection(sock=made)
        except BaseException:
            made.close()
            raise

    def service_names(self) -> list[tuple[str, str]]:
        """Names and addresses for every pod's /etc/hosts."""
        return [(API_NAMES, self._api_address)] if self._api_address else []

    async def _open_api_server(self) -> None:
        """Set the usual variables, and forward to an API server that listens on loopback only."""
        found = self._settings.api_server()
        if found is None:
            return
        host, port = found
        self._api_address = host
        if host.startswith("127.") and self._network.api_address != host:
            self._api_address = self._network.api_address
            self._forwarder = Forwarder((self._api_address, port), found)
            await self._forwarder.open()
        # The name is in every pod's /etc/hosts, unless pods share the machine's.
        name = "kubernetes.default.svc" if self._supervisor.tier != "none" else self._api_address
        self.variables = {
            "KUBERNETES_SERVICE_HOST": name,
            "KUBERNETES_SERVICE_PORT": str(port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        }
