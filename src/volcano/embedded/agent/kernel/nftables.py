"""Messages of nftables: transactions, chains, sets and the expressions of rules, for the family `ip`.

What the tables contain is in pod_table and service_rules. Standard library only.
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
NEW_TABLE, DELETE_TABLE, NEW_CHAIN, DELETE_CHAIN, NEW_RULE, DELETE_RULE = 0, 2, 3, 5, 6, 8
NEW_SET, DELETE_SET, NEW_ELEMENT, DELETE_ELEMENT = 9, 11, 12, 14
APPEND: Final = 0x800
NESTED: Final = 0x8000

PREROUTING, INPUT, FORWARD, OUTPUT, POSTROUTING = 0, 1, 2, 3, 4
DESTINATION_NAT_PRIORITY, FILTER_PRIORITY, SOURCE_NAT_PRIORITY = -100, 0, 100

REGISTERS: Final = (8, 9, 10, 11)
"""Registers of four bytes each; fields that are looked up together lie in neighbouring ones."""
EQUAL, NOT_EQUAL = 0, 1
IN_DEVICE, OUT_DEVICE, PROTOCOL = 6, 7, 16
NETWORK_HEADER, TRANSPORT_HEADER = 1, 2
SOURCE_OFFSET, DESTINATION_OFFSET, DESTINATION_PORT_OFFSET = 12, 16, 2
DEVICE_NAME_BYTES: Final = 16
PORT_UNREACHABLE: Final = 3
IS_MAP, HAS_TIMEOUT, IS_UPDATED_BY_RULES = 0x8, 0x10, 0x20
VERDICTS: Final = 0xFFFFFF00
GOTO: Final = -4
DESTINATION: Final = 1
MAX_REMEMBERED_KEYS: Final = 65536
"""The size of a set that rules add to."""
RANDOM: Final = 1
UPDATE: Final = 1

Message = tuple[int, bytes, int]  # type, body, flags


def transact(messages: list[Message]) -> None:
    """Carry out all messages, or none and raise OSError. Only the last is acknowledged: errors are always reported."""
    edge = struct.pack(">BBH", socket.AF_UNSPEC, 0, 10)
    header = struct.pack(">BBH", socket.AF_INET, 0, 0)
    last, content, last_flags = messages[-1]
    with Netlink(NETFILTER) as kernel:
        kernel.batch(
            [
                (BATCH_BEGIN, edge, 0),
                *((SUBSYSTEM | message, header + body, flags) for message, body, flags in messages[:-1]),
                (SUBSYSTEM | last, header + content, last_flags | ACK),
                (BATCH_END, edge, 0),
            ]
        )


# -- tables, chains, rules ------------------------------------------------------------------------------------
def empty_table(table: str) -> list[Message]:
    """Made first, so that the deletion never fails; then made again, empty."""
    return [*no_table(table), (NEW_TABLE, attribute(1, text(table)), CREATE)]


def no_table(table: str) -> list[Message]:
    named = attribute(1, text(table))
    return [(NEW_TABLE, named, CREATE), (DELETE_TABLE, named, 0)]


def base_chain(table: str, name: str, kind: str, hook: int, priority: int) -> Message:
    """A chain that the kernel enters at a hook; `kind` is nat or filter."""
    place = attribute(1, number(hook)) + attribute(2, struct.pack(">i", priority))
    body = (
        attribute(1, text(table)) + attribute(3, text(name)) + attribute(4 | NESTED, place) + attribute(7, text(kind))
    )
    return NEW_CHAIN, body, CREATE


def chain(table: str, name: str) -> Message:
    """A chain that rules lead to; making one that exists changes nothing."""
    return NEW_CHAIN, attribute(1, text(table)) + attribute(3, text(name)), CREATE


def no_chain(table: str, name: str) -> Message:
    return DELETE_CHAIN, attribute(1, text(table)) + attribute(3, text(name)), 0


def no_rules(table: str, name: str) -> Message:
    """Delete every rule of a chain."""
    return DELETE_RULE, attribute(1, text(table)) + attribute(2, text(name)), 0


def rule(table: str, name: str, *expressions: bytes) -> Message:
    """Append a rule to a chain."""
    body = attribute(1, text(table)) + attribute(2, text(name)) + attribute(4 | NESTED, b"".join(expressions))
    return NEW_RULE, body, CREATE | APPEND


# -- sets -----------------------------------------------------------------------------------------------------
def make_set(
    table: str, name: str, identity: int, *, key_bytes: int, flags: int = 0, timeout_seconds: int = 0
) -> Message:
    """A set, or a map from keys to chains. `identity` is unique within the transaction."""
    body = attribute(1, text(table)) + attribute(2, text(name)) + attribute(3, number(flags))
    body += attribute(4, number(0)) + attribute(5, number(key_bytes))
    if flags & IS_MAP:
        body += attribute(6, number(VERDICTS)) + attribute(7, number(0))
    if flags & IS_UPDATED_BY_RULES:
        body += attribute(9 | NESTED, attribute(1, number(MAX_REMEMBERED_KEYS)))
    body += attribute(10, number(identity))
    if timeout_seconds:
        body += attribute(11, milliseconds(timeout_seconds))
    return NEW_SET, body, CREATE


def no_set(table: str, name: str) -> Message:
    return DELETE_SET, attribute(1, text(table)) + attribute(2, text(name)), 0


def element(table: str, name: str, key: bytes, *, leads_to: str = "", is_removed: bool = False) -> Message:
    """Add an element to a set, or remove it; in a map it leads to a chain."""
    content = attribute(1 | NESTED, attribute(1, key))
    if leads_to:
        verdict = attribute(1, struct.pack(">i", GOTO)) + attribute(2, text(leads_to))
        content += attribute(2 | NESTED, attribute(2 | NESTED, verdict))
    body = attribute(1, text(table)) + attribute(2, text(name))
    body += attribute(3 | NESTED, attribute(1 | NESTED, content))
    return (DELETE_ELEMENT, body, 0) if is_removed else (NEW_ELEMENT, body, CREATE)


# -- expressions ----------------------------------------------------------------------------------------------
def payload(header: int, offset: int, length: int, register: int = REGISTERS[0]) -> bytes:
    """Load a field of the packet."""
    values = ((1, register), (2, header), (3, offset), (4, length))
    return expression("payload", b"".join(attribute(name, number(value)) for name, value in values))


def source(register: int = REGISTERS[0]) -> bytes:
    return payload(NETWORK_HEADER, SOURCE_OFFSET, 4, register)


def destination(register: int = REGISTERS[0]) -> bytes:
    return payload(NETWORK_HEADER, DESTINATION_OFFSET, 4, register)


def destination_port(register: int) -> bytes:
    return payload(TRANSPORT_HEADER, DESTINATION_PORT_OFFSET, 2, register)


def about(key: int, register: int = REGISTERS[0]) -> bytes:
    """Load what the kernel knows of the packet: a device, the protocol."""
    return expression("meta", attribute(1, number(register)) + attribute(2, number(key)))


def is_within(network: ipaddress.IPv4Network) -> bytes:
    """Whether the loaded address is in the network."""
    first = number(REGISTERS[0])
    masked = attribute(1, first) + attribute(2, first) + attribute(3, number(4))
    masked += attribute(4 | NESTED, attribute(1, network.netmask.packed)) + attribute(
        5 | NESTED, attribute(1, bytes(4))
    )
    return expression("bitwise", masked) + compare(EQUAL, network.network_address.packed)


def device_is(key: int, name: str, *, negated: bool = False) -> bytes:
    return about(key, 1) + compare(NOT_EQUAL if negated else EQUAL, name.encode().ljust(DEVICE_NAME_BYTES, b"\0"), 1)


def compare(operator: int, value: bytes, register: int = REGISTERS[0]) -> bytes:
    content = attribute(1, number(register)) + attribute(2, number(operator))
    return expression("cmp", content + attribute(3 | NESTED, attribute(1, value)))


def is_in_set(name: str) -> bytes:
    return expression("lookup", attribute(1, text(name)) + attribute(2, number(REGISTERS[0])))


def go_by_map(name: str) -> bytes:
    """Continue in the chain that the map has for the loaded key."""
    content = attribute(1, text(name)) + attribute(2, number(REGISTERS[0])) + attribute(3, number(0))
    return expression("lookup", content)


def one_in(count: int) -> bytes:
    """Whether a random choice among so many is the first."""
    content = attribute(1, number(REGISTERS[0])) + attribute(2, number(count)) + attribute(3, number(RANDOM))
    return expression("numgen", content) + compare(EQUAL, bytes(4))


def remember(name: str, timeout_seconds: int) -> bytes:
    """Put the loaded key into a set, or renew it there."""
    content = attribute(1, text(name)) + attribute(3, number(UPDATE)) + attribute(4, number(REGISTERS[0]))
    return expression("dynset", content + attribute(6, milliseconds(timeout_seconds)))


def send_to(address: str, port: int) -> bytes:
    """Change the packet's destination."""
    host, service = REGISTERS[0], REGISTERS[1]
    nat = attribute(1, number(DESTINATION)) + attribute(2, number(socket.AF_INET))
    nat += attribute(3, number(host)) + attribute(5, number(service))
    return load(socket.inet_aton(address), host) + load(struct.pack(">H", port), service) + expression("nat", nat)


def load(value: bytes, register: int) -> bytes:
    return expression("immediate", attribute(1, number(register)) + attribute(2 | NESTED, attribute(1, value)))


def reject() -> bytes:
    """Refuse with an ICMP message, which a connecting socket sees as `connection refused`."""
    return expression("reject", attribute(1, number(0)) + attribute(2, struct.pack("B", PORT_UNREACHABLE)))


def masquerade() -> bytes:
    return expression("masq", b"")


def expression(name: str, content: bytes) -> bytes:
    return attribute(1 | NESTED, attribute(1, text(name)) + attribute(2 | NESTED, content))


def number(value: int) -> bytes:
    return struct.pack(">I", value)


def milliseconds(seconds: int) -> bytes:
    return struct.pack(">Q", seconds * 1000)
