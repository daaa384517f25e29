"""Connects the pods of one agent: chooses the network, allocates addresses, makes the API server reachable."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Iterable, Mapping
from pathlib import Path, PurePosixPath
from typing import Final

from volcano.api.kubelet import AgentContainer, AgentPod
from volcano.embedded.agent.containers.process_settings import LOOPBACK_ENVIRONMENT, ProcessSettings
from volcano.embedded.agent.network.cluster_services import ClusterServices
from volcano.embedded.agent.network.network import HostNetwork, Network, choose_network
from volcano.embedded.agent.network.resolver_content import policy_of, read_resolver, resolver_of, resolver_text
from volcano.embedded.agent.processes.supervisor_client import SupervisorClient, SupervisorError

KEYS_FOLDER: Final = ".ssh"
DIAL_TIMEOUT_SECONDS: Final = 10.0
UNPRIVILEGED_PORTS_FILE: Final = Path("/proc/sys/net/ipv4/ip_unprivileged_port_start")
DEFAULT_FIRST_OPEN_PORT: Final = 1024
LOOPBACKS: Final = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
API_NAMES: Final = "kubernetes.default.svc.cluster.local kubernetes.default.svc kubernetes.default kubernetes"


def port_lack(ports: Iterable[int], first: int | None = None) -> str:
    """`first` is the first port that any user may open; the machine's setting when it is None."""
    first = first_open_port() if first is None else first
    low = sorted({port for port in ports if 0 < port < first})
    if not low:
        return ""
    return (
        f"port {', '.join(map(str, low))} cannot be opened in this pod: pods share this machine's network, and its "
        f"user lacks CAP_NET_BIND_SERVICE for ports below {first}; use higher ports, run `volcano up` as root, or set "
        f"sysctl net.ipv4.ip_unprivileged_port_start={low[0]}"
    )


def first_open_port(*, is_isolated: bool = False, is_root: bool | None = None) -> int:
    """The lowest port that this user, or one that is not root, may open; in a network of its own a pod opens all."""
    if is_isolated or (os.geteuid() == 0 if is_root is None else is_root):
        return 0
    try:
        return int(UNPRIVILEGED_PORTS_FILE.read_text())
    except (OSError, ValueError):
        return DEFAULT_FIRST_OPEN_PORT


def volume_lack(paths: Iterable[str]) -> str:
    """What is lost without mount namespaces."""
    named = ", ".join(sorted(set(paths)))
    if not named:
        return ""
    return (
        f"volumes cannot be mounted at {named}: this user lacks CAP_SYS_ADMIN, and may not make user namespaces; the "
        "container's command and variables have the volumes' own paths instead, but a program that opens these "
        "paths by itself does not find them"
    )


def has_keys(container: AgentContainer) -> bool:
    """Whether a container has the keys of the ssh plugin, or others where ssh looks for them."""
    return any(PurePosixPath(mount.mount_path).name == KEYS_FOLDER for mount in container.volume_mounts)


class PodConnections:
    """The network of one agent. The supervisor makes and owns the namespaces of pods."""

    def __init__(self, settings: ProcessSettings, supervisor: SupervisorClient, services: ClusterServices) -> None:
        self._settings, self._supervisor, self._services = settings, supervisor, services
        self._network: Network = HostNetwork()
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
        await self._services.open(network)
        self._set_variables()
        return f"{network.name}: {why}; {self._services.description}"

    async def close(self, *, take_down: bool) -> None:
        await self._services.close()
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

    def service_names(self, namespace: str) -> list[tuple[str, str]]:
        """Names and addresses for the /etc/hosts of a pod in this namespace."""
        found = self._services.api_server
        own = [(API_NAMES, found[0])] if found is not None else []
        return [*own, *self._services.hosts_lines(namespace)]

    def resolver_for(self, pod: AgentPod, machine: bytes) -> str:
        """The pod's /etc/resolv.conf, given the machine's."""
        settings = read_resolver(machine.decode(errors="replace"))
        return resolver_text(resolver_of(pod, settings, name_server=self._services.name_server))

    def warning_for(self, pod: AgentPod) -> str:
        """What of the pod's DNS settings this machine cannot do; empty when nothing is missing."""
        if policy_of(pod) != "ClusterFirst" or (self._services.name_server and self._supervisor.tier != "none"):
            return ""
        if self._supervisor.tier == "none":
            return (
                "names of services and of other pods do not resolve in this pod, except for ssh: this user lacks "
                "CAP_SYS_ADMIN and may not make user namespaces, so the pod has the machine's own /etc/hosts and "
                "/etc/resolv.conf"
            )
        return (
            "there is no DNS server for this pod, since this user may not listen on port 53: names of services are in "
            "its /etc/hosts, other DNS settings are the machine's"
        )

    def lack_of(self, pod: AgentPod) -> str:
        """Which ports of the pod this user may not open, and what would be needed; empty when there are none."""
        if self.is_isolated or self._supervisor.tier == "root":
            return ""
        # The sshd of a container with keys listens on another port than 22 (ssh_access).
        ports = [port.container_port for each in pod.spec.containers if not has_keys(each) for port in each.ports]
        mounted = [mount.mount_path for each in pod.spec.containers for mount in each.volume_mounts]
        volumes = volume_lack(mounted) if self._supervisor.tier == "none" else ""
        return "; ".join(filter(None, (port_lack(ports), volumes)))

    def _set_variables(self) -> None:
        """The variables by which programs in pods find the API server, and each other."""
        self.variables = {} if self.is_isolated else dict(LOOPBACK_ENVIRONMENT)
        found = self._services.api_server
        if found is None:
            return
        host, port = found
        # The name is in every pod's /etc/hosts, unless pods share the machine's.
        name = "kubernetes.default.svc" if self._supervisor.tier != "none" else host
        self.variables |= {
            "KUBERNETES_SERVICE_HOST": name,
            "KUBERNETES_SERVICE_PORT": str(port),
            "KUBERNETES_SERVICE_PORT_HTTPS": str(port),
        }
