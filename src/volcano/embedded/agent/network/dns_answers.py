"""The records of the cluster's domain, as Kubernetes' DNS specification (1.1.0) has them. Pure.

Services, headless services, host names of pods, named ports, external names and reverse names. How messages look is
dns_wire's, how they arrive dns_server's.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Iterable, Iterator
from typing import Final

import msgspec

from volcano.api.core import EndpointSlice, Service
from volcano.api.meta import JSON, Key
from volcano.api.service_network import CLUSTER_DOMAIN, HEADLESS, SERVICE_DOMAIN, SERVICE_NAME_LABEL, SERVICE_RANGE
from volcano.embedded.agent.network.service_routes import is_ready
from volcano.machinery.world import World

SPECIFICATION_VERSION: Final = "1.1.0"
NAME_SERVER: Final = f"ns.dns.{CLUSTER_DOMAIN}"
REVERSE_DOMAIN: Final = "in-addr.arpa"
TOTAL_WEIGHT: Final = 100


class DnsRecord(msgspec.Struct, frozen=True):
    """One record: `value` is an address, a name, a text, or (priority, weight, port, name)."""

    name: str
    kind: str
    value: str | tuple[int, int, int, str]


class DnsAnswer(msgspec.Struct, frozen=True):
    """`exists` without records: the name is known and has no record of the kind."""

    exists: bool
    records: tuple[DnsRecord, ...] = ()
    additional: tuple[DnsRecord, ...] = ()


NO_SUCH_NAME: Final = DnsAnswer(exists=False)
NO_DATA: Final = DnsAnswer(exists=True)


class ClusterNames:
    """Answers from the services as last seen. `address_of` is where pods reach a service with a cluster address."""

    def __init__(
        self,
        world: World,
        *,
        address_of: Callable[[Service], str] = lambda service: service.spec.cluster_ip,
        networks: Iterable[ipaddress.IPv4Network] = (SERVICE_RANGE,),
    ) -> None:
        self._world, self._address_of, self._networks = world, address_of, tuple(networks)

    def resolve(self, name: str, kind: str) -> DnsAnswer | None:
        """The answer for a name in lower case without its last dot; None when the name is not ours to answer."""
        if name == CLUSTER_DOMAIN:
            return DnsAnswer(True, (DnsRecord(name, "NS", NAME_SERVER),)) if kind == "NS" else NO_DATA
        if name.endswith(f".{CLUSTER_DOMAIN}"):
            return self._in_cluster(name, name.removesuffix(f".{CLUSTER_DOMAIN}").split("."), kind)
        if name.endswith(f".{REVERSE_DOMAIN}"):
            return self._reverse(name, kind)
        return None

    def _in_cluster(self, name: str, labels: list[str], kind: str) -> DnsAnswer:
        *front, branch = labels
        if branch == "dns-version" and not front:
            return _only(kind, [DnsRecord(name, "TXT", SPECIFICATION_VERSION)])
        if branch == "svc":
            return self._below_services(name, front, kind) if front else NO_DATA
        if branch == "pod":
            return _pod(name, front, kind) if front else NO_DATA
        return NO_SUCH_NAME

    def _below_services(self, name: str, labels: list[str], kind: str) -> DnsAnswer:
        if len(labels) == 1:
            return NO_DATA if self._world.where(Service, "namespace", labels[0]) else NO_SUCH_NAME
        *front, service_name, namespace = labels
        service = self._world.get(Service, Key(namespace, service_name))
        if service is None:
            return NO_SUCH_NAME
        if service.spec.type == "ExternalName":
            target = service.spec.external_name.rstrip(".").lower()
            return NO_SUCH_NAME if front else DnsAnswer(True, (DnsRecord(name, "CNAME", target),))
        match front:
            case []:
                return self._service(name, service, kind)
            case [port, protocol] if port.startswith("_") and protocol.startswith("_"):
                return self._ports(name, service, kind, port[1:], protocol[1:])
            case [protocol] if protocol.startswith("_"):
                has = any(port.protocol.lower() == protocol[1:] for port in service.spec.ports)
                return NO_DATA if has else NO_SUCH_NAME
            case [host]:
                return self._endpoint(name, service, kind, host)
        return NO_SUCH_NAME

    def _service(self, name: str, service: Service, kind: str) -> DnsAnswer:
        if kind == "SRV":
            return self._ports(name, service, kind, "", "")
        if service.spec.cluster_ip != HEADLESS:
            return _only(kind, _addresses(name, [self._address_of(service)]))
        addresses = {address for _, _, address in self._endpoints(service)}
        return _only(kind, _addresses(name, sorted(addresses))) if addresses else NO_SUCH_NAME

    def _endpoint(self, name: str, service: Service, kind: str, host: str) -> DnsAnswer:
        found = [(each, address) for each, label, address in self._endpoints(service) if label == host]
        if not found:
            return NO_SUCH_NAME
        if kind == "SRV":
            ports = [(port, name) for each, _ in found for port in each.ports]
            return _weighted(name, ports, _addresses(name, [address for _, address in found]))
        return _only(kind, _addresses(name, sorted({address for _, address in found})))

    def _ports(self, name: str, service: Service, kind: str, port: str, protocol: str) -> DnsAnswer:
        """SRV records: of one named port, or without a name of all ports."""

        def is_asked(its_name: str, its_protocol: str) -> bool:
            return not port or (its_name == port and its_protocol.lower() == protocol)

        at = f"{service.name}.{service.namespace}.{SERVICE_DOMAIN}"
        if service.spec.cluster_ip != HEADLESS:
            ports = [({"port": p.port}, at) for p in service.spec.ports if is_asked(p.name, p.protocol)]
            extra = _addresses(at, [self._address_of(service)])
        else:
            ends = list(self._endpoints(service))
            ports = [
                (its, f"{label}.{at}")
                for each, label, _ in ends
                for its in each.ports
                if is_asked(its.get("name") or "", its.get("protocol") or "TCP")
            ]
            extra = [DnsRecord(f"{label}.{at}", "A", address) for _, label, address in ends]
        if not ports:
            return NO_SUCH_NAME
        return _weighted(name, ports, extra) if kind == "SRV" else NO_DATA

    def _endpoints(self, service: Service) -> Iterator[tuple[EndpointSlice, str, str]]:
        """The ready endpoints: slice, label below the service's name, address."""
        for each in self._world.where(EndpointSlice, "service", str(service.key)):
            for endpoint in each.endpoints if each.address_type == "IPv4" else ():
                if is_ready(endpoint):
                    for address in endpoint.get("addresses") or ():
                        yield each, label_of(endpoint, address), address

    def _reverse(self, name: str, kind: str) -> DnsAnswer | None:
        try:
            octets = name.removesuffix(f".{REVERSE_DOMAIN}").split(".")
            address = ipaddress.IPv4Address(".".join(reversed(octets)))
        except ValueError:
            return None
        names = [
            f"{each.name}.{each.namespace}.{SERVICE_DOMAIN}"
            for each in self._world.where(Service, "address", str(address))
        ]
        names += sorted(set(self._endpoint_names(str(address))))
        if not names and not any(address in network for network in self._networks):
            return None
        return _only(kind, [DnsRecord(name, "PTR", each) for each in names]) if names else NO_SUCH_NAME

    def _endpoint_names(self, address: str) -> Iterator[str]:
        for each in self._world.where(EndpointSlice, "address", address):
            service = self._world.get(Service, Key(each.namespace, each.labels.get(SERVICE_NAME_LABEL, "")))
            if service is None or service.spec.cluster_ip != HEADLESS:
                continue
            for endpoint in each.endpoints:
                if address in (endpoint.get("addresses") or ()) and is_ready(endpoint):
                    yield f"{label_of(endpoint, address)}.{service.name}.{service.namespace}.{SERVICE_DOMAIN}"


