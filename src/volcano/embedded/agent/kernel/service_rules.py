"""The nftables rules that lead cluster addresses of services to their endpoints, in the table that pod_table makes.

Each served port has a chain that chooses an endpoint at random, or the one that the same client had before. A map leads
from address, protocol and port to the chain. An address without a chain is refused.
"""

from __future__ import annotations

import socket
import struct
from collections import Counter
from typing import Final, NamedTuple

from volcano.embedded.agent.kernel import nftables as nft
from volcano.embedded.agent.kernel.pod_table import POSTROUTING_CHAIN

PROTOCOLS: Final = {"TCP": socket.IPPROTO_TCP, "UDP": socket.IPPROTO_UDP}
PORTS_MAP: Final = "service-ports"
ADDRESSES_SET: Final = "service-addresses"
HAIRPIN_SET: Final = "hairpin"
PREROUTING_CHAIN, OUTPUT_CHAIN, REFUSE_CHAIN = "prerouting", "output", "refuse"


class ServedPort(NamedTuple):
    """An address, port and protocol of a service."""

    address: str
    port: int
    protocol: str

    @property
    def chain(self) -> str:
        return f"{self.protocol.lower()}-{self.address}-{self.port}"

    @property
    def key(self) -> bytes:
        """As the rules load it: each field fills whole registers."""
        protocol = struct.pack("B3x", PROTOCOLS[self.protocol])
        return socket.inet_aton(self.address) + protocol + struct.pack(">H2x", self.port)


class PortTargets(NamedTuple):
    """Where connections to a served port lead."""

    targets: tuple[tuple[str, int], ...]
    affinity_seconds: int = 0  # how long a client keeps its endpoint; 0: each connection is free


