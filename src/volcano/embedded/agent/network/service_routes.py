"""Where the ports of a Service lead: its cluster address and node port, and the ready endpoints behind them. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec

from volcano.api.core import EndpointSlice, Service
from volcano.api.meta import JSON
from volcano.api.service_network import HEADLESS

PROXIED_PROTOCOLS: Final = ("TCP", "UDP")
DEFAULT_AFFINITY_SECONDS: Final = 10800
MAX_TARGETS_PER_PORT: Final = 1000


class RouteTarget(msgspec.Struct, frozen=True, order=True):
    """One endpoint of a port."""

    address: str
    port: int
    pod: str = ""  # UID of the pod behind it, where it is one


class Route(msgspec.Struct, frozen=True):
    """One port of one service."""

    address: str
    port: int
    protocol: str
    targets: tuple[RouteTarget, ...] = ()
    affinity_seconds: int = 0
    node_port: int = 0


def routes_of(service: Service, slices: Iterable[EndpointSlice]) -> tuple[Route, ...]:
    """The ports of a service that has a cluster address; headless and external ones have none."""
    spec = service.spec
    if spec.type == "ExternalName" or not spec.cluster_ip or spec.cluster_ip == HEADLESS or ":" in spec.cluster_ip:
        return ()
    known = list(slices)
    return tuple(
        Route(
            spec.cluster_ip,
            port.port,
            port.protocol,
            _targets(known, port.name, port.protocol),
            affinity_seconds(service),
            port.node_port if spec.type in ("NodePort", "LoadBalancer") else 0,
        )
        for port in spec.ports
        if port.protocol in PROXIED_PROTOCOLS
    )


def affinity_seconds(service: Service) -> int:
    """How long a client stays with its endpoint; 0 without session affinity."""
    if service.spec.session_affinity != "ClientIP":
        return 0
    config = (service.spec.session_affinity_config or {}).get("clientIP") or {}
    return int(config.get("timeoutSeconds") or DEFAULT_AFFINITY_SECONDS)


def is_ready(endpoint: JSON) -> bool:
    return (endpoint.get("conditions") or {}).get("ready") is not False


def _is_draining(endpoint: JSON) -> bool:
    conditions = endpoint.get("conditions") or {}
    return bool(conditions.get("serving")) and bool(conditions.get("terminating"))


def _targets(slices: list[EndpointSlice], name: str, protocol: str) -> tuple[RouteTarget, ...]:
    """The ready endpoints; while none is ready, those that end but still serve."""
    for is_wanted in (is_ready, _is_draining):
        found = sorted(
            RouteTarget(address, number, str((endpoint.get("targetRef") or {}).get("uid") or ""))
            for each in slices
            if each.address_type == "IPv4"
            for number in _port_numbers(each, name, protocol)
            for endpoint in each.endpoints
            if is_wanted(endpoint)
            for address in (endpoint.get("addresses") or ())[:1]
        )
        if found:
            return tuple(found[:MAX_TARGETS_PER_PORT])
    return ()


def _port_numbers(each: EndpointSlice, name: str, protocol: str) -> Iterator[int]:
    for port in each.ports:
        if (port.get("name") or "") == name and (port.get("protocol") or "TCP") == protocol and port.get("port"):
            yield int(port["port"])