def label_of(endpoint: JSON, address: str) -> str:
    """The endpoint's label below its service: its host name, else its address with dashes."""
    return str(endpoint.get("hostname") or address.replace(".", "-")).lower()


def _pod(name: str, labels: list[str], kind: str) -> DnsAnswer:
    """`10-64-0-1.<namespace>.pod`: the address itself."""
    if len(labels) == 1:
        return NO_DATA
    if len(labels) != 2:
        return NO_SUCH_NAME
    try:
        address = ipaddress.IPv4Address(labels[0].replace("-", "."))
    except ValueError:
        return NO_SUCH_NAME
    return _only(kind, _addresses(name, [str(address)]))


def _addresses(name: str, addresses: Iterable[str]) -> list[DnsRecord]:
    return [DnsRecord(name, "A", address) for address in addresses if address]


def _only(kind: str, records: Iterable[DnsRecord]) -> DnsAnswer:
    return DnsAnswer(True, tuple(record for record in records if kind in (record.kind, "ANY")))


def _weighted(name: str, ports: list[tuple[JSON, str]], extra: list[DnsRecord]) -> DnsAnswer:
    weight = max(1, TOTAL_WEIGHT // max(1, len(ports)))
    records = (DnsRecord(name, "SRV", (0, weight, int(port.get("port") or 0), target)) for port, target in ports)
    return DnsAnswer(True, tuple(records), tuple(extra))
