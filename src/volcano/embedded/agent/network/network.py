"""The pod network: addresses, and either a bridge with a virtual wire to each pod or the machine's own loopback.

`choose_network` selects one and returns the reason. The wires are made by the supervisor, which owns the namespaces.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import ipaddress
import json
import logging
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, Protocol

from volcano.api.pods.addresses import POD_LOOPBACKS
from volcano.api.service_network import SERVICE_RANGE
from volcano.embedded.agent.containers.process_settings import PodNetwork
from volcano.embedded.agent.kernel import ip_forwarding, linux
from volcano.embedded.agent.kernel.netlink import Netlink
from volcano.embedded.agent.kernel.pod_table import make_pod_table, remove_table
from volcano.embedded.agent.kernel.service_rules import ServiceRules
from volcano.embedded.agent.processes.supervisor_protocol import BRIDGE_PREFIX, Wire

log = logging.getLogger(__name__)
ROUTES_FILE: Final = Path("/proc/net/route")
FIRST_SUBNET, SUBNET_COUNT = 64, 128  # 10.64.0.0/16 to 10.191.0.0/16, without the range of services
RESERVED_ADDRESS_COUNT: Final = 10  # at the start of a network, never given to pods
MAX_MTU_BYTES: Final = 1500
POD_PREFIX_LENGTH: Final = 32
"""Pods send everything through the gateway, packets to each other too: answers of services pass where requests did."""


class NetworkUnavailable(RuntimeError):
    """The requested network cannot be made on this machine; the message has the reason."""


class Addresses:
    """Allocates addresses of a network; a released address is reused last."""

    def __init__(self, network: ipaddress.IPv4Network) -> None:
        self._network = network
        self._used: dict[str, str] = {}  # pod → address
        self._taken: set[str] = set()
        self._next = RESERVED_ADDRESS_COUNT

    def claim(self, pod: str, address: str) -> None:
        """Mark the address of a pod that already has one as used."""
        self._used[pod] = address
        self._taken.add(address)

    def take(self, pod: str) -> str:
        if pod in self._used:
            return self._used[pod]
        size = self._network.num_addresses - 1
        for _ in range(size):
            self._next = self._next + 1 if self._next + 1 < size else RESERVED_ADDRESS_COUNT
            address = str(self._network[self._next])
            if address not in self._taken:
                self.claim(pod, address)
                return address
        raise NetworkUnavailable(f"all addresses of {self._network} are in use")

    def give_back(self, pod: str) -> None:
        address = self._used.pop(pod, None)
        if address is not None:
            self._taken.discard(address)


class Network(Protocol):
    """A kind of pod network."""

    name: str
    addresses: Addresses
    api_address: str  # where pods reach the API server on this machine's loopback, through a forwarder

    def open(self) -> None: ...

    def close(self) -> None: ...

    def wire(self, pod: str) -> Wire | None: ...


class HostNetwork:
    """The machine's own network; each pod has its own loopback address to listen on."""

    name = "host"
    api_address = "127.0.0.1"

    def __init__(self) -> None:
        self.addresses = Addresses(POD_LOOPBACKS)

    def open(self) -> None:
        return None

    def close(self) -> None:
        return None

    def wire(self, pod: str) -> Wire | None:
        return None


