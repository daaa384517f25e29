"""The two ways in which cluster addresses are served: kernel rules on the pods' bridge, or sockets of this process.

Both take the routes of one service after another, and refuse connections to a port without targets.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import logging
import socket
from collections.abc import Callable, Mapping
from typing import Final, Protocol

from volcano.api.meta import Key
from volcano.embedded.agent.kernel.service_rules import PortTargets, ServedPort
from volcano.embedded.agent.network.forwarder import Forwarder
from volcano.embedded.agent.network.network import Addresses, BridgedNetwork, NetworkUnavailable
from volcano.embedded.agent.network.service_proxy import PortProxy
from volcano.embedded.agent.network.service_routes import Route, RouteTarget
from volcano.machinery.clock import Clock

log = logging.getLogger(__name__)
FIRST_LOOPBACK_BLOCK, LOOPBACK_BLOCK_COUNT = 128, 120  # 127.128.0.0/16 to 127.247.0.0/16
BLOCK_CLAIM_PORT: Final = 10953
"""A socket on the block's second address shows other agents of this machine that the block is taken."""

Routes = tuple[Route, ...]


class ServicePlane(Protocol):
    """Serves the cluster addresses of services."""

    def address_of(self, key: Key, cluster_address: str) -> str:
        """Where pods reach the service."""
        ...

    async def change(self, changes: Mapping[Key, Routes]) -> dict[Key, str]:
        """Serve these services so from now on; no routes: no longer. Returns what could not be done, and why."""
        ...

    async def close(self) -> None: ...


class KernelServices:
    """Rules of the kernel. An endpoint on this machine's loopback is reached through a forwarder on the bridge."""

    def __init__(self, network: BridgedNetwork, *, is_host_pod: Callable[[str], bool]) -> None:
        self._network, self._is_host_pod = network, is_host_pod
        self._ports: dict[Key, dict[ServedPort, PortTargets]] = {}
        self._forwarders: dict[tuple[str, int], Forwarder] = {}

    def address_of(self, key: Key, cluster_address: str) -> str:
        return cluster_address

    async def change(self, changes: Mapping[Key, Routes]) -> dict[Key, str]:
        wanted: dict[Key, dict[ServedPort, PortTargets]] = {}
        for key, routes in changes.items():
            wanted[key] = {}
            for route in routes:
                targets = tuple([found for target in route.targets if (found := await self._reachable(target))])
                endpoints = PortTargets(targets, route.affinity_seconds)
                wanted[key][ServedPort(route.address, route.port, route.protocol)] = endpoints
        try:
            self._write(wanted)
        except OSError as error:
            log.warning("the rules of %d services were refused together (%s); trying each", len(wanted), error)
            return self._write_each(wanted)
        return {}

    async def close(self) -> None:
        for forwarder in self._forwarders.values():
            await forwarder.close()

    def _write(self, wanted: dict[Key, dict[ServedPort, PortTargets]]) -> None:
        gone = {port: None for key in wanted for port in self._ports.get(key, {})}
        served: dict[ServedPort, PortTargets | None] = {**gone}
        for ports in wanted.values():
            served |= ports
        self._network.rules.change(served)
        for key, ports in wanted.items():
            self._ports[key] = ports
            if not ports:
                del self._ports[key]

    def _write_each(self, wanted: dict[Key, dict[ServedPort, PortTargets]]) -> dict[Key, str]:
        problems = {}
        for key, ports in wanted.items():
            try:
                self._write({key: ports})
            except OSError as error:
                problems[key] = f"the kernel refused the rules of this service: {error.strerror}"
        return problems

    async def _reachable(self, target: RouteTarget) -> tuple[str, int] | None:
        """Where the kernel may send packets for a target; None for a loopback address that is no pod of ours."""
        if not target.address.startswith("127."):
            return target.address, target.port
        if not self._is_host_pod(target.pod):
            return None
        place = (target.address, target.port)
        if place not in self._forwarders:
            made = Forwarder((self._network.api_address, 0), place)
            await made.open()
            self._forwarders[place] = made
        return self._network.api_address, self._forwarders[place].port


