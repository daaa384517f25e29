"""`kubectl port-forward` to pods that really run, over both of its protocols; and what becomes of it when things end."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest

from tests import needs
from tests.system.agent.kit import DEADLINE, PODS, Machine, a_pod
from tests.system.agent.kubectl_kit import Kubectl
from volcano.api.meta import Key
from volcano.api.scheme import find_resource_type
from volcano.machinery.certificates import Authority, kubeconfig

pytestmark = [
    pytest.mark.kubectl,
    needs.KUBECTL,
]
PROTOCOLS = pytest.mark.parametrize("websockets", ["true", "false"], ids=["websocket", "spdy"])
ECHO = (
    "import socketserver, sys\n"
    "class Echo(socketserver.BaseRequestHandler):\n"
    "    def handle(self):\n"
    "        while piece := self.request.recv(65536): self.request.sendall(piece)\n"
    "        self.request.sendall(b'.')\n"
    "socketserver.ThreadingTCPServer.daemon_threads = True\n"
    "server = socketserver.ThreadingTCPServer(('', 0), Echo)\n"
    "print(server.server_address[1], flush=True)\n"
    "server.serve_forever()\n"
)
"""Gives back what comes and, when the client has no more to say, a full stop."""


@pytest.fixture
def machine(served_machine: Machine) -> Machine:
    return served_machine


@pytest.fixture
async def port(machine: Machine) -> int:
    """Of an echoing pod that listens on a port of its choice."""
    await machine.create(a_pod("echo", sys.executable, "-c", ECHO, metadata={"labels": {"app": "echo"}}))
    await machine.until_phase("echo", "Running")
    async with asyncio.timeout(DEADLINE):
        while not (said := await machine.output("echo")):
            await asyncio.sleep(0.02)
    return int(said)


async def said_back(port: int, content: bytes) -> bytes:
    """Everything that comes back for this; writing and reading at the same time."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)

    async def say() -> None:
        writer.write(content)
        await writer.drain()
        writer.write_eof()

    async with asyncio.timeout(DEADLINE):
        _, answer = await asyncio.gather(say(), reader.read())
    writer.close()
    return answer


@PROTOCOLS
async def test_bytes_go_both_ways_on_many_connections_at_once(machine, kubectl, port, websockets):
    kubectl = kubectl.told(KUBECTL_PORT_FORWARD_WEBSOCKETS=websockets)
    texts = [f"connection {number} ".encode() * 20_000 for number in range(8)]

    async with kubectl.forwarding("pod/echo", f":{port}") as (local, _):
        answers = await asyncio.gather(*(said_back(local, text) for text in texts))

    assert answers == [text + b"." for text in texts]


async def test_services_and_deployments_stand_for_one_of_their_pods(machine, kubectl, port):
    labels = {"matchLabels": {"app": "echo"}}
    template = {"metadata": {"labels": {"app": "echo"}}, "spec": {"containers": [{"name": "main", "image": "host"}]}}
    service = {"selector": {"app": "echo"}, "ports": [{"port": 80, "targetPort": port}]}
    await machine.create({"kind": "Service", "metadata": {"name": "echo", "namespace": "default"}, "spec": service})
    deployments = find_resource_type("apps", "Deployment")
    deployment = {
        "metadata": {"name": "echo", "namespace": "default"},
        "spec": {"selector": labels, "template": template},
    }
    await machine.client.create(deployments, deployment)

    async with kubectl.forwarding("service/echo", ":80") as (local, _):
        assert await said_back(local, b"by service") == b"by service."
    async with kubectl.forwarding("deployment/echo", f":{port}") as (local, _):
        assert await said_back(local, b"by deployment") == b"by deployment."


@PROTOCOLS
async def test_a_port_where_nobody_listens_is_told(machine, kubectl, port, websockets):
    kubectl = kubectl.told(KUBECTL_PORT_FORWARD_WEBSOCKETS=websockets)

    async with kubectl.forwarding("pod/echo", ":1") as (local, process):
        assert await said_back(local, b"") == b""
        async with asyncio.timeout(DEADLINE):
            told = (await process.stderr.read()).decode()

    assert "cannot connect to port 1 of the pod" in told and "lost connection to pod" in told


async def test_a_client_that_is_killed_leaves_no_connection_to_the_pod(machine, kubectl, port):
    async with kubectl.forwarding("pod/echo", f":{port}") as (local, process):
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"still here")
        assert await reader.readexactly(10) == b"still here"
        assert open_connections(port)

        process.kill()
        await process.wait()

    async with asyncio.timeout(DEADLINE):
        while open_connections(port):
            await asyncio.sleep(0.02)
    writer.close()


async def test_a_pod_that_is_gone_is_not_mistaken_for_another(machine, kubectl, port):
    async with kubectl.forwarding("pod/echo", f":{port}") as (local, process):
        await machine.client.delete(PODS, Key("default", "echo"), {"gracePeriodSeconds": 0})
        await machine.until_gone("echo")
        await machine.create(a_pod("echo", "sleep", "600"))
        await machine.until_phase("echo", "Running")

        assert await said_back(local, b"") == b""
        async with asyncio.timeout(DEADLINE):
            told = (await process.stderr.read()).decode()

    assert "pod echo does not run" in told


@PROTOCOLS
async def test_who_may_not_create_the_subresource_is_refused(machine, kubectl, port, websockets, tmp_path):
    authority = Authority(tmp_path / "pki", machine.clock.now())
    pair = authority.issue("mallory", ("developers",), machine.clock.now())
    config = (tmp_path / "kubeconfig").read_text()
    server = next(line.split()[-1] for line in config.splitlines() if "server:" in line)
    path = tmp_path / "mallory.kubeconfig"
    path.write_bytes(kubeconfig(server.strip('"'), authority.pair.certificate, pair, user="mallory"))
    roles, bindings = (
        find_resource_type("rbac.authorization.k8s.io", kind) for kind in ("ClusterRole", "ClusterRoleBinding")
    )
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["get", "list", "create"]}]
    await machine.client.create(roles, {"metadata": {"name": "reader"}, "rules": rules})
    subject = {"kind": "User", "name": "mallory", "apiGroup": "rbac.authorization.k8s.io"}
    role = {"kind": "ClusterRole", "name": "reader", "apiGroup": "rbac.authorization.k8s.io"}
    await machine.client.create(bindings, {"metadata": {"name": "reader"}, "subjects": [subject], "roleRef": role})
    mallory = Kubectl(path, KUBECTL_PORT_FORWARD_WEBSOCKETS=websockets)

    code, _, told = await mallory("port-forward", "pod/echo", f":{port}")

    assert code != 0 and 'cannot create resource "pods/portforward"' in told


def open_connections(port: int) -> int:
    """Connections of this machine to one of its ports."""
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    return sum(int(fields[2].split(":")[1], 16) == port and fields[3] == "01" for fields in map(str.split, lines))
