"""Network devices, addresses and routes through rtnetlink, so that no external program is needed.

Each call is one message and its acknowledgement; an error is an OSError.
"""

from __future__ import annotations

import os
import socket
import struct
from typing import Final

NEWLINK, DELLINK, SETLINK = 16, 17, 19
NEWADDR, NEWROUTE = 20, 24
REQUEST, ACK, EXCLUSIVE, CREATE = 1, 4, 0x200, 0x400
ERROR, DONE = 2, 3
UP: Final = 1

IFNAME, LINK, MASTER, LINKINFO, NET_NS_FD, MTU, ADDRESS = 3, 5, 10, 18, 28, 4, 1
INFO_KIND, INFO_DATA, VETH_PEER = 1, 2, 1
ADDRESS_ADDRESS, ADDRESS_LOCAL = 1, 2
ROUTE_GATEWAY, ROUTE_OIF = 5, 4
ROUTE_IS_ON_LINK: Final = 4
PORT_INFO, PORT_HAIRPIN = 12, 4
SEND_BUFFER_FORCED: Final = 32  # SO_SNDBUFFORCE, which the socket module does not name


class Netlink:
    """A socket to the kernel in the network namespace it was opened in."""

    def __init__(self, protocol: int = socket.NETLINK_ROUTE) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, protocol)
        self._socket.bind((0, 0))
        self._sequence = 0

    def close(self) -> None:
        self._socket.close()

    def __enter__(self) -> Netlink:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- devices ----------------------------------------------------------------------------------------------
    def add_bridge(self, name: str) -> None:
        self._link(attribute(IFNAME, text(name)) + kind("bridge"))

    def add_pair(self, name: str, peer: str, *, peer_namespace: int, master: str = "", mtu: int = 0) -> None:
        """A veth pair: one end here (on a bridge), the other in the network namespace of a descriptor."""
        size = attribute(MTU, struct.pack("=I", mtu)) if mtu else b""
        other = _link_header() + attribute(IFNAME, text(peer)) + size
        other += attribute(NET_NS_FD, struct.pack("=I", peer_namespace))
        here = _link_header(UP) + attribute(IFNAME, text(name)) + size
        if master:
            here += attribute(MASTER, struct.pack("=I", socket.if_nametoindex(master)))
        self.send(NEWLINK, here + kind("veth", attribute(VETH_PEER, other)), CREATE | EXCLUSIVE)

    def remove(self, name: str) -> None:
        self.send(DELLINK, _link_header(index=socket.if_nametoindex(name)))

    def set_up(self, name: str) -> None:
        self.send(NEWLINK, _link_header(UP, socket.if_nametoindex(name)))

    def allow_hairpin(self, name: str) -> None:
        """Let the bridge send a packet back through the port it came from: a pod may be its own service's endpoint."""
        header = struct.pack("=BBHiII", socket.AF_BRIDGE, 0, 0, socket.if_nametoindex(name), 0, 0)
        self.send(SETLINK, header + attribute(PORT_INFO | 0x8000, attribute(PORT_HAIRPIN, b"\1")))

    def _link(self, attributes: bytes) -> None:
        self.send(NEWLINK, _link_header(UP) + attributes, CREATE | EXCLUSIVE)

    # -- addresses --------------------------------------------------------------------------------------------
    def add_address(self, name: str, address: str, prefix: int) -> None:
        packed = socket.inet_aton(address)
        header = struct.pack("=BBBBI", socket.AF_INET, prefix, 0, 0, socket.if_nametoindex(name))
        body = header + attribute(ADDRESS_LOCAL, packed) + attribute(ADDRESS_ADDRESS, packed)
        self.send(NEWADDR, body, CREATE | EXCLUSIVE)

    def add_default_route(self, gateway: str, name: str) -> None:
        """The gateway is reached through the device, even if its address is in no network of the device."""
        header = struct.pack("=BBBBBBBBI", socket.AF_INET, 0, 0, 0, 254, 3, 0, 1, ROUTE_IS_ON_LINK)
        device = attribute(ROUTE_OIF, struct.pack("=I", socket.if_nametoindex(name)))
        self.send(NEWROUTE, header + attribute(ROUTE_GATEWAY, socket.inet_aton(gateway)) + device, CREATE | EXCLUSIVE)

    def send(self, message: int, body: bytes, flags: int = 0) -> None:
        self.batch([(message, body, flags)])

    def batch(self, messages: list[tuple[int, bytes, int]]) -> None:
        """Send several messages at once; the first error is raised after all were acknowledged."""
        sent, unacknowledged = b"", set()
        for message, body, flags in messages:
            self._sequence += 1
            flags |= REQUEST
            if flags & ACK or len(messages) == 1:
                flags |= ACK
                unacknowledged.add(self._sequence)
            sent += struct.pack("=IHHII", 16 + len(body), message, flags, self._sequence, 0) + body
        if len(sent) > self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) // 2:
            self._socket.setsockopt(socket.SOL_SOCKET, SEND_BUFFER_FORCED, 2 * len(sent))
        self._socket.send(sent)
        error: OSError | None = None
        while unacknowledged:
            received = self._socket.recv(65536)
            while received:
                length, kind_, _, sequence, _ = struct.unpack_from("=IHHII", received)
                if kind_ == ERROR:
                    code = struct.unpack_from("=i", received, 16)[0]
                    unacknowledged.discard(sequence)
                    if code and error is None:
                        error = OSError(-code, f"netlink: {os.strerror(-code)}")
                        if len(messages) > 1:
                            unacknowledged.clear()
                received = received[(length + 3) & ~3 :]
        if error is not None:
            raise error


def attribute(number: int, value: bytes) -> bytes:
    length = 4 + len(value)
    return struct.pack("=HH", length, number) + value + b"\0" * (-length % 4)


def text(value: str) -> bytes:
    return value.encode() + b"\0"


def kind(name: str, details: bytes = b"") -> bytes:
    return attribute(
        LINKINFO, attribute(INFO_KIND, name.encode()) + (attribute(INFO_DATA, details) if details else b"")
    )


def _link_header(flags: int = 0, index: int = 0) -> bytes:
    return struct.pack("=BBHiII", socket.AF_UNSPEC, 0, 0, index, flags, flags)
