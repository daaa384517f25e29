"""Connections of pods at shared ports: one pod cannot take them from the others."""

from __future__ import annotations

import asyncio
import socket
import struct
from datetime import timedelta
from pathlib import Path

import pytest

from volcano.embedded.agent.network import dns_server
from volcano.embedded.agent.network.client_slots import ClientSlots, SlotLimits
from volcano.embedded.agent.network.dns_answers import ClusterNames
from volcano.embedded.agent.network.dns_server import DnsServer
from volcano.embedded.agent.network.dns_upstream import DnsUpstream
from volcano.embedded.agent.network.dns_wire import write_question
from volcano.embedded.agent.network.service_watch import SERVICE_INDEXES
from volcano.machinery.world import Mirror

WITHIN_SECONDS = 20


class APort:
    """A port whose connections stay open; clients come from addresses of the loopback network."""

    def __init__(self, limits: SlotLimits) -> None:
        self.slots = ClientSlots(limits)
        self.port = 0
        self._counted = asyncio.Semaphore(0)
        self._clients: list[asyncio.StreamWriter] = []

    async def open(self) -> None:
        server = await asyncio.start_server(self._hold, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]

    async def _hold(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with self.slots.taken(writer):
            self._counted.release()
            await reader.read()
        writer.close()

    async def connect(self, address: str) -> asyncio.StreamReader:
        """The client's side, after the port has counted the connection."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=(address, 0))
        self._clients.append(writer)
        await self._counted.acquire()
        return reader


async def test_an_address_with_too_many_connections_loses_its_oldest():
    port = APort(SlotLimits(total=10, per_address=2))
    await port.open()
    other = await port.connect("127.0.0.2")
    first = await port.connect("127.0.0.3")
    await port.connect("127.0.0.3")
    await port.connect("127.0.0.3")

    async with asyncio.timeout(WITHIN_SECONDS):
        assert await first.read() == b""
    assert len(port.slots) == 3
    assert not other.at_eof()


async def test_a_full_port_takes_the_place_from_the_address_with_most_connections():
    port = APort(SlotLimits(total=4, per_address=4))
    await port.open()
    one = await port.connect("127.0.0.2")
    many = [await port.connect("127.0.0.3") for _ in range(3)]
    newest = await port.connect("127.0.0.4")

    async with asyncio.timeout(WITHIN_SECONDS):
        assert await many[0].read() == b""
    assert len(port.slots) == 4
    assert not one.at_eof() and not newest.at_eof()


async def test_a_client_of_the_name_server_that_reads_no_answer_is_cut_off(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.setattr(dns_server, "IDLE_TCP_TIMEOUT", timedelta(seconds=0.2))
    server = DnsServer(ClusterNames(Mirror(indexes=SERVICE_INDEXES)), DnsUpstream(list, tmp_path / "hosts"))
    monkeypatch.setattr(server, "answer_now", lambda *_a, **_k: b"x" * 60_000)
    port = await server.open("127.0.0.1")
    question = write_question("nobody.default.svc.cluster.local", "A")
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.connect(("127.0.0.1", port))
    client.setblocking(False)
    with pytest.raises(ConnectionError):
        async with asyncio.timeout(WITHIN_SECONDS):
            while True:
                await asyncio.get_running_loop().sock_sendall(
                    client, (struct.pack(">H", len(question)) + question) * 10
                )

    client.close()
    assert not len(server._connections)
    await server.close()
