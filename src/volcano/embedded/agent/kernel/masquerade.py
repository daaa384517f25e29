"""NAT for pods: one nftables table that gives outgoing packets the machine's address, written through netlink.

Making it again replaces it; removing it when it does not exist is not an error.
"""

from __future__ import annotations

import ipaddress
import socket
import struct
from typing import Final

from volcano.embedded.agent.kernel.netlink import ACK, CREATE, Netlink, attribute, text

NETFILTER: Final = 12
BATCH_BEGIN, BATCH_END = 0x10, 0x11
SUBSYSTEM: Final = 10 << 8
NEW_TABLE, DELETE_TABLE, NEW_CHAIN, NEW_RULE = 0, 2, 3, 6
APPEND: Final = 0x800
NESTED: Final = 0x8000
POSTROUTING, SOURCE_NAT = 4, 100
REGISTER: Final = 1
OIFNAME: Final = 7
NOT_EQUAL, EQUAL = 1, 0


def masquerade(table: str, subnet: ipaddress.IPv4Network, bridge: str) -> None:
    """Packets that leave the subnet by any device but the bridge get the machine's address."""
    named = attribute(1, text(table))
    hook = attribute(1, struct.pack(">I", POSTROUTING)) + attribute(2, struct.pack(">i", SOURCE_NAT))
    chain = named + attribute(3, text("postrouting")) + attribute(4 | NESTED, hook) + attribute(7, text("nat"))
    rule = named + attribute(2, text("postrouting")) + attribute(4 | NESTED, _expressions(subnet, bridge))
    with Netlink(NETFILTER) as kernel:
        _transact(
            kernel,
            [
                # Created first, so that the deletion never fails; then created again, empty.
                (NEW_TABLE, named, CREATE),
                (DELETE_TABLE, named, 0),
                (NEW_TABLE, named, CREATE),
                (NEW_CHAIN, chain, CREATE),
                (NEW_RULE, rule, CREATE | APPEND),
            ],
        )


def stop_masquerade(table: str) -> None:
    named = attribute(1, text(table))
    with Netlink(NETFILTER) as kernel:
        _transact(kernel, [(NEW_TABLE, named, CREATE), (DELETE_TABLE, named, 0)])


def _transact(kernel: Netlink, messages: list[tuple[int, bytes, int]]) -> None:
    edge = struct.pack(">BBH", socket.AF_UNSPEC, 0, 10)
    header = struct.pack(">BBH", socket.AF_INET, 0, 0)
    kernel.batch(
        [
            (BATCH_BEGIN, edge, 0),
            *((SUBSYSTEM | message, header + body, flags | ACK) for message, body, flags in messages),
            (BATCH_END, edge, 0),
        ]
    )


def _expressions(subnet: ipaddress.IPv4Network, bridge: str) -> bytes:
    register = attribute(1, struct.pack(">I", REGISTER))
    payload = register + b"".join(
        attribute(number, struct.pack(">I", value))
        for number, value in ((2, 1), (3, 12), (4, 4))  # the network header, from its source address, 4 bytes
    )
    masked = (
        register
        + attribute(2, struct.pack(">I", REGISTER))
        + attribute(3, struct.pack(">I", 4))
        + attribute(4 | NESTED, attribute(1, subnet.netmask.packed))
        + attribute(5 | NESTED, attribute(1, bytes(4)))
    )
    device = attribute(1, struct.pack(">I", REGISTER)) + attribute(2, struct.pack(">I", OIFNAME))
    return (
        _expression("payload", payload)
        + _expression("bitwise", masked)
        + _expression("cmp", _compare(EQUAL, subnet.network_address.packed))
        + _expression("meta", device)
        + _expression("cmp", _compare(NOT_EQUAL, bridge.encode().ljust(16, b"\0")))
        + _expression("masq", b"")
    )


def _compare(operator: int, value: bytes) -> bytes:
    return (
        attribute(1, struct.pack(">I", REGISTER))
        + attribute(2, struct.pack(">I", operator))
        + attribute(3 | NESTED, attribute(1, value))
    )


def _expression(name: str, content: bytes) -> bytes:
    return attribute(1 | NESTED, attribute(1, text(name)) + attribute(2 | NESTED, content))
