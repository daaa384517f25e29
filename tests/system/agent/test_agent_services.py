"""Names and addresses of services as pods see them: on networks of their own, and on the machine's."""

from __future__ import annotations

import asyncio
import socket
import sys
from typing import Any

import pytest

from tests import needs
from tests.system.agent.kit import DEADLINE, Machine, a_pod
from volcano.api.core import EndpointSlice, Service
from volcano.api.meta import JSON, Key
from volcano.api.scheme import resource_type

pytestmark = [pytest.mark.root, needs.NETWORK_NAMESPACES]
SLICES, SERVICES = resource_type(EndpointSlice), resource_type(Service)
SERVE = (
    "import socket, sys\n"
    "s = socket.create_server((sys.argv[2] if len(sys.argv) > 2 else '', int(sys.argv[1])))\n"
    "while True:\n"
    "    c, _ = s.accept(); c.sendall(socket.gethostname().encode()); c.close()\n"
)
ASK = (
    "import socket, sys, time\n"
    "for place in sys.argv[1:]:\n"
    "    name, _, port = place.rpartition(':')\n"
    "    for _ in range(400):\n"
    "        try:\n"
    "            c = socket.create_connection((name, int(port)), 5); break\n"
    "        except OSError as error: time.sleep(0.05)\n"
    "    print(name, c.recv(100).decode())\n"
)
RESOLVE = (
    "import socket, sys\n"
    "for name in sys.argv[1:]:\n"
    "    try: found = sorted({i[4][0] for i in socket.getaddrinfo(name, 80, socket.AF_INET)})\n"
    "    except OSError as error: found = [type(error).__name__]\n"
    "    print(name, *found)\n"
)


@pytest.fixture
def pod_network() -> str:
    return "isolated"


def a_service(name: str, *, port: int = 80, target: int = 8080, **spec: Any) -> JSON:
    ports = [{"name": "web", "port": port, "targetPort": target, "protocol": "TCP"}]
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"selector": {"app": name}, "ports": ports, **spec},
    }


def a_slice(service: str, *addresses: str, port: int = 8080, hostnames: tuple[str, ...] = ()) -> JSON:
    endpoints = [{"addresses": [address], "conditions": {"ready": True}} for address in addresses]
    for endpoint, hostname in zip(endpoints, hostnames, strict=False):
        endpoint["hostname"] = hostname
    return {
        "metadata": {"name": service, "namespace": "default", "labels": {"kubernetes.io/service-name": service}},
        "addressType": "IPv4",
        "ports": [{"name": "web", "port": port, "protocol": "TCP"}],
        "endpoints": endpoints,
    }


async def served(machine: Machine, name: str, *command: str, **spec: Any) -> str:
    """A pod that serves; returns its address."""
    await machine.create(a_pod(name, *(command or (sys.executable, "-c", SERVE, "8080")), **spec))
    pod = await machine.until(name, lambda pod: bool(pod["status"].get("podIP")))
    return str(pod["status"]["podIP"])


async def said(machine: Machine, name: str, script: str, *words: str, **spec: Any) -> list[str]:
    await machine.create(a_pod(name, sys.executable, "-c", script, *words, **spec))
    await machine.finished(name)
    return (await machine.output(name)).splitlines()


async def test_a_service_is_found_by_all_its_names_and_leads_to_its_pod(machine):
    address = await served(machine, "web-0")
    await machine.client.create(SERVICES, a_service("web"))
    await machine.client.create(SLICES, a_slice("web", address))

    names = ["web", "web.default", "web.default.svc", "web.default.svc.cluster.local"]
    lines = await said(machine, "asker", ASK, *(f"{name}:80" for name in names))

    assert lines == [f"{name} web-0" for name in names]


async def test_a_headless_service_gives_the_addresses_and_host_names_of_its_pods(machine):
    await machine.client.create(SERVICES, a_service("db", clusterIP="None"))
    await machine.client.create(SLICES, a_slice("db", "10.64.9.1", "10.64.9.2", hostnames=("db-0", "db-1")))

    lines = await said(machine, "asker", RESOLVE, "db", "db-0.db", "db-1.db.default.svc.cluster.local", "db-2.db")

    assert lines == [
        "db 10.64.9.1 10.64.9.2",
        "db-0.db 10.64.9.1",
        "db-1.db.default.svc.cluster.local 10.64.9.2",
        "db-2.db gaierror",
    ]


