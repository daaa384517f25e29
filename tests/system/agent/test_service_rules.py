"""Cluster addresses in the kernel: they lead to endpoints, spread, stay with a client, and refuse without any."""

from __future__ import annotations

import socket
import threading
from typing import Any

import pytest

from tests import needs
from tests.system.agent.network_lab import BRIDGE, TABLE, Lab, attempt, inside
from volcano.embedded.agent.kernel.service_rules import PortTargets, ServedPort, ServiceRules

pytestmark = [pytest.mark.root, needs.NETWORK_NAMESPACES]
WEB = ServedPort("10.96.0.20", 80, "TCP")
NAMES = ServedPort("10.96.0.10", 53, "UDP")
REFUSED = "ConnectionRefusedError"


def serve(lab: Lab, name: str, port: int = 8080) -> tuple[str, int]:
    """A pod that answers every connection with its name and the client's address."""
    address = lab.add_pod(name)
    server = lab.in_pod(name, lambda: socket.create_server(("", port)))

    def answer() -> None:
        while True:
            client, peer = server.accept()
            client.sendall(f"{name} {peer[0]}".encode())
            client.close()

    threading.Thread(target=answer, daemon=True).start()
    return address, port


def ask(lab: Lab, pod: str, port: ServedPort = WEB) -> str:
    def work() -> str:
        with socket.create_connection((port.address, port.port), 5) as client:
            return client.recv(100).decode()

    return lab.in_pod(pod, work)


def rules_with(web: PortTargets | None = None) -> ServiceRules:
    rules = ServiceRules(TABLE, BRIDGE)
    rules.open()
    rules.change({WEB: web})
    return rules


def spread(lab: Lab) -> dict[str, Any]:
    targets = tuple(serve(lab, name) for name in ("one", "two", "three"))
    own = lab.add_pod("client")
    rules_with(PortTargets(targets))
    answers = [ask(lab, "client").split() for _ in range(60)]
    return {"names": sorted({a for a, _ in answers}), "clients": sorted({c for _, c in answers}), "own": own}


def come_and_go(lab: Lab) -> dict[str, Any]:
    one, two = serve(lab, "one"), serve(lab, "two")
    lab.add_pod("client")
    rules = rules_with(PortTargets((one,)))
    seen = [ask(lab, "client").split()[0]]
    rules.change({WEB: PortTargets((two,))})
    seen.append(ask(lab, "client").split()[0])
    rules.change({WEB: PortTargets(())})
    refused = [lab.in_pod("client", lambda: attempt(*WEB[:2])), attempt(*WEB[:2])]
    rules.change({WEB: PortTargets((one,)), NAMES: PortTargets((two,))})
    seen.append(ask(lab, "client").split()[0])
    rules.change({WEB: None, NAMES: None})
    refused.append(lab.in_pod("client", lambda: attempt(*WEB[:2])))
    return {"seen": seen, "refused": refused, "left": lab.left_the_machine()}


def stay_with_a_client(lab: Lab) -> dict[str, Any]:
    targets = tuple(serve(lab, name) for name in ("one", "two", "three", "four"))
    clients = [f"c{number}" for number in range(8)]
    for client in clients:
        lab.add_pod(client)
    rules = rules_with(PortTargets(targets, affinity_seconds=600))
    first = {client: {ask(lab, client).split()[0] for _ in range(6)} for client in clients}
    rules.change({WEB: PortTargets((*targets, serve(lab, "five")), affinity_seconds=600)})
    after = {client: {ask(lab, client).split()[0] for _ in range(6)} for client in clients}
    (gone,) = first["c0"]
    left = tuple(t for t, name in zip(targets, ("one", "two", "three", "four"), strict=True) if name != gone)
    rules.change({WEB: PortTargets(left, affinity_seconds=600)})
    moved = {ask(lab, "c0").split()[0] for _ in range(6)}
    return {"first": {c: sorted(n) for c, n in first.items()}, "after": {c: sorted(n) for c, n in after.items()},
            "gone": gone, "moved": sorted(moved)}  # fmt: skip


def speak_to_itself(lab: Lab) -> str:
    rules_with(PortTargets((serve(lab, "one"),)))
    return ask(lab, "one").split()[0]


def from_the_machine(lab: Lab) -> str:
    rules_with(PortTargets((serve(lab, "one"),)))
    with socket.create_connection(WEB[:2], 5) as client:
        return client.recv(100).decode().split()[0]


def with_many(lab: Lab) -> str:
    rules = rules_with()
    targets = tuple((f"10.64.{n // 250 + 1}.{n % 250 + 1}", 80) for n in range(100))
    ports = {ServedPort(f"10.96.{n // 250 + 1}.{n % 250 + 1}", 80, "TCP"): PortTargets(targets) for n in range(100)}
    rules.change(ports | {WEB: PortTargets((serve(lab, "one"),))})
    lab.add_pod("client")
    return ask(lab, "client").split()[0]


def test_connections_spread_over_the_endpoints_and_keep_the_clients_address():
    found = inside(spread)

    assert found["names"] == ["one", "three", "two"]
    assert found["clients"] == [found["own"]]


def test_endpoints_come_and_go_and_without_any_connections_are_refused():
    found = inside(come_and_go)

    assert found == {"seen": ["one", "two", "one"], "refused": [REFUSED] * 3, "left": 0}


def test_with_affinity_a_client_keeps_its_endpoint_until_that_is_gone():
    found = inside(stay_with_a_client)

    assert all(len(names) == 1 for names in found["first"].values())
    assert found["after"] == found["first"]
    assert len({names[0] for names in found["first"].values()}) > 1
    assert len(found["moved"]) == 1 and found["moved"] != [found["gone"]]


def test_a_pod_reaches_itself_through_its_service():
    assert inside(speak_to_itself) == "one"


def test_the_machine_itself_reaches_services():
    assert inside(from_the_machine) == "one"


def test_ten_thousand_targets_are_written_at_once():
    assert inside(with_many) == "one"
