"""Addresses of pods, and those that only mean something on the machine itself."""

from __future__ import annotations

import ipaddress
from typing import Final

POD_LOOPBACKS: Final = ipaddress.IPv4Network("127.64.0.0/10")
"""Where pods that share the machine's network have their addresses."""


def is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


def is_of_the_machine(text: str) -> bool:
    """Whether an address leads to services of the machine, or of its network segment, that are not meant for others."""
    try:
        address = ipaddress.ip_address(text)
    except ValueError:
        return False
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if isinstance(address, ipaddress.IPv4Address) and address in POD_LOOPBACKS:
        return False
    return address.is_loopback or address.is_link_local or address.is_unspecified or address.is_multicast