async def test_changed_endpoints_are_followed_and_without_any_connections_are_refused(machine):
    one, two = await served(machine, "one"), await served(machine, "two")
    await machine.client.create(SERVICES, a_service("web"))
    await machine.client.create(SLICES, a_slice("web", one))
    assert await said(machine, "first", ASK, "web:80") == ["web one"]

    await machine.client.patch(SLICES, Key("default", "web"), {"endpoints": a_slice("web", two)["endpoints"]})
    until_two = (
        "import socket, time\n"
        "while socket.create_connection(('web', 80), 5).recv(9) != b'two': time.sleep(0.02)\n"
        "print('two')\n"
    )
    assert await said(machine, "second", until_two) == ["two"]

    await machine.client.patch(SLICES, Key("default", "web"), {"endpoints": []})
    until_refused = (
        "import socket, time\n"
        "while True:\n"
        "    try: socket.create_connection(('web', 80), 5)\n"
        "    except ConnectionRefusedError: break\n"
        "    time.sleep(0.02)\n"
        "print('refused')\n"
    )
    assert await said(machine, "third", until_refused) == ["refused"]


async def test_names_outside_are_asked_for_at_the_machines_name_server(machine):
    class Upstream(asyncio.DatagramProtocol):
        def connection_made(self, transport: Any) -> None:
            self.transport = transport

        def datagram_received(self, data: bytes, address: Any) -> None:
            asked.append(data)
            question = data[12 : data.index(0, 12) + 5]
            found = b"\xc0\x0c\x00\x01\x00\x01\x00\x00\x00\x05\x00\x04" + socket.inet_aton("192.0.2.77")
            is_address = question[-3] == 1
            self.transport.sendto(
                data[:2] + b"\x81\x80\x00\x01" + (b"\x00\x01" if is_address else b"\x00\x00") + bytes(4) + question
                + (found if is_address else b""),
                address,
            )  # fmt: skip

    asked: list[bytes] = []
    transport, _ = await asyncio.get_running_loop().create_datagram_endpoint(Upstream, local_addr=("127.0.0.1", 0))
    machine.name_servers[:] = [transport.get_extra_info("sockname")]
    await machine.client.create(
        SERVICES, a_service("alias", type="ExternalName", externalName="outside.example", ports=[])
    )

    lines = await said(machine, "asker", RESOLVE, "outside.example", "alias", "nothing.default.svc.cluster.local")

    transport.close()
    assert lines[:2] == ["outside.example 192.0.2.77", "alias 192.0.2.77"]
    assert not any(b"cluster" in data for data in asked), "names of the cluster are never asked for outside"


async def test_the_resolver_of_a_pod_follows_its_dns_policy(machine):
    config = {"nameservers": ["192.0.2.53"], "searches": ["example.org"], "options": [{"name": "ndots", "value": "2"}]}
    show = "print(open('/etc/resolv.conf').read().strip())"

    first = await said(machine, "first", show)
    own = await said(machine, "own", show, dnsPolicy="None", dnsConfig=config)
    added = await said(machine, "added", show, dnsConfig=config)
    host = await said(machine, "host", show, hostNetwork=True)
    both = await said(machine, "both", show, hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")

    cluster = "search default.svc.cluster.local svc.cluster.local cluster.local"
    assert first[0] == "nameserver 10.96.0.10" and first[1].startswith(cluster) and first[2] == "options ndots:5"
    assert own == ["nameserver 192.0.2.53", "search example.org", "options ndots:2"]
    assert added[:2] == ["nameserver 10.96.0.10", "nameserver 192.0.2.53"] and added[-1] == "options ndots:2"
    assert "nameserver 10.96.0.10" not in host
    assert both[0] == "nameserver 10.96.0.10"


async def test_the_api_server_answers_at_port_443_of_its_usual_name(machine):
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"api")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    machine.api_server = ("127.0.0.1", server.sockets[0].getsockname()[1])
    await machine.crash()
    await machine.start()

    assert await said(machine, "asker", ASK, "kubernetes.default.svc:443", "10.96.0.1:443") == [
        "kubernetes.default.svc api",
        "10.96.0.1 api",
    ]
    server.close()


