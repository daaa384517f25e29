"""A machine's network in a namespace that the test makes: a bridge with pods, and an uplink that leads nowhere.

`inside` runs a function of a test module in a process of its own, in new network, IPC and mount namespaces; nothing
that it sends can reach the real machine or its network.
"""

from __future__ import annotations

import ipaddress
import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any, TypeVar

from volcano.api.service_network import SERVICE_RANGE
from volcano.embedded.agent.kernel import linux
from volcano.embedded.agent.kernel.netlink import Netlink
from volcano.embedded.agent.kernel.pod_table import make_pod_table
from volcano.embedded.agent.processes.pod_namespaces import PodNamespaces
from volcano.embedded.agent.processes.supervisor_protocol import Wire

T = TypeVar("T")
SUBNET = ipaddress.IPv4Network("10.64.0.0/16")
GATEWAY = "10.64.0.1"
BRIDGE, UPLINK, TABLE = "vctest", "uplink", "volcano-test"
UPLINK_ADDRESS, OUTSIDE = "192.0.2.1", "192.0.2.2"
TIMEOUT_SECONDS = 60
START = "import importlib, json, sys; from tests.system.agent import network_lab; network_lab.main(sys.argv[1], sys.argv[2])"


def inside(function: Callable[[Lab], Any]) -> Any:
    """What the function returns (as JSON) when it runs with a lab in namespaces of its own."""
    argv = [sys.executable, "-c", START, function.__module__, function.__name__]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=TIMEOUT_SECONDS, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def main(module: str, function: str) -> None:
    import importlib

    linux.unshare(linux.NEWNET | linux.NEWIPC | linux.NEWNS)
    print(json.dumps(getattr(importlib.import_module(module), function)(Lab())))


class Lab:
    """The machine: a bridge with pods, rules as the agent makes them, and an uplink whose packets are counted."""

    def __init__(self) -> None:
        with open("/proc/sys/net/ipv6/conf/default/disable_ipv6", "w") as file:
            file.write("1")  # new devices announce themselves otherwise
        self.pods = PodNamespaces()
        outside = self._make_outside()
        with Netlink() as kernel:
            kernel.set_up("lo")
            kernel.add_pair(UPLINK, "eth0", peer_namespace=outside)
            kernel.add_address(UPLINK, UPLINK_ADDRESS, 24)
            kernel.add_default_route(OUTSIDE, UPLINK)
            kernel.add_bridge(BRIDGE)
            kernel.add_address(BRIDGE, GATEWAY, SUBNET.prefixlen)
            kernel.set_up(BRIDGE)
        with open("/proc/sys/net/ipv4/ip_forward", "w") as file:
            file.write("1")
        self.addresses: dict[str, str] = {}
        self._set_up_outside(outside)
        make_pod_table(TABLE, SUBNET, BRIDGE, SERVICE_RANGE)

    def _make_outside(self) -> int:
        linux.unshare(linux.NEWNET)
        try:
            return os.open("/proc/self/ns/net", os.O_RDONLY)
        finally:
            linux.setns(self.pods._own["net"], linux.NEWNET)

    def _set_up_outside(self, outside: int) -> None:
        linux.setns(outside, linux.NEWNET)
        try:
            with Netlink() as kernel:
                kernel.add_address("eth0", OUTSIDE, 24)
                kernel.set_up("eth0")
        finally:
            linux.setns(self.pods._own["net"], linux.NEWNET)

    def add_pod(self, name: str) -> str:
        address = str(SUBNET[10 + len(self.addresses)])
        wire = Wire(bridge=BRIDGE, device=f"v{name}", address=address, prefix=32, gateway=GATEWAY, mtu=1500)
        self.addresses[name] = self.pods.open(name, wire)
        return address

    def in_pod(self, name: str, work: Callable[[], T]) -> T:
        """Run something in a pod's network; sockets that it makes stay there."""
        linux.setns(self.pods.of(name)["net"], linux.NEWNET)
        try:
            return work()
        finally:
            linux.setns(self.pods._own["net"], linux.NEWNET)

    def left_the_machine(self) -> int:
        """Packets that were sent through the uplink, ARP included."""
        with open("/proc/thread-self/net/dev") as file:
            line = next(line for line in file if line.strip().startswith(f"{UPLINK}:"))
        return int(line.partition(":")[2].split()[9])


def attempt(address: str, port: int, *, kind: int = socket.SOCK_STREAM) -> str:
    """What connecting ends with: connected, or the name of the error."""
    with socket.socket(socket.AF_INET, kind) as made:
        made.settimeout(5)
        try:
            made.connect((address, port))
            if kind == socket.SOCK_DGRAM:
                made.send(b"?")
                made.recv(100)
        except OSError as error:
            return type(error).__name__
    return "connected"
