# ruff: noqa: ASYNC240
"""Pods on networks of their own: the same port in each, peers by name, the machine's services, no trace left."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import sys

import pytest

from tests import needs
from tests.system.agent.kit import a_pod
from volcano.embedded.agent.containers.container_attempt import ContainerAttempt
from volcano.embedded.agent.network.network import BridgedNetwork, present_networks

pytestmark = [
    pytest.mark.root,
    needs.NETWORK_NAMESPACES,
]
LISTEN = (
    "import socket\n"
    "s = socket.create_server(('', 22))\n"
    "while True:\n"
    "    c, _ = s.accept(); c.sendall(socket.gethostname().encode()); c.close()\n"
)
ASK = (
    "import socket, sys, time\n"
    "for name in sys.argv[1:]:\n"
    "    for _ in range(400):\n"
    "        try:\n"
    "            c = socket.create_connection((name, 22), 2); break\n"
    "        except OSError: time.sleep(0.05)\n"
    "    print(name, c.recv(100).decode())\n"
)


@pytest.fixture
def pod_network() -> str:
    return "isolated"


async def test_every_pod_can_listen_on_port_22_and_is_found_by_its_names(machine):
    peers = [a_pod(f"w-{n}", sys.executable, "-c", LISTEN, hostname=f"w-{n}", subdomain="job") for n in range(2)]
    names = ["w-0.job", "w-1", "w-1.job.default.svc.cluster.local", "w-0.job.default.svc"]
    asker = a_pod("asker", sys.executable, "-c", ASK, *names, hostname="asker", subdomain="job")
    await machine.create(asker, *peers)

    pod = await machine.finished("asker")

    output = (await machine.output("asker")).splitlines()
    assert output == [f"{name} {name.split('.')[0]}" for name in names]
    addresses = {(await machine.pod(name))["status"]["podIP"] for name in ("w-0", "w-1")} | {pod["status"]["podIP"]}
    assert len(addresses) == 3


async def test_a_name_appears_in_pods_that_already_run(machine):
    await machine.create(a_pod("early", sys.executable, "-c", ASK, "late.job", hostname="early", subdomain="job"))
    await machine.until_phase("early", "Running")

    await machine.create(a_pod("late", sys.executable, "-c", LISTEN, hostname="late", subdomain="job"))

    await machine.until_phase("early", "Succeeded")
    assert await machine.output("early") == "late.job late"


async def test_a_pod_on_the_hosts_network_sees_the_host(machine):
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.listen()
        port = server.getsockname()[1]
        check = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2); print('reached')"
        await machine.create(a_pod("inside", sys.executable, "-c", check, hostNetwork=True))
        await machine.create(a_pod("apart", sys.executable, "-c", check))

        await machine.until_phase("inside", "Succeeded")
        await machine.until_phase("apart", "Failed")


async def test_the_api_server_on_loopback_is_reachable_by_its_usual_name(machine):
    async def answer(_reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"the api server")
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    machine.api_server = ("127.0.0.1", port)
    await machine.crash()
    await machine.start()
    check = (
        "import os, socket\n"
        "c = socket.create_connection((os.environ['KUBERNETES_SERVICE_HOST'], os.environ['KUBERNETES_SERVICE_PORT']), 5)\n"
        "print(c.recv(100).decode())\n"
    )
    await machine.create(a_pod("client", sys.executable, "-c", check))

    await machine.finished("client")

    assert await machine.output("client") == "the api server"
    server.close()


async def test_nothing_of_the_network_stays_behind(machine):
    await machine.create(a_pod("brief", "true"))
    await machine.until_phase("brief", "Succeeded")
    bridge = machine.runtime._connections._network._bridge
    assert os.path.exists(f"/sys/class/net/{bridge}")

    await machine.stop()

    async with asyncio.timeout(60):  # the last holder may still be on its way out; then the supervisor clears up
        while os.path.exists(f"/sys/class/net/{bridge}"):
            await asyncio.sleep(0.05)
    await machine.start()


async def test_a_pod_has_its_own_user_namespace_and_further_commands_join_it(machine):
    await machine.create(a_pod("apart", "sh", "-c", "readlink /proc/self/ns/user; chown 1234 /tmp; sleep 1000"))
    await machine.until_phase("apart", "Running")
    known = machine.agent.find("default", "apart")
    said, nothing = os.memfd_create("said"), os.open(os.devnull, os.O_RDWR)

    command = ["sh", "-c", "readlink /proc/self/ns/user; id -u; hostname"]
    code = await machine.runtime.execute(
        ContainerAttempt(known.pod, "main", 0), command, standard=[nothing, said, said]
    )

    namespace, user, host = os.pread(said, 1000, 0).decode().split()
    expected = "65532" if os.geteuid() == 0 else "0"
    assert (code, user, host) == (0, expected, "apart")
    assert namespace != os.readlink("/proc/self/ns/user")
    assert (await machine.output("apart")).split()[0] == namespace
    for descriptor in (said, nothing):
        os.close(descriptor)


async def test_a_supervisor_whose_agent_never_comes_back_takes_the_network_down(machine):
    await machine.create(a_pod("brief", "true"))
    await machine.until_phase("brief", "Succeeded")
    bridge, supervisor = machine.runtime._connections._network._bridge, machine.runtime._supervisor.pid
    await machine.crash()

    os.kill(supervisor, signal.SIGTERM)

    await machine.until_no_process(supervisor)
    assert not os.path.exists(f"/sys/class/net/{bridge}")


async def test_ports_are_forwarded_to_what_listens_on_a_pods_own_loopback(machine):
    listen = LISTEN.replace("('', 22)", "('127.0.0.1', 22)")
    await machine.create(a_pod("inward", sys.executable, "-c", f"print(1, flush=True)\n{listen}"))
    address = (await machine.until_phase("inward", "Running"))["status"]["podIP"]
    known = machine.agent.find("default", "inward")

    async with asyncio.timeout(30):
        while True:
            try:
                reader, writer = await machine.runtime.dial(known.pod, address, 22)
                break
            except OSError:
                await asyncio.sleep(0.02)

    assert await reader.read() == b"inward"
    writer.close()
    with pytest.raises(OSError, match="Connect call failed"):
        await asyncio.open_connection(address, 22)


async def test_pods_reach_each_other_after_another_system_on_this_machine_has_ended(machine, tmp_path):
    other = BridgedNetwork(tmp_path, routes=present_networks())
    other.open()
    await machine.create(a_pod("server", sys.executable, "-c", LISTEN, hostname="server", subdomain="job"))
    await machine.until_phase("server", "Running")

    other.close()

    await machine.create(a_pod("asker", sys.executable, "-c", ASK, "server.job", hostname="asker", subdomain="job"))
    await machine.finished("asker")
    assert await machine.output("asker") == "server.job server"