async def test_a_pod_on_the_machines_network_serves_and_uses_services(machine):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    await served(machine, "host", sys.executable, "-c", SERVE, str(port), "127.0.0.1", hostNetwork=True)
    uid = (await machine.pod("host"))["metadata"]["uid"]
    await machine.client.create(SERVICES, a_service("host"))
    body = a_slice("host", "127.0.0.1", port=port)
    body["endpoints"][0]["targetRef"] = {"kind": "Pod", "namespace": "default", "name": "host", "uid": uid}
    await machine.client.create(SLICES, body)
    reached = (await machine.pod("host"))["spec"].get("hostname") or socket.gethostname()

    inside = await said(machine, "inside", ASK, "host:80")
    beside = await said(machine, "beside", ASK, "host:80", hostNetwork=True, dnsPolicy="ClusterFirstWithHostNet")

    assert inside == beside == [f"host {reached}"]


async def test_an_endpoint_on_loopback_that_is_no_pod_is_not_served(machine):
    """Whoever may write EndpointSlices must not reach what listens on the machine's loopback through them."""
    with socket.create_server(("127.0.0.1", 0)) as private:
        await machine.client.create(SERVICES, a_service("sneaky"))
        await machine.client.create(SLICES, a_slice("sneaky", "127.0.0.1", port=private.getsockname()[1]))
        check = (
            "import socket\n"
            "try: socket.create_connection(('sneaky', 80), 5); print('reached')\n"
            "except ConnectionRefusedError: print('refused')\n"
        )

        assert await said(machine, "asker", check) == ["refused"]


async def test_node_ports_answer_on_the_nodes_address(machine):
    address = await served(machine, "web-0")
    await machine.client.create(SERVICES, a_service("web", type="NodePort"))
    await machine.client.create(SLICES, a_slice("web", address))
    port = (await machine.client.get_json(SERVICES, Key("default", "web")))["spec"]["ports"][0]["nodePort"]

    async with asyncio.timeout(DEADLINE):
        while True:
            try:
                reader, writer = await asyncio.open_connection("127.0.0.1", port)
                break
            except OSError:
                await asyncio.sleep(0.02)
        assert await reader.read() == b"web-0"
    writer.close()


SERVE_AND_ASK = (
    "import os, socket, sys, threading, time\n"
    "own, count = sys.argv[1], int(sys.argv[2])\n"
    "server = socket.create_server((os.environ['POD_IP'], 8080), backlog=256)\n"
    "def serve():\n"
    "    while True:\n"
    "        c, _ = server.accept(); c.sendall(own.encode()); c.close()\n"
    "threading.Thread(target=serve, daemon=True).start()\n"
    "reached = 0\n"
    "for number in range(count):\n"
    "    name = f'web-{number}'\n"
    "    for _ in range(600):\n"
    "        try:\n"
    "            c = socket.create_connection((name, 80), 5); reached += c.recv(100).decode() == name; break\n"
    "        except OSError: time.sleep(0.1)\n"
    "print(reached, flush=True)\n"
    "threading.Event().wait()\n"
)
PODS_UNDER_LOAD = 50
LOAD_DEADLINE_SECONDS = 240.0


POD_IP = {"env": [{"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}}]}


@pytest.mark.slow
@pytest.mark.parametrize("pod_network", ["isolated", "host"])
async def test_fifty_pods_reach_each_other_through_services_under_load(machine):
    names = [f"web-{number}" for number in range(PODS_UNDER_LOAD)]  # of services; a pod's own name is in its hosts file
    command = [sys.executable, "-I", "-S", "-c", SERVE_AND_ASK]
    words = {name: (*command, name, str(len(names))) for name in names}
    await asyncio.gather(*(machine.create(a_pod(f"pod-{name}", *words[name], container=POD_IP)) for name in names))
    async with asyncio.timeout(LOAD_DEADLINE_SECONDS):
        for name in names:
            while not (address := (await machine.pod(f"pod-{name}"))["status"].get("podIP")):
                await asyncio.sleep(0.1)
            await asyncio.gather(
                machine.create(a_service(name)), machine.client.create(SLICES, a_slice(name, str(address)))
            )
        said_by = dict.fromkeys(names, "")
        while not all(said_by.values()):
            for name in [name for name, text in said_by.items() if not text]:
                said_by[name] = await machine.output(f"pod-{name}")
            await asyncio.sleep(0.2)

    assert set(said_by.values()) == {str(len(names))}