class ProxiedServices:
    """Sockets of this process, on loopback addresses that stand for the cluster addresses."""

    def __init__(self, clock: Clock, *, seed: int) -> None:
        self._clock = clock
        self._claim, self.block = _claim_block(seed)
        self._addresses = Addresses(self.block)
        self._proxies: dict[tuple[str, int, str], PortProxy] = {}
        self._ports: dict[Key, set[tuple[str, int, str]]] = {}

    def set_address(self, key: Key, address: str) -> None:
        self._addresses.claim(str(key), address)

    def address_of(self, key: Key, cluster_address: str) -> str:
        return self._addresses.take(str(key))

    async def change(self, changes: Mapping[Key, Routes]) -> dict[Key, str]:
        problems = {}
        for key, routes in changes.items():
            wanted = {}
            for route in routes:
                wanted[self.address_of(key, route.address), route.port, route.protocol] = route
            for gone in self._ports.get(key, set()) - wanted.keys():
                await self._proxies.pop(gone).close()
            self._ports[key] = set(wanted)
            if not routes:
                del self._ports[key]
                self._addresses.give_back(str(key))
            for place, route in wanted.items():
                proxy = self._proxies.setdefault(place, PortProxy(self._clock, place[:2], route.protocol))
                try:
                    await proxy.change(route.targets, route.affinity_seconds)
                except OSError as error:
                    problems[key] = port_problem(route.port, error)
        return problems

    async def close(self) -> None:
        for proxy in self._proxies.values():
            await proxy.close()
        self._claim.close()


class NodePorts:
    """The node ports of services: sockets of this process on the node's address and, for pods, on the bridge's."""

    def __init__(self, clock: Clock, addresses: tuple[str, ...]) -> None:
        self._clock, self._addresses = clock, addresses
        self._proxies: dict[tuple[Key, int, str], list[PortProxy]] = {}

    async def change(self, key: Key, routes: Routes) -> str:
        """Serve the node ports of a service; returns what could not be done."""
        wanted = {(key, route.node_port, route.protocol): route for route in routes if route.node_port}
        for gone in [place for place in self._proxies if place[0] == key and place not in wanted]:
            await asyncio.gather(*(proxy.close() for proxy in self._proxies.pop(gone)))
        problem = ""
        for place, route in wanted.items():
            if place not in self._proxies:
                self._proxies[place] = [
                    PortProxy(self._clock, (address, route.node_port), route.protocol) for address in self._addresses
                ]
            for proxy in self._proxies[place]:
                try:
                    await proxy.change(route.targets, route.affinity_seconds)
                except OSError as error:
                    problem = port_problem(route.node_port, error)
        return problem

    async def close(self) -> None:
        for proxies in self._proxies.values():
            for proxy in proxies:
                await proxy.close()


def port_problem(port: int, error: OSError) -> str:
    """Why a port is not served, in words for an event."""
    if error.errno == errno.EACCES:
        return (
            f"port {port} is not served: only root may listen on ports below 1024 here "
            "(or lower net.ipv4.ip_unprivileged_port_start)"
        )
    return f"port {port} is not served: {error.strerror or error}"


def _claim_block(seed: int) -> tuple[socket.socket, ipaddress.IPv4Network]:
    """A block of loopback addresses that no other agent of this machine uses."""
    for offset in range(LOOPBACK_BLOCK_COUNT):
        number = FIRST_LOOPBACK_BLOCK + (seed + offset) % LOOPBACK_BLOCK_COUNT
        claim = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        with contextlib.suppress(OSError):
            claim.bind((f"127.{number}.0.2", BLOCK_CLAIM_PORT))
            return claim, ipaddress.IPv4Network(f"127.{number}.0.0/16")
        claim.close()
    raise NetworkUnavailable("every block of loopback addresses for services is in use")
