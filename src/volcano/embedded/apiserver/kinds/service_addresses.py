"""Owns which ClusterIPs and node ports are taken, and picks the next free ones for services that name none.

An address that is handed out belongs to a claim until the write that carries it is over, so that services which are
created at the same time get different ones. From then on the stored object holds it.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec

from volcano.api.errors import FieldError, Invalid
from volcano.api.field_errors import invalid
from volcano.api.meta import JSON
from volcano.api.service_network import HEADLESS, SERVICE_RANGE
from volcano.embedded.apiserver.store.contract import DELETED, LoggedChange, ObjectKey, Store

NODE_PORTS: Final = range(30000, 32768)
_SERVICES: Final = "services"
FIRST_ASSIGNED_ADDRESS: Final = 16  # the lowest addresses are left to those who ask for them by number
TYPES_WITH_NODE_PORTS: Final = ("NodePort", "LoadBalancer")
_ADDRESS_FIELDS: Final = ("clusterIP", "clusterIPs", "ipFamilies", "ipFamilyPolicy")


class HeldAddresses(msgspec.Struct, frozen=True):
    """What one service occupies."""

    addresses: frozenset[str] = frozenset()
    ports: frozenset[int] = frozenset()


class ServiceAddresses:
    """The addresses that stored services and claims hold; it follows the store from its first use on."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._held: dict[ObjectKey, HeldAddresses] | None = None
        self._addresses: dict[str, int] = {}  # how many hold it: an update and its service may do so at once
        self._ports: dict[int, int] = {}
        self._next_address = FIRST_ASSIGNED_ADDRESS
        store.subscribe(self._follow)

    def claim(self) -> AddressClaim:
        """A claim that holds nothing yet; its owner releases it when the write is over."""
        return AddressClaim(self)

    def is_address_taken(self, address: str) -> bool:
        self._load()
        return address in self._addresses

    def is_port_taken(self, port: int) -> bool:
        self._load()
        return port in self._ports

    def free_address(self) -> str | None:
        """The next one after the one handed out last, so that an address is not reused as soon as it is free."""
        self._load()
        last = SERVICE_RANGE.num_addresses - 1
        for number in (*range(self._next_address, last), *range(FIRST_ASSIGNED_ADDRESS, self._next_address)):
            address = str(SERVICE_RANGE[number])
            if address not in self._addresses:
                self._next_address = number + 1 if number + 1 < last else FIRST_ASSIGNED_ADDRESS
                return address
        return None

    def free_port(self) -> int | None:
        self._load()
        return next((port for port in NODE_PORTS if port not in self._ports), None)

    def count(self, held: HeldAddresses, by: int) -> None:
        """Note that somebody more, or less, holds these."""
        _add(self._addresses, held.addresses, by)
        _add(self._ports, held.ports, by)

    def _load(self) -> None:
        if self._held is not None:
            return
        self._held = {}
        for stored in self._store.scan(_SERVICES):
            self._set(stored.key, held_by(msgspec.json.decode(stored.raw)))

    def _follow(self, changes: Sequence[LoggedChange]) -> None:
        if self._held is None:
            return
        for change in changes:
            if change.stored.key.resource == _SERVICES:
                is_gone = change.kind == DELETED
                self._set(
                    change.stored.key, HeldAddresses() if is_gone else held_by(msgspec.json.decode(change.stored.raw))
                )

    def _set(self, key: ObjectKey, held: HeldAddresses) -> None:
        assert self._held is not None
        self.count(self._held.pop(key, HeldAddresses()), -1)
        if held.addresses or held.ports:
            self._held[key] = held
            self.count(held, 1)


class AddressClaim:
    """The addresses that one write took, until it is over."""

    def __init__(self, ledger: ServiceAddresses) -> None:
        self.ledger = ledger
        self._taken: list[HeldAddresses] = []

    def hold(self, held: HeldAddresses) -> None:
        self._taken.append(held)
        self.ledger.count(held, 1)

    def release(self) -> None:
        """The write is over: what it stored holds its own now."""
        for held in self._taken:
            self.ledger.count(held, -1)
        self._taken.clear()


def held_by(service: JSON) -> HeldAddresses:
    """What a stored service occupies."""
    spec = service.get("spec") or {}
    addresses = {str(address) for address in spec.get("clusterIPs") or [spec.get("clusterIP")] if address}
    ports = {port["nodePort"] for port in _ports(spec) if port.get("nodePort")}
    return HeldAddresses(frozenset(addresses - {HEADLESS}), frozenset(ports))


def assign_addresses(claim: AddressClaim, service: JSON, old: JSON | None) -> None:
    """Fill in what the service needs and does not name; refuse what someone else has."""
    spec = service.get("spec")
    if not isinstance(spec, dict):
        return
    own, before = held_by(old or {}), (old or {}).get("spec") or {}
    if spec.get("type") == "ExternalName":
        return
    _assign_cluster_ip(claim, service, spec, own)
    if spec.get("type") in TYPES_WITH_NODE_PORTS:
        if spec.get("type") == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is False:
            return
        _assign_node_ports(claim, service, spec, own, before)