class ServiceRules:
    """What the kernel has of the services; the table exists and is this object's alone."""

    def __init__(self, table: str, bridge: str) -> None:
        self._table, self._bridge = table, bridge
        self._served: dict[ServedPort, PortTargets] = {}
        self._addresses: Counter[str] = Counter()
        self._targets: Counter[str] = Counter()

    def open(self) -> None:
        """Make the empty map and the chains that use it."""
        table, registers = self._table, nft.REGISTERS
        follow = (
            nft.destination(registers[0])
            + nft.about(nft.PROTOCOL, registers[1])
            + nft.destination_port(registers[2])
            + nft.go_by_map(PORTS_MAP)
        )
        nft.transact(
            [
                nft.make_set(table, PORTS_MAP, 1, key_bytes=12, flags=nft.IS_MAP),
                nft.make_set(table, ADDRESSES_SET, 2, key_bytes=4),
                nft.make_set(table, HAIRPIN_SET, 3, key_bytes=8),
                nft.base_chain(table, PREROUTING_CHAIN, "nat", nft.PREROUTING, nft.DESTINATION_NAT_PRIORITY),
                nft.rule(table, PREROUTING_CHAIN, nft.device_is(nft.IN_DEVICE, self._bridge), follow),
                nft.base_chain(table, OUTPUT_CHAIN, "nat", nft.OUTPUT, nft.DESTINATION_NAT_PRIORITY),
                nft.rule(table, OUTPUT_CHAIN, follow),
                nft.base_chain(table, REFUSE_CHAIN, "filter", nft.OUTPUT, nft.FILTER_PRIORITY),
                nft.rule(table, REFUSE_CHAIN, nft.destination(), nft.is_in_set(ADDRESSES_SET), nft.reject()),
                # A pod that is led to itself would drop packets with its own address as their source.
                nft.rule(
                    table,
                    POSTROUTING_CHAIN,
                    nft.source(registers[0]),
                    nft.destination(registers[1]),
                    nft.is_in_set(HAIRPIN_SET),
                    nft.masquerade(),
                ),
            ]
        )

    def change(self, changes: dict[ServedPort, PortTargets | None]) -> None:
        """Serve these ports so from now on; None: no longer. All or nothing, in one transaction."""
        messages: list[nft.Message] = []
        addresses, targets = self._addresses.copy(), self._targets.copy()
        for number, (port, wanted) in enumerate(changes.items()):
            known = self._served.get(port)
            if known == wanted:
                continue
            messages += self._replace(port, known, wanted, first_identity=number * 0x10000 + 1)
            _count(addresses, targets, port, known, -1)
            _count(addresses, targets, port, wanted, +1)
        messages += self._elements(ADDRESSES_SET, self._addresses, addresses, copies=1)
        messages += self._elements(HAIRPIN_SET, self._targets, targets, copies=2)
        if not messages:
            return
        nft.transact(messages)
        self._addresses, self._targets = +addresses, +targets
        for port, wanted in changes.items():
            if wanted is None:
                self._served.pop(port, None)
            else:
                self._served[port] = wanted

    def _replace(
        self, port: ServedPort, known: PortTargets | None, wanted: PortTargets | None, *, first_identity: int
    ) -> list[nft.Message]:
        table, name = self._table, port.chain
        had, has = bool(known and known.targets), bool(wanted and wanted.targets)
        old_sets, new_sets = _affinity_sets(port, known), _affinity_sets(port, wanted)
        messages = []
        if had and not has:
            messages.append(nft.element(table, PORTS_MAP, port.key, leads_to=name, is_removed=True))
        if has and not had:
            messages.append(nft.chain(table, name))
        if had:
            messages.append(nft.no_rules(table, name))
        messages += [nft.no_set(table, gone) for gone in old_sets if gone not in new_sets]
        if has and wanted is not None:
            flags, seconds = nft.HAS_TIMEOUT | nft.IS_UPDATED_BY_RULES, wanted.affinity_seconds
            messages += [
                nft.make_set(table, made, first_identity + n, key_bytes=4, flags=flags, timeout_seconds=seconds)
                for n, made in enumerate(new_sets)
                if made not in old_sets
            ]
            messages += [nft.rule(table, name, *each) for each in _rules(port, wanted)]
        if has and not had:
            messages.append(nft.element(table, PORTS_MAP, port.key, leads_to=name))
        if had and not has:
            messages.append(nft.no_chain(table, name))
        return messages

    def _elements(self, name: str, before: Counter[str], after: Counter[str], *, copies: int) -> list[nft.Message]:
        gone = [each for each in before if after[each] <= 0]
        new = [each for each in after if after[each] > 0 and each not in before]
        return [
            *(nft.element(self._table, name, socket.inet_aton(each) * copies, is_removed=True) for each in gone),
            *(nft.element(self._table, name, socket.inet_aton(each) * copies) for each in new),
        ]


def _count(
    addresses: Counter[str], targets: Counter[str], port: ServedPort, endpoints: PortTargets | None, by: int
) -> None:
    if endpoints is not None:
        addresses[port.address] += by
        for address, _ in endpoints.targets:
            targets[address] += by


def _affinity_sets(port: ServedPort, endpoints: PortTargets | None) -> list[str]:
    """The sets of the clients that keep each target. A changed time makes new ones."""
    if endpoints is None or not endpoints.affinity_seconds:
        return []
    return [f"{port.chain}-{host}-{to}-{endpoints.affinity_seconds}" for host, to in endpoints.targets]


def _rules(port: ServedPort, endpoints: PortTargets) -> list[tuple[bytes, ...]]:
    sets, seconds = _affinity_sets(port, endpoints), endpoints.affinity_seconds
    rules: list[tuple[bytes, ...]] = []
    for kept, (host, to) in zip(sets, endpoints.targets, strict=False):
        rules.append((nft.source(), nft.is_in_set(kept), nft.remember(kept, seconds), nft.send_to(host, to)))
    left = len(endpoints.targets)
    for number, (host, to) in enumerate(endpoints.targets):
        choice = nft.one_in(left - number) if left - number > 1 else b""
        keep = nft.source() + nft.remember(sets[number], seconds) if sets else b""
        rules.append((choice, keep, nft.send_to(host, to)))
    return rules
