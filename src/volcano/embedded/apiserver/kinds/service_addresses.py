"""ClusterIPs and node ports of new services: the next free ones of their ranges."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from volcano.api.errors import FieldError, Invalid
from volcano.api.meta import JSON
from volcano.embedded.apiserver.store.contract import Store

NETWORK: Final = ipaddress.ip_network("10.96.0.0/12")
NODE_PORTS: Final = range(30000, 32768)
_FIRST_DYNAMIC: Final = 16  # the lowest addresses are left to those who ask for them by number


def assign_addresses(store: Store, service: JSON, old: JSON | None) -> None:
    """Fill in what the service needs and does not name; refuse what someone else has."""
    spec = service.get("spec")
    if not isinstance(spec, dict) or spec.get("type") == "ExternalName":
        return
    before = (old or {}).get("spec") or {}
    for field in ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy"):
        if not spec.get(field) and before.get(field):
            spec[field] = before[field]
    others = [s for s in _specs(store) if s is not None]
    _assign_cluster_ip(service, spec, {s.get("clusterIP") for s in others}, kept=before.get("clusterIP"))
    if spec.get("type") in ("NodePort", "LoadBalancer"):
        taken = {p.get("nodePort") for s in others for p in s.get("ports") or [] if isinstance(p, dict)}
        _assign_node_ports(service, spec, taken, before)


def _specs(store: Store) -> Iterator[JSON | None]:
    for stored in store.scan("services"):
        yield msgspec.json.decode(stored.raw).get("spec")


def _assign_cluster_ip(service: JSON, spec: JSON, taken: set[Any], *, kept: Any) -> None:
    wanted = spec.get("clusterIP")
    if not wanted:
        wanted = next(str(address) for address in _addresses() if str(address) not in taken)
    elif wanted not in ("None", kept) and wanted in taken:
        why = f'Invalid value: "{wanted}": failed to allocate IP {wanted}: provided IP is already allocated'
        raise Invalid.of("Service", str(service["metadata"].get("name")), [FieldError("spec.clusterIPs", why)])
    spec["clusterIP"] = wanted
    spec["clusterIPs"] = [wanted]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _addresses() -> Iterator[ipaddress.IPv4Address | ipaddress.IPv6Address]:
    for number in range(_FIRST_DYNAMIC, NETWORK.num_addresses - 1):
        yield NETWORK[number]


def _assign_node_ports(service: JSON, spec: JSON, taken: set[Any], before: JSON) -> None:
    had = {(p.get("port"), p.get("protocol")): p.get("nodePort") for p in before.get("ports") or []}
    kept = set(had.values())
    for number, port in enumerate(spec.get("ports") or []):
        if not isinstance(port, dict):
            continue
        wanted = port.get("nodePort") or had.get((port.get("port"), port.get("protocol")))
        if not wanted:
            wanted = next((p for p in NODE_PORTS if p not in taken), None)
        elif wanted in taken and wanted not in kept:
            why = f"Invalid value: {wanted}: provided port is already allocated"
            path = f"spec.ports[{number}].nodePort"
            raise Invalid.of("Service", str(service["metadata"].get("name")), [FieldError(path, why)])
        if wanted:
            port["nodePort"] = wanted
            taken.add(wanted)