def carry_addresses_over(spec: JSON, before: JSON) -> None:
    """An update may leave out what was assigned, and loses what its new type has no use for."""
    if spec.get("type") == "ExternalName":
        for field in _ADDRESS_FIELDS:
            if spec.get(field) == before.get(field):
                spec.pop(field, None)
    else:
        for field in _ADDRESS_FIELDS:
            if not spec.get(field) and before.get(field):
                spec[field] = before[field]
    if spec.get("type") not in TYPES_WITH_NODE_PORTS:
        had = held_by({"spec": before}).ports
        for port in _ports(spec):
            if port.get("nodePort") in had:
                del port["nodePort"]


def _assign_cluster_ip(claim: AddressClaim, service: JSON, spec: JSON, own: HeldAddresses) -> None:
    wanted = spec.get("clusterIP")
    if not wanted:
        wanted = claim.ledger.free_address()
        if wanted is None:
            why = "failed to allocate a serviceIP: range is full"
            raise _refused(service, FieldError("spec.clusterIPs", f"Invalid value: null: {why}"))
        claim.hold(HeldAddresses(addresses=frozenset({wanted})))
    elif wanted != HEADLESS and wanted not in own.addresses:
        _check_address(claim, service, wanted)
        claim.hold(HeldAddresses(addresses=frozenset({wanted})))
    spec["clusterIP"] = wanted
    spec["clusterIPs"] = [wanted]
    spec.setdefault("ipFamilies", ["IPv4"])
    spec.setdefault("ipFamilyPolicy", "SingleStack")


def _check_address(claim: AddressClaim, service: JSON, wanted: str) -> None:
    address = ipaddress.ip_address(wanted)  # validation has refused what is none
    if address.version != SERVICE_RANGE.version:
        raise _refused(service, invalid("spec.clusterIPs[0]", [wanted], "IPv6 is not configured on this cluster"))
    why = ""
    if address not in SERVICE_RANGE or address in (SERVICE_RANGE.network_address, SERVICE_RANGE.broadcast_address):
        why = "the provided network does not match the current range"
    elif claim.ledger.is_address_taken(wanted):
        why = "provided IP is already allocated"
    if why:
        raise _refused(service, invalid("spec.clusterIPs", [wanted], f"failed to allocate IP {wanted}: {why}"))


def _assign_node_ports(claim: AddressClaim, service: JSON, spec: JSON, own: HeldAddresses, before: JSON) -> None:
    had = {(p.get("port"), p.get("protocol")): p.get("nodePort") for p in _ports(before)}
    mine: dict[tuple[Any, Any], int] = {}  # the protocols of one port share a node port
    for number, port in enumerate(_ports(spec)):
        protocol = port.get("protocol") or "TCP"
        wanted = port.get("nodePort") or had.get((port.get("port"), port.get("protocol")))
        if not wanted:
            wanted = next((p for (at, other), p in mine.items() if at == port.get("port") and other != protocol), None)
        if not wanted:
            wanted = claim.ledger.free_port()
            if wanted is None:
                why = "Invalid value: 0: failed to allocate a nodePort: range is full"
                raise _refused(service, FieldError(f"spec.ports[{number}].nodePort", why))
            claim.hold(HeldAddresses(ports=frozenset({wanted})))
        elif wanted not in mine.values() and wanted not in own.ports:
            _check_port(claim, service, f"spec.ports[{number}].nodePort", wanted)
            claim.hold(HeldAddresses(ports=frozenset({wanted})))
        elif any(wanted == p and other == protocol for (_, other), p in mine.items()):
            path = f"spec.ports[{number}].nodePort"
            raise _refused(service, invalid(path, wanted, "provided port is already allocated"))
        port["nodePort"] = wanted
        mine[port.get("port"), protocol] = wanted


def _check_port(claim: AddressClaim, service: JSON, path: str, wanted: int) -> None:
    if wanted not in NODE_PORTS:
        valid = f"{NODE_PORTS.start}-{NODE_PORTS.stop - 1}"
        why = f"provided port is not in the valid range. The range of valid ports is {valid}"
        raise _refused(service, invalid(path, wanted, why))
    if claim.ledger.is_port_taken(wanted):
        raise _refused(service, invalid(path, wanted, "provided port is already allocated"))


def _ports(spec: JSON) -> Iterator[JSON]:
    return (port for port in spec.get("ports") or [] if isinstance(port, dict))


def _refused(service: JSON, error: FieldError) -> Invalid:
    return Invalid.of("Service", str(service["metadata"].get("name")), [error])


def _add(counts: dict[Any, int], held: frozenset[Any], by: int) -> None:
    for each in held:
        counts[each] = counts.get(each, 0) + by
        if not counts[each]:
            del counts[each]