class BridgedNetwork:
    """A bridge on this machine; pods reach each other directly and the outside through NAT."""

    name = "isolated"

    def __init__(self, directory: Path, *, routes: Iterable[ipaddress.IPv4Network] = ()) -> None:
        digest = hashlib.sha256(str(directory).encode()).hexdigest()
        self._bridge = f"{BRIDGE_PREFIX}{digest[:8]}"
        self._table = f"volcano-{digest[:8]}"
        self._state = directory / "network.json"
        known = self._read_state()
        self.subnet = _subnet(known.get("subnet", ""), int(digest[:8], 16), list(routes))
        self.addresses = Addresses(self.subnet)
        self.api_address = str(self.subnet[1])
        self._mtu = _smallest_mtu()
        self.rules = ServiceRules(self._table, self._bridge)

    def open(self) -> None:
        """Make the bridge and the NAT rule; both may exist from before."""
        try:
            self._make_bridge()
            self._state.write_text(json.dumps({"subnet": str(self.subnet)}))
            ip_forwarding.turn_on()
            make_pod_table(self._table, self.subnet, self._bridge, SERVICE_RANGE)
            self.rules.open()
        except OSError as error:
            self.close()
            raise NetworkUnavailable(f"a bridge for pods cannot be made: {error}") from error

    def close(self) -> None:
        """Remove bridge, NAT rule and state file; other systems on this machine keep the forwarding they need."""
        with contextlib.suppress(OSError), Netlink() as kernel:
            kernel.remove(self._bridge)
        with contextlib.suppress(OSError):
            remove_table(self._table)
        with contextlib.suppress(OSError):
            ip_forwarding.turn_off_if_last(BRIDGE_PREFIX)
        with contextlib.suppress(OSError):
            self._state.unlink(missing_ok=True)

    def wire(self, pod: str) -> Wire | None:
        digest = hashlib.sha256(pod.encode()).hexdigest()
        return Wire(
            bridge=self._bridge,
            device=f"vp{digest[:10]}",
            address=self.addresses.take(pod),
            prefix=POD_PREFIX_LENGTH,
            gateway=self.api_address,
            mtu=self._mtu,
        )

    def _make_bridge(self) -> None:
        with Netlink() as kernel:
            with _ignoring_existing():
                kernel.add_bridge(self._bridge)
            with _ignoring_existing():
                kernel.add_address(self._bridge, self.api_address, self.subnet.prefixlen)
            kernel.set_up(self._bridge)

    def _read_state(self) -> dict[str, str]:
        try:
            known = json.loads(self._state.read_text())
        except (OSError, ValueError):
            return {}
        return {str(name): str(value) for name, value in known.items()} if isinstance(known, dict) else {}


@contextlib.contextmanager
def _ignoring_existing() -> Iterator[None]:
    try:
        yield
    except OSError as error:
        if error.errno != errno.EEXIST:
            raise


def choose_network(wanted: PodNetwork, directory: Path, *, tier: str) -> tuple[Network, str]:
    """The opened network, and a sentence with the choice and its reason."""
    if wanted == "host":
        return HostNetwork(), "pods share this machine's network, as requested"
    why = ""
    if tier != "root":
        why = "only root can connect pods of their own networks to the outside"
    elif not linux.is_available(linux.NEWNET):
        why = "this machine does not allow network namespaces"
    else:
        network = BridgedNetwork(directory, routes=present_networks())
        try:
            network.open()
        except NetworkUnavailable as error:
            why = str(error)
        else:
            return network, f"each pod has a network of its own ({network.subnet}), the outside is reachable by NAT"
    if wanted == "isolated":
        raise NetworkUnavailable(f"--pod-network isolated is not possible: {why}")
    return HostNetwork(), f"pods share this machine's network: {why}"


def present_networks() -> list[ipaddress.IPv4Network]:
    """Networks that this machine has routes to; the pod network must not overlap any of them."""
    found = []
    try:
        lines = ROUTES_FILE.read_text().splitlines()[1:]
    except OSError:
        return []
    for line in lines:
        fields = line.split()
        destination, mask = (int.from_bytes(bytes.fromhex(fields[i]), "little") for i in (1, 7))
        if mask:
            found.append(ipaddress.ip_network((destination, mask.bit_count()), strict=False))
    return [each for each in found if isinstance(each, ipaddress.IPv4Network)]


def _subnet(known: str, seed: int, routes: list[ipaddress.IPv4Network]) -> ipaddress.IPv4Network:
    if known:
        with contextlib.suppress(ValueError):
            kept = ipaddress.IPv4Network(known)
            if not kept.overlaps(SERVICE_RANGE):
                return kept
    for offset in range(SUBNET_COUNT):
        candidate = ipaddress.IPv4Network(f"10.{FIRST_SUBNET + (seed + offset) % SUBNET_COUNT}.0.0/16")
        if not any(candidate.overlaps(other) for other in (SERVICE_RANGE, *routes)):
            return candidate
    raise NetworkUnavailable("every network from 10.64.0.0/16 to 10.191.0.0/16 is already in use")


def _smallest_mtu() -> int:
    """The smallest MTU of the active devices: packets of pods must fit each of them."""
    sizes = []
    for device in Path("/sys/class/net").glob("*"):
        with contextlib.suppress(OSError, ValueError):
            if device.name != "lo" and (device / "operstate").read_text().strip() == "up":
                sizes.append(int((device / "mtu").read_text()))
    return min([MAX_MTU_BYTES, *sizes])
