"""The network and IPC namespaces that the containers of a pod share: made, wired to the bridge, entered and closed.

A namespace is made by entering a new one and returning, so the supervisor that uses this must have a single thread.
Standard library only.
"""

from __future__ import annotations

import errno
import os
import socket

from volcano.embedded.agent.kernel import linux
from volcano.embedded.agent.kernel.netlink import Netlink
from volcano.embedded.agent.processes.supervisor_protocol import BRIDGE_PREFIX, Wire

KINDS = {"net": linux.NEWNET, "ipc": linux.NEWIPC}


class PodNamespaces:
    """Descriptors of the namespaces, by pod UID. A namespace lasts as long as a descriptor or a process has it."""

    def __init__(self) -> None:
        self._own = {name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in KINDS}
        self._pods: dict[str, dict[str, int]] = {}
        self._bridges: set[str] = set()
        self.addresses: dict[str, str] = {}

    def of(self, pod: str) -> dict[str, int]:
        return self._pods.get(pod, {})

    def open(self, pod: str, wire: Wire | None) -> str:
        """Make the pod's namespaces unless they exist; returns its address, empty without a network of its own."""
        if pod in self._pods:
            return self.addresses.get(pod, "")
        names = ("net", "ipc") if wire is not None else ("ipc",)
        linux.unshare(linux.NEWIPC | (linux.NEWNET if wire is not None else 0))
        try:
            opened = {name: os.open(f"/proc/self/ns/{name}", os.O_RDONLY) for name in names}
        finally:
            self._return_from(names)
        self._pods[pod] = opened
        if wire is not None:
            try:
                self._connect(opened["net"], wire)
            except OSError:
                self.close(pod)
                raise
            self.addresses[pod] = wire["address"]
            self._bridges.add(wire["bridge"])
        return self.addresses.get(pod, "")

    def make_socket(self, pod: str, family: int) -> socket.socket:
        """An unconnected socket in a pod's network; it stays in that network wherever it is used."""
        namespace = self.of(pod).get("net")
        if namespace is None:
            raise OSError(errno.ENOENT, f"pod {pod} has no network of its own")
        linux.setns(namespace, linux.NEWNET)
        try:
            return socket.socket(family, socket.SOCK_STREAM)
        finally:
            self._return_from(("net",))

    def close(self, pod: str) -> None:
        for descriptor in self._pods.pop(pod, {}).values():
            os.close(descriptor)
        self.addresses.pop(pod, None)

    def close_all(self) -> None:
        """Close all namespaces and remove the bridges, which an agent that was killed could not remove."""
        for pod in tuple(self._pods):
            self.close(pod)
        if not self._bridges:
            return
        from volcano.embedded.agent.kernel import ip_forwarding
        from volcano.embedded.agent.kernel.pod_table import remove_table

        for bridge in self._bridges:
            try:
                with Netlink() as kernel:
                    kernel.remove(bridge)
                remove_table(f"volcano-{bridge.removeprefix(BRIDGE_PREFIX)}")
            except OSError:
                pass  # the agent has already removed it
        try:
            ip_forwarding.turn_off_if_last(BRIDGE_PREFIX)
        except OSError:
            pass  # a machine on which it cannot be turned off

    def _connect(self, namespace: int, wire: Wire) -> None:
        """Make a wire from the bridge into the pod's network, and set its address and route."""
        with Netlink() as kernel:
            kernel.add_pair(wire["device"], "eth0", peer_namespace=namespace, master=wire["bridge"], mtu=wire["mtu"])
            kernel.allow_hairpin(wire["device"])
        linux.setns(namespace, linux.NEWNET)
        try:
            # Root of the pod's own user namespace could not bind low ports otherwise.
            _set("ip_unprivileged_port_start", "0")
            # A redirect would lead packets past the gateway, which gives the packets of services their addresses.
            _set("conf/all/accept_redirects", "0")
            _set("conf/eth0/accept_redirects", "0")
            with Netlink() as kernel:
                kernel.set_up("lo")
                kernel.add_address("eth0", wire["address"], wire["prefix"])
                kernel.set_up("eth0")
                kernel.add_default_route(wire["gateway"], "eth0")
        finally:
            self._return_from(("net",))

    def _return_from(self, names: tuple[str, ...]) -> None:
        for name in names:
            linux.setns(self._own[name], KINDS[name])


def _set(name: str, value: str) -> None:
    with open(f"/proc/sys/net/ipv4/{name}", "w") as file:
        file.write(value)
