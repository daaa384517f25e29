"""Names and addresses of services for the pods of one agent: follows services, serves them, answers their names.

service_planes serves addresses, dns_server answers names; this module composes them for the network that there is and
describes what is missing.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import logging
from collections.abc import Callable, Iterator, Set
from typing import Final

from volcano.api.core import EndpointSlice, Service
from volcano.api.meta import Key
from volcano.api.service_network import (
    API_SERVER_ADDRESS,
    API_SERVER_PORT,
    DNS_ADDRESS,
    HEADLESS,
    SERVICE_DOMAIN,
    SERVICE_RANGE,
)
from volcano.embedded.agent.containers.process_settings import ProcessSettings
from volcano.embedded.agent.network.dns_answers import ClusterNames, label_of
from volcano.embedded.agent.network.dns_server import DnsServer
from volcano.embedded.agent.network.dns_upstream import NAME_SERVER_PORT, DnsUpstream, machine_name_servers
from volcano.embedded.agent.network.forwarder import Forwarder
from volcano.embedded.agent.network.network import BridgedNetwork, Network
from volcano.embedded.agent.network.service_planes import (
    KernelServices,
    NodePorts,
    ProxiedServices,
    ServicePlane,
    port_problem,
)
from volcano.embedded.agent.network.service_routes import Route, RouteTarget, is_ready
from volcano.embedded.agent.network.service_watch import ServiceWatch
from volcano.embedded.agent.task_set import TaskSet
from volcano.machinery.client import Client
from volcano.machinery.clock import Clock
from volcano.machinery.events import EventRecorder
from volcano.machinery.plan import Record, ref

log = logging.getLogger(__name__)
API_SERVICE: Final = Key("default", "kubernetes")
DNS_SERVICE: Final = Key("kube-system", "kube-dns")
MAX_SERVICES_IN_HOSTS_FILES: Final = 500


class ClusterServices:
    """The services as the pods of one agent see them."""

    def __init__(
        self,
        client: Client,
        clock: Clock,
        settings: ProcessSettings,
        *,
        is_host_pod: Callable[[str], bool],
        on_change: Callable[[], None],
    ) -> None:
        self._clock, self._settings = clock, settings
        self._is_host_pod, self._on_change = is_host_pod, on_change
        self._watch = ServiceWatch(client, clock)
        self._recorder = EventRecorder(client, clock, "service-proxy")
        self._tasks = TaskSet()
        self._changed: asyncio.Queue[Set[Key]] = asyncio.Queue()
        self._plane: ServicePlane | None = None
        self._node_ports: NodePorts | None = None
        self._dns: DnsServer | None = None
        self._forwarder: Forwarder | None = None
        self._problems: dict[Key, str] = {}
        self._fixed: set[Key] = set()  # services that this agent serves itself, whatever the API has of them
        self.name_server = ""  # for pods; empty where none can be served
        self.api_server: tuple[str, int] | None = None  # for pods
        self.description = ""

    async def open(self, network: Network) -> None:
        """Serve from now on. Returns when the services are known and served, so that the first pod finds them."""
        host = self._settings.host_address
        if isinstance(network, BridgedNetwork):
            self._plane = KernelServices(network, is_host_pod=self._is_host_pod)
            self._node_ports = NodePorts(self._clock, tuple(dict.fromkeys((host, network.api_address))))
            await self._open_in_kernel(network)
        else:
            self._plane = plane = ProxiedServices(self._clock, seed=int(self._settings.digest, 16))
            self._node_ports = NodePorts(self._clock, (host,))
            await self._open_on_loopback(plane)
        self._tasks.start(self._watch.run(self._changed.put_nowait))
        self._tasks.start(self._recorder.run())
        await self._watch.synced()
        await self._apply({service.key for service in self._watch.services()})
        self._tasks.start(self._follow())

    async def close(self) -> None:
        await self._tasks.cancel_all()
        for part in (self._dns, self._plane, self._node_ports, self._forwarder):
            if part is not None:
                await part.close()

    # -- opening ----------------------------------------------------------------------------------------------
    async def _open_in_kernel(self, network: BridgedNetwork) -> None:
        assert self._plane is not None, "the plane is made first"
        gateway = network.api_address
        dns = self._make_dns(SERVICE_RANGE, network.subnet)
        port = await dns.open(gateway)
        self.name_server = DNS_ADDRESS
        to_dns = (RouteTarget(gateway, port),)
        fixed = {DNS_SERVICE: tuple(Route(DNS_ADDRESS, NAME_SERVER_PORT, each, to_dns) for each in ("UDP", "TCP"))}
        found = self._settings.api_server()
        if found is not None:
            host, number = found
            if host.startswith("127."):
                self._forwarder = Forwarder((gateway, number), found)
                await self._forwarder.open()
                host, number = gateway, self._forwarder.port
            fixed[API_SERVICE] = (Route(API_SERVER_ADDRESS, API_SERVER_PORT, "TCP", (RouteTarget(host, number),)),)
            self.api_server = (API_SERVER_ADDRESS, API_SERVER_PORT)
        self._fixed = set(fixed)
        await self._plane.change(fixed)
        self.description = "services have their cluster addresses, and names are answered by a DNS server"

    async def _open_on_loopback(self, plane: ProxiedServices) -> None:
        missing = []
        dns, address = self._make_dns(SERVICE_RANGE, plane.block), str(plane.block[10])
        try:
            await dns.open(address, NAME_SERVER_PORT)
            self.name_server = address
        except OSError as error:
            self._dns = None
            missing.append(f"DNS {port_problem(NAME_SERVER_PORT, error)}; names of services are in pods' /etc/hosts")
        found = self._settings.api_server()
        if found is not None:
            address = str(plane.block[1])
            plane.set_address(API_SERVICE, address)
            self._fixed = {API_SERVICE}
            route = Route(API_SERVER_ADDRESS, API_SERVER_PORT, "TCP", (RouteTarget(*found),))
            problem = (await plane.change({API_SERVICE: (route,)})).get(API_SERVICE)
            self.api_server = found if problem else (address, API_SERVER_PORT)
            if problem:
                plane.set_address(API_SERVICE, found[0])
                missing.append(f"kubernetes.default.svc: {problem}; it answers at port {found[1]}")
        text = "services have loopback addresses instead of their cluster addresses"
        self.description = "; ".join((text, *missing))

    def _make_dns(self, *networks: ipaddress.IPv4Network) -> DnsServer:
        assert self._plane is not None, "the plane is made first"
        plane = self._plane
        names = ClusterNames(
            self._watch.world,
            address_of=lambda service: plane.address_of(service.key, service.spec.cluster_ip),
            networks=networks,
        )
        self._dns = DnsServer(names, DnsUpstream(self._settings.name_servers or machine_name_servers))
        return self._dns

    # -- following --------------------------------------------------------------------------------------------
    async def _follow(self) -> None:
        while True:
            changed = set(await self._changed.get())
            while not self._changed.empty():
                changed |= self._changed.get_nowait()
            with contextlib.suppress(OSError):
                await self._apply(changed)

    async def _apply(self, changed: Set[Key]) -> None:
        assert self._plane is not None and self._node_ports is not None, "nothing changes before it is open"
        routes = {key: self._watch.routes(key) for key in changed if key not in self._fixed}
        problems = await self._plane.change(routes)
        for key, its in routes.items():
            problem = await self._node_ports.change(key, its) or problems.get(key, "")
            self._report(key, problem)
        self._on_change()

    def _report(self, key: Key, problem: str) -> None:
        """An event on the service, once for each problem."""
        service = self._watch.service(key)
        if problem and service is not None and self._problems.get(key) != problem:
            self._recorder.record(Record(ref(service), "NotServed", problem, "Warning"))
        if problem:
            self._problems[key] = problem
        else:
            self._problems.pop(key, None)

    # -- names without a name server --------------------------------------------------------------------------
    def hosts_lines(self, namespace: str) -> Iterator[tuple[str, str]]:
        """Names and addresses for /etc/hosts, where there is no name server; short names within the namespace."""
        if self.name_server or self._plane is None:
            return
        for service in self._watch.services()[:MAX_SERVICES_IN_HOSTS_FILES]:
            if service.key == API_SERVICE or service.spec.type == "ExternalName":
                continue
            names = f"{service.name}.{service.namespace}"
            names = f"{names}.{SERVICE_DOMAIN} {names}.svc {names}"
            names = f"{names} {service.name}" if service.namespace == namespace else names
            if service.spec.cluster_ip != HEADLESS:
                yield names, self._plane.address_of(service.key, service.spec.cluster_ip)
                continue
            for address, label in self._ready_endpoints(service):
                yield " ".join(f"{label}.{name}" for name in names.split()), address
                yield names, address

    def _ready_endpoints(self, service: Service) -> Iterator[tuple[str, str]]:
        for each in self._watch.world.where(EndpointSlice, "service", str(service.key)):
            for endpoint in each.endpoints:
                if is_ready(endpoint):
                    for address in endpoint.get("addresses") or ():
                        yield address, label_of(endpoint, address)
