"""CEL's ip and cidr: addresses and networks as Go's net/netip reads them, without zones and mapped addresses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
    ip_address,
    ip_interface,
)
from typing import Any, Final, TypeAlias

from volcano.api.cel.values import Function, kind_of, made, succeeds, text_of

IP: Final = "net.IP"
CIDR: Final = "net.CIDR"
MAX_QUOTED_CHARACTERS: Final = 64
_LENGTH: Final = re.compile(r"0|[1-9][0-9]{0,2}", re.ASCII)
_LINK_LOCAL_GROUP: Final = IPv4Network("224.0.0.0/24")
_LINK_LOCAL: Final = (IPv4Network("169.254.0.0/16"), IPv6Network("fe80::/10"))
_BROADCAST: Final = IPv4Address("255.255.255.255")

Address: TypeAlias = IPv4Address | IPv6Address
Interface: TypeAlias = IPv4Interface | IPv6Interface


def parse_ip(text: str) -> Address:
    quoted = text[:MAX_QUOTED_CHARACTERS]
    try:
        found = ip_address(text) if len(text) <= MAX_QUOTED_CHARACTERS else None
    except ValueError:
        found = None
    if found is None:
        raise ValueError(f'IP Address "{quoted}" parse error during conversion from string: unable to parse IP')
    if "%" in text:
        raise ValueError(f'IP address "{quoted}" with zone value is not allowed')
    if isinstance(found, IPv6Address) and found.ipv4_mapped is not None:
        raise ValueError(f'IPv4-mapped IPv6 address "{quoted}" is not allowed')
    return found


def parse_cidr(text: str) -> Interface:
    """An address and the length of its network's prefix; the address may lie inside the network."""
    address, slash, length = text.partition("/")
    problem = "network address parse error during conversion from string"
    if not slash or not _LENGTH.fullmatch(length):
        raise ValueError(f'{problem}: "{text[:MAX_QUOTED_CHARACTERS]}" has no length of a prefix')
    try:
        return ip_interface(f"{parse_ip(address)}/{length}")
    except ValueError as error:
        raise ValueError(f"{problem}: {error}") from None


def _ip(value: Mapping[str, Any]) -> Address:
    return ip_address(text_of(value, IP))


def _cidr(value: Mapping[str, Any]) -> Interface:
    return ip_interface(text_of(value, CIDR))


def _is_canonical(text: str) -> bool:
    return str(parse_ip(text)) == text


def _is_global_unicast(address: Address) -> bool:
    return not (
        address.is_unspecified
        or address.is_loopback
        or address.is_multicast
        or address == _BROADCAST
        or _is_link_local(address)
    )


def _is_link_local(address: Address) -> bool:
    return any(address in network for network in _LINK_LOCAL)


def _is_link_local_group(address: Address) -> bool:
    if isinstance(address, IPv4Address):
        return address in _LINK_LOCAL_GROUP
    return address.packed[0] == 0xFF and address.packed[1] & 0x0F == 0x02


def _family(value: Mapping[str, Any]) -> int:
    return int(_ip(value).version)


def _asked(question: Callable[[Address], bool]) -> Callable[[Mapping[str, Any]], bool]:
    return lambda value: question(_ip(value))


def _contains_ip(value: Mapping[str, Any], other: Mapping[str, Any] | str) -> bool:
    address = parse_ip(other) if isinstance(other, str) else _ip(other)
    network = _cidr(value).network
    return address.version == network.version and address in network


def _contains_cidr(value: Mapping[str, Any], other: Mapping[str, Any] | str) -> bool:
    inner = parse_cidr(other) if isinstance(other, str) else _cidr(other)
    network = _cidr(value).network
    return inner.version == network.version and inner.network.prefixlen >= network.prefixlen and inner.ip in network


def _string(value: Mapping[str, Any]) -> str:
    return text_of(value, kind_of(value, IP, CIDR))


FUNCTIONS: Final[tuple[Function, ...]] = (
    Function("isIP", ("STRING",), "BOOL", succeeds(parse_ip), False),
    Function("ip", ("STRING",), "MAP", lambda text: made(IP, str(parse_ip(text))), False),
    Function("ip.isCanonical", ("STRING",), "BOOL", _is_canonical, False),
    Function("family", ("MAP",), "INT", _family),
    Function("isUnspecified", ("MAP",), "BOOL", _asked(lambda address: address.is_unspecified)),
    Function("isLoopback", ("MAP",), "BOOL", _asked(lambda address: address.is_loopback)),
    Function("isLinkLocalMulticast", ("MAP",), "BOOL", _asked(_is_link_local_group)),
    Function("isLinkLocalUnicast", ("MAP",), "BOOL", _asked(_is_link_local)),
    Function("isGlobalUnicast", ("MAP",), "BOOL", _asked(_is_global_unicast)),
    Function("isCIDR", ("STRING",), "BOOL", succeeds(parse_cidr), False),
    Function("cidr", ("STRING",), "MAP", lambda text: made(CIDR, str(parse_cidr(text))), False),
    Function("containsIP", ("MAP", "MAP"), "BOOL", _contains_ip),
    Function("containsIP", ("MAP", "STRING"), "BOOL", _contains_ip),
    Function("containsCIDR", ("MAP", "MAP"), "BOOL", _contains_cidr),
    Function("containsCIDR", ("MAP", "STRING"), "BOOL", _contains_cidr),
    Function("ip", ("MAP",), "MAP", lambda value: made(IP, str(_cidr(value).ip))),
    Function("masked", ("MAP",), "MAP", lambda value: made(CIDR, str(_cidr(value).network))),
    Function("prefixLength", ("MAP",), "INT", lambda value: _cidr(value).network.prefixlen),
    Function("string", ("MAP",), "STRING", _string, False),
)
